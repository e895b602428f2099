"""Wake-word networks as they are converted for microcontrollers: each run takes some new frames of sound, and resource
variables keep what convolutions over time still need of the old ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.harness import argument, const
from tflq.formats.tflite.writer import write
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import (
    ElementType,
    Shape,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i8,
    i32,
    resource,
    ui8,
)

FRAMES = (1, 3, 10)
_X = UniformQuantizedType.of(i8, 0.1, -128)
_Y = UniformQuantizedType.of(i8, 0.08, -128)
_VERSIONS = {"conv_2d": 3, "depthwise_conv_2d": 3, "concatenation": 2, "strided_slice": 2, "fully_connected": 4}


def frames(count: int = 10, seed: int = 0, batch: int = 1) -> list[list[np.ndarray]]:
    """Inputs for some runs in a row."""
    rng = np.random.default_rng(seed)
    return [[rng.integers(-128, 128, (batch, *FRAMES[1:]), np.int8)] for _ in range(count)]


def streaming(**changes: Any) -> bytes:
    """The file of `streaming_module`."""
    return bytes(write(streaming_module(**changes)))


def streaming_module(
    *,
    read: Shape | str = "stated",
    handle: Shape = None,
    start: int | None = -120,
    start_shape: tuple[int, ...] = (1, 2, 1, 10),
    batch: int | None = 1,
) -> Module:
    """A network with two variables, as TensorFlow writes it: handles of unknown rank, initialized by a function that
    CALL_ONCE runs. read: the shape that the first one is stated to have where it is read; handle: that of handles;
    start: what the first one is initialized with everywhere, None for nothing; start_shape: in another shape."""
    rng = np.random.default_rng(7)
    net = _Net(rng, handle)
    x = argument((batch, *FRAMES[1:]), _X, "x")
    if start is not None:
        net.ops.append(_op("call_once", [], [], init_subgraph_index=1))
    shape = const(np.asarray((-1, 3, 1, 10)), i32, "shape")
    wide = net.emit("reshape", [x, shape], (batch, 3, 1, 10), _X, new_shape=None)
    first = net.stream(wide, "stream", (1, 2, 1, 10), "" if read == "stated" else read)
    hidden = net.convolution(first, "conv_2d", (8, 5, 1, 10), 0, _Y)
    second = net.stream(hidden, "stream_1", (1, 4, 1, 8), "")
    deep = net.convolution(second, "depthwise_conv_2d", (1, 5, 1, 8), 3, _X)
    weights = const(rng.integers(-127, 128, (1, 8)), UniformQuantizedType.of(i8, 0.01, 0), "w")
    bias = const(np.asarray([40]), UniformQuantizedType.of(i32, 0.1 * 0.01, 0), "b")
    logit = net.emit(
        "fully_connected",
        [deep, weights, bias],
        (1, 1),
        UniformQuantizedType.of(i8, 0.2, 5),
        fused_activation_function="NONE",
        weights_format="DEFAULT",
        keep_num_dims=False,
        asymmetric_quantize_inputs=False,
    )
    chance = net.emit("logistic", [logit], (1, 1), UniformQuantizedType.of(i8, 1 / 256, -128))
    y = net.emit("quantize", [chance], (1, 1), UniformQuantizedType.of(ui8, 1 / 256, 0))
    y.name = "y"
    functions = [Function("main", [x], [y], net.ops)]
    if start is not None:
        functions.append(_initializer(handle, start, start_shape))
    return Module(functions, [Signature("serving_default", 0, [("x", x)], [("y", y)])])


def _initializer(handle: Shape, start: int, shape: tuple[int, ...]) -> Function:
    ops: list[Op] = []
    for name, dims, element, value in (("stream_1", (1, 4, 1, 8), _Y, -128), ("stream", shape, _X, start)):
        ops.append(_handle(name, handle))
        ops.append(_op("assign_variable", [ops[-1].result, const(np.full(dims, value), element, "start")], []))
    return Function("NoOp", [], [], ops)


def _op(name: str, operands: list[Value | None], results: list[Value], **attributes: Any) -> Op:
    return Op(f"tfl.{name}", operands, results, attributes, info={"version": _VERSIONS.get(name, 1)})


def _handle(name: str, shape: Shape) -> Op:
    result = Value(TensorType(shape, resource), f"{name}/states")
    return _op("var_handle", [], [result], container="", shared_name=f"{name}/states")


class _Net:
    """The operators of the network."""

    def __init__(self, rng: np.random.Generator, handle: Shape) -> None:
        self.ops: list[Op] = []
        self._rng = rng
        self._handle = handle

    def emit(self, name: str, operands: list[Value | None], shape: Shape, element: ElementType, **more: Any) -> Value:
        result = Value(TensorType(shape, element), f"{name}{len(self.ops)}")
        self.ops.append(_op(name, operands, [result], **more))
        return result

    def stream(self, new: Value, name: str, shape: tuple[int, ...], stated: Shape | str) -> Value:
        """New frames behind those that a variable keeps; the last of all are kept for the next run."""
        element, rows = new.type.element, shape[1] + (new.type.shape or ())[1]  # type: ignore[operator]
        handle = _handle(name, self._handle)
        self.ops.append(handle)
        held = self.emit("read_variable", [handle.result], shape if isinstance(stated, str) else stated, element)
        joined = {"axis": 1, "fused_activation_function": "NONE"}
        all_of_them = self.emit("concatenation", [held, new], (1, rows, *shape[2:]), element, **joined)
        begin, end, step = ([0, rows - shape[1], 0, 0], [0, rows, 0, 0], [1] * 4)
        masks = {"begin_mask": 13, "end_mask": 13, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
        indices: list[Value | None] = [const(np.asarray(v), i32) for v in (begin, end, step)]
        kept = self.emit("strided_slice", [all_of_them, *indices], shape, element, **masks, offset=False)
        self.ops.append(_op("assign_variable", [handle.result, kept], []))
        return all_of_them

    def convolution(self, x: Value, name: str, shape: tuple[int, ...], axis: int, result: ElementType) -> Value:
        """Of all rows, into one. `axis`: that of the weights' scales."""
        channels = shape[axis]
        scales = self._rng.uniform(0.002, 0.006, channels)
        weights = const(
            self._rng.integers(-127, 128, shape), UniformQuantizedPerAxisType.of(i8, axis, scales, [0] * channels), "w"
        )
        inner = x.type.element.scale * scales  # type: ignore[union-attr]
        bias = const(
            self._rng.integers(-500, 500, (channels,)),
            UniformQuantizedPerAxisType.of(i32, 0, inner, [0] * channels),
            "b",
        )
        options = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
        more = {"depth_multiplier": 1} if name == "depthwise_conv_2d" else {}
        options = {**options, "fused_activation_function": "RELU", **more}
        return self.emit(name, [x, weights, bias], (1, 1, 1, channels), result, **options)
