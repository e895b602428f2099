"""Float convolutions and FULLY_CONNECTED against the interpreter: windows, groups, activations, quantized constants."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from support.harness import argument, const, one_op
from support.on_tosa import assert_near_kernel, emitted, lowered_names

from tflq.base.errors import UnsupportedError
from tflq.dialects.builder import Builder
from tflq.formats.tosa.rules import Target
from tflq.ir.ops import Value
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, UniformQuantizedType, f32, i8, i32
from tflq.numerics.convolution import window


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def planar(stride: tuple[int, int], dilation: tuple[int, int], padding: str, activation: str) -> Mapping[str, object]:
    return {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "dilation_h_factor": dilation[0],
        "dilation_w_factor": dilation[1],
        "fused_activation_function": activation,
    }


WINDOWS = [
    ((5, 6), (3, 3), (2, 2), (1, 1), "SAME"),
    ((5, 6), (2, 3), (2, 2), (1, 1), "VALID"),
    ((9, 8), (2, 3), (1, 1), (3, 2), "SAME"),
    ((7, 7), (1, 1), (3, 2), (1, 1), "SAME"),
]


@pytest.mark.parametrize("activation", ["NONE", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize("groups", [1, 2, 4, 0], ids=["plain", "grouped", "by channel", "depthwise"])
@pytest.mark.parametrize(("size", "kernel", "stride", "dilation", "padding"), WINDOWS)
def test_planar(
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: str,
    groups: int,
    activation: str,
) -> None:
    x = normal(2, *size, 4)
    filters = normal(8, *kernel, 4 // groups, seed=1) if groups else normal(1, *kernel, 8, seed=1)
    out = [window(n, k, s, d, padding) for n, k, s, d in zip(size, kernel, stride, dilation, strict=True)]
    result = argument((2, *(w.output for w in out if w), 8), f32, "y")
    operands = [argument(x.shape, f32), const(filters, f32, "w"), const(normal(8), f32, "b")]
    options = dict(planar(stride, dilation, padding, activation))
    if not groups:
        options["depth_multiplier"] = 2
    name = "tfl.conv_2d" if groups else "tfl.depthwise_conv_2d"
    assert_near_kernel(one_op(name, operands, [result], options, 2), [x])


@pytest.mark.parametrize("per_axis", [False, True])
def test_quantized_filters(per_axis: bool) -> None:
    x, stored = normal(1, 5, 5, 3), np.random.default_rng(0).integers(-127, 128, (4, 3, 3, 3))
    scales = np.linspace(0.001, 0.01, 4).astype(np.float32)
    element = UniformQuantizedPerAxisType.of(i8, 0, scales, np.zeros(4, np.int64)) if per_axis else None
    weights = const(stored, element or UniformQuantizedType.of(i8, 0.01, 0), "w")
    operands = [argument(x.shape, f32), weights, const(normal(4), f32, "b")]
    options = planar((1, 1), (1, 1), "SAME", "NONE")
    notes = assert_near_kernel(
        one_op("tfl.conv_2d", operands, [argument((1, 5, 5, 4), f32, "y")], options, 5), [x], 0.03
    )
    assert any("rounds the activations that meet 'w'" in note for note in notes)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_conv_3d(padding: str) -> None:
    x, filters = normal(2, 4, 5, 6, 3), normal(2, 3, 2, 3, 4, seed=1)
    out = [window(n, k, s, 1, padding) for n, k, s in zip((4, 5, 6), (2, 3, 2), (1, 2, 3), strict=True)]
    options = {"stride_d": 1, "dilation_d_factor": 1, **planar((2, 3), (1, 1), padding, "RELU")}
    result = argument((2, *(w.output for w in out if w), 4), f32, "y")
    operands = [argument(x.shape, f32), const(filters, f32, "w"), const(normal(4), f32, "b")]
    assert_near_kernel(one_op("tfl.conv_3d", operands, [result], options), [x])


@pytest.mark.parametrize(
    ("padding", "out"), [("SAME", (7, 12)), ("SAME", (8, 11)), ("VALID", (9, 13)), ("VALID", (10, 14))]
)
@pytest.mark.parametrize("bias", [False, True])
def test_transpose_conv(padding: str, out: tuple[int, int], bias: bool) -> None:
    kernel, stride = (3, 4), (2, 3)
    sizes = [window(n, k, s, 1, padding) for n, k, s in zip(out, kernel, stride, strict=True)]
    x, filters = normal(2, *(w.output or 0 for w in sizes if w), 3), normal(5, *kernel, 3, seed=1)
    operands = [const(np.asarray([2, *out, 5]), i32, "size"), const(filters, f32, "w"), argument(x.shape, f32)]
    options = {"padding": padding, "stride_h": 2, "stride_w": 3, "fused_activation_function": "RELU"}
    file = one_op(
        "tfl.transpose_conv",
        [*operands, const(normal(5), f32, "b")] if bias else operands,
        [argument((2, *out, 5), f32, "y")],
        options,
        4,
    )
    assert_near_kernel(file, [x])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ["NONE", "RELU"])
@pytest.mark.parametrize(
    ("shape", "keep", "out"),
    [
        ((4, 6), False, (4, 5)),
        ((2, 3, 6), True, (2, 3, 5)),
        ((2, 3, 6), False, (6, 5)),
        ((2, 1, 3, 6), True, (2, 1, 3, 5)),
        ((2, 12), False, (4, 5)),
    ],
)
def test_fully_connected(shape: tuple[int, ...], keep: bool, out: tuple[int, ...], activation: str, bias: bool) -> None:
    x = normal(*shape)
    operands = [
        argument(shape, f32),
        const(normal(5, 6, seed=1), f32, "w"),
        const(normal(5), f32, "b") if bias else None,
    ]
    options = {"keep_num_dims": keep, "fused_activation_function": activation, "weights_format": "DEFAULT"}
    assert_near_kernel(one_op("tfl.fully_connected", operands, [argument(out, f32, "y")], options, 2), [x])


def test_float_needs_its_profile() -> None:
    def emit(b: Builder, x: Value) -> Value:
        options = planar((1, 1), (1, 1), "SAME", "NONE")
        operands = [x, const(normal(2, 1, 1, 3), f32, "w"), None]
        return b.emit("tfl.conv_2d", operands, TensorType((1, 4, 4, 2), f32), **options)

    with pytest.raises(UnsupportedError, match="CONV_2D in float needs the profile pro_fp"):
        lowered_names(emitted(emit, [f32], [(1, 4, 4, 3)]), Target(profiles=frozenset({"pro_int"})))
