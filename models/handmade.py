"""Makes the models that TensorFlow's converter cannot make, from the project's own IR.

    PYTHONPATH=. python models/handmade.py [FOLDER]

`cnn_uint8` is a network as the older quantizers made them: uint8 storage, one scale per tensor, RELU6 everywhere, so
that activations share the scale 6/255. The others hold one operator each: those that the RFC of MLIR's `quant` dialect
names as failing when TFLite is lowered to TOSA. The interpreter cannot run those with per-axis activations; the
converted models run.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tflq
from tflq.ir.module import Function, Signature
from tflq.ir.ops import Buffer, Op, Value, constant
from tflq.ir.types import (
    ElementType,
    Shape,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i8,
    i16,
    i32,
    i64,
    ui8,
)

HERE = Path(__file__).resolve().parent
CLASSES = 10
RELU6 = UniformQuantizedType.of(ui8, 6 / 255)


def tensor(name: str, shape: Shape, element: ElementType) -> Value:
    return Value(TensorType(shape, element), name)


def stored(name: str, integers: np.ndarray, element: ElementType) -> Value:
    """A constant of stored integers of a quantized type."""
    return Value(TensorType(integers.shape, element), name, buffer=Buffer.of(integers))


def module(inputs: Sequence[Value], ops: Sequence[Op]) -> tflq.Module:
    """A model of one function with the results of the last operator as its outputs."""
    outputs = ops[-1].results
    signature = Signature("serving_default", 0, [(v.name, v) for v in inputs], [(v.name, v) for v in outputs])
    return tflq.Module(
        [Function("main", list(inputs), list(outputs), list(ops))], [signature], description="made by tflq"
    )


def one_operator(
    name: str,
    operands: Sequence[Value],
    results: Sequence[Value],
    attributes: Mapping[str, Any] | None = None,
    version: int = 2,
) -> tflq.Module:
    """A model of one operator; what is not constant is an input."""
    op = Op("tfl." + name, list(operands), list(results), dict(attributes or {}), info={"version": version})
    return module([v for v in operands if not v.is_constant], [op])


class Uint8Network:
    """Adds layers with random weights, as the quantization-aware trainer of 2018 stored them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.ops: list[Op] = []

    def apply(self, name: str, operands: list[Value], result: Value, **attributes: Any) -> Value:
        self.ops.append(Op("tfl." + name, list(operands), [result], attributes, info={"version": 1}))
        return result

    def weights(self, name: str, shape: tuple[int, ...], fan_in: int, gain: float = 2.0) -> Value:
        """Normal weights stored as uint8 between their minimum and maximum, zero included."""
        values = self.rng.normal(scale=np.sqrt(gain / fan_in), size=shape)
        scale = (values.max() - values.min()) / 255
        zero_point = round(-values.min() / scale)
        integers = np.clip(np.rint(values / scale) + zero_point, 0, 255).astype(np.uint8)
        return stored(name + "/weights", integers, UniformQuantizedType.of(ui8, scale, zero_point))

    def bias(self, name: str, x: Value, weights: Value, channels: int) -> Value:
        scale = np.float32(_scale(x)) * np.float32(_scale(weights))
        integers = np.rint(self.rng.normal(0.4, 0.4, channels) / scale).astype(np.int32)
        return stored(name + "/bias", integers, UniformQuantizedType.of(i32, float(scale)))

    def convolution(self, name: str, x: Value, channels: int, kernel: int, stride: int = 1) -> Value:
        _, height, width, depth = _dims(x)
        w = self.weights(name, (channels, kernel, kernel, depth), kernel * kernel * depth)
        result = tensor(name, (1, -(-height // stride), -(-width // stride), channels), RELU6)
        return self.apply("conv_2d", [x, w, self.bias(name, x, w, channels)], result, **_window(stride))

    def depthwise(self, name: str, x: Value, kernel: int) -> Value:
        channels = _dims(x)[3]
        w = self.weights(name, (1, kernel, kernel, channels), kernel * kernel)
        result = tensor(name, x.type.shape, RELU6)
        attributes = {**_window(1), "depth_multiplier": 1}
        return self.apply("depthwise_conv_2d", [x, w, self.bias(name, x, w, channels)], result, **attributes)

    def classifier(self, name: str, x: Value, classes: int) -> Value:
        depth = _dims(x)[1]
        w = self.weights(name, (classes, depth), depth, 1.0)
        result = tensor(name, (1, classes), UniformQuantizedType.of(ui8, 16 / 255, 128))
        return self.apply("fully_connected", [x, w, self.bias(name, x, w, classes)], result)


def _scale(value: Value) -> float:
    element = value.type.element
    if not isinstance(element, UniformQuantizedType):
        raise TypeError(f"'{value.name}' has no scale")
    return element.scale


def _dims(value: Value) -> tuple[int, ...]:
    return tuple(d or 1 for d in value.type.shape or ())


def _window(stride: int) -> dict[str, Any]:
    factors = {"dilation_h_factor": 1, "dilation_w_factor": 1}
    return {"padding": "SAME", "stride_h": stride, "stride_w": stride, "fused_activation_function": "RELU6", **factors}


def _pool(size: int, stride: int, padding: str) -> dict[str, Any]:
    window = {"filter_height": size, "filter_width": size, "stride_h": stride, "stride_w": stride}
    return {"padding": padding, "fused_activation_function": "NONE", **window}


def cnn_uint8() -> tflq.Module:
    """Convolutions, a depthwise separable block, a residual ADD, both pools, a classifier."""
    n = Uint8Network(31)
    image = tensor("image", (1, 24, 24, 3), UniformQuantizedType.of(ui8, 1 / 128, 128))
    first = n.convolution("first", image, 16, 3, 2)
    x = n.convolution("pointwise", n.depthwise("depthwise", first, 3), 16, 1)
    residual = tensor("residual", x.type.shape, UniformQuantizedType.of(ui8, 12 / 255))
    x = n.apply("add", [x, first], residual, fused_activation_function="NONE")
    x = n.convolution("second", x, 32, 3, 2)
    x = n.apply("max_pool_2d", [x], tensor("max_pool", (1, 3, 3, 32), RELU6), **_pool(2, 2, "SAME"))
    x = n.apply("average_pool_2d", [x], tensor("average_pool", (1, 1, 1, 32), RELU6), **_pool(3, 1, "VALID"))
    shape = constant(np.array([1, 32], np.int32), name="shape")
    x = n.apply("reshape", [x, shape], tensor("flat", (1, 32), RELU6), new_shape=(1, 32))
    x = n.classifier("logits", x, CLASSES)
    n.apply("softmax", [x], tensor("scores", (1, CLASSES), UniformQuantizedType.of(ui8, 1 / 256)), beta=1.0)
    return module([image], n.ops)


PER_LAYER = UniformQuantizedType.of(i8, 0.05, 3)
PER_AXIS = UniformQuantizedPerAxisType.of(i8, 3, [0.05, 0.1, 0.025, 0.0125])


def log_softmax() -> tflq.Module:
    return one_operator(
        "log_softmax",
        [tensor("x", (2, 3), PER_LAYER)],
        [tensor("y", (2, 3), UniformQuantizedType.of(i8, 16 / 256, 127))],
    )


def l2_normalization() -> tflq.Module:
    x, y = tensor("x", (6, 11), PER_LAYER), tensor("y", (6, 11), UniformQuantizedType.of(i8, 1 / 128))
    return one_operator("l2_normalization", [x], [y], {"fused_activation_function": "NONE"})


def pad() -> tflq.Module:
    paddings = constant(np.array([[1, 1], [2, 2]], np.int32), name="paddings")
    return one_operator("pad", [tensor("x", (2, 2), PER_LAYER), paddings], [tensor("y", (4, 6), PER_LAYER)])


def split() -> tflq.Module:
    axis = constant(np.array(2, np.int32), name="axis")
    parts = [tensor(f"part{i}", (1, 4, 3, 2), PER_LAYER) for i in range(3)]
    return one_operator("split", [axis, tensor("x", (1, 4, 9, 2), PER_LAYER)], parts, {"num_splits": 3})


def arg_min() -> tflq.Module:
    axis = constant(np.array(-1, np.int32), name="axis")
    return one_operator(
        "arg_min",
        [tensor("x", (2, 6, 7), PER_LAYER), axis],
        [Value(TensorType((2, 6), i64), "y")],
        {"output_type": "INT64"},
    )


def add_per_axis() -> tflq.Module:
    return _per_axis("add")


def mul_per_axis() -> tflq.Module:
    return _per_axis("mul")


def _per_axis(name: str) -> tflq.Module:
    x, y = tensor("x", (1, 5, 6, 4), PER_AXIS), tensor("y", (1, 5, 6, 4), UniformQuantizedType.of(i8, 0.05))
    z = tensor("z", (1, 5, 6, 4), UniformQuantizedType.of(i8, 0.15))
    return one_operator(name, [x, y], [z], {"fused_activation_function": "NONE"})


def atan2_int16() -> tflq.Module:
    element = UniformQuantizedType.of(i16, 0.001)
    y, x = tensor("y", (4, 6), element), tensor("x", (4, 6), element)
    return one_operator("atan2", [y, x], [tensor("angle", (4, 6), UniformQuantizedType.of(i16, 2.0**-13))])


MODELS = (cnn_uint8, log_softmax, l2_normalization, pad, split, arg_min, add_per_axis, mul_per_axis, atan2_int16)


def main(folder: Path) -> None:
    for make in MODELS:
        path = folder / f"{make.__name__}.tflite"
        tflq.write(make(), path)
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
