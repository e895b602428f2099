"""Convolutions, products, pooling and resizing of TOSA as TFLite builtins, integers and floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.lowered import draw
from support.raised import assert_same, one_op

from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import ScalarType, f32, i8, i16, i32, i64

BOTH = pytest.mark.parametrize("element", [i8, f32], ids=str)


def elements(element: ScalarType, *shape: int, seed: int = 0) -> np.ndarray:
    if element == f32:
        return np.random.default_rng(seed).normal(0, 2, shape).astype(np.float32)
    return draw(element, shape, seed)


def bias_of(element: ScalarType, count: int) -> Value:
    if element == f32:
        return constant(elements(f32, count, seed=2))
    return constant(draw(i64 if element == i16 else i32, (count,), 2, -1000, 1000))


def accumulator(element: ScalarType) -> ScalarType:
    return {i8: i32, i16: i64, f32: f32}[element]


def layer(name: str, x: np.ndarray, weights: np.ndarray, out: tuple[int, ...], channels: int, **window: Any) -> None:
    element = {np.dtype(np.int8): i8, np.dtype(np.int16): i16, np.dtype(np.float32): f32}[x.dtype]
    attributes = {"input_zp": -5 if element == i8 else 0, "weight_zp": 0, **window}
    operands: list[np.ndarray | Value] = [x, constant(weights), bias_of(element, channels)]
    assert_same(one_op(name, operands, (out, accumulator(element)), attributes), [x], ulps=4)


WINDOW = {"pad": (1, 0, 2, 1), "stride": (2, 1), "dilation": (1, 2)}


@pytest.mark.parametrize("element", [i8, i16, f32], ids=str)
@pytest.mark.parametrize("bias", [4, 1])
def test_conv2d(element: ScalarType, bias: int) -> None:
    x, filters = elements(element, 1, 8, 7, 3), elements(f32 if element == f32 else i8, 4, 3, 2, 3, seed=1)
    layer("conv2d", x, filters, (1, 4, 8, 4), bias, **WINDOW)


@BOTH
def test_depthwise_conv2d(element: ScalarType) -> None:
    x, filters = elements(element, 1, 8, 7, 3), elements(element, 3, 2, 3, 2, seed=1)
    layer("depthwise_conv2d", x, filters, (1, 4, 8, 6), 6, **WINDOW)


@BOTH
def test_conv3d(element: ScalarType) -> None:
    x, filters = elements(element, 2, 5, 8, 7, 3), elements(element, 4, 2, 3, 2, 3, seed=1)
    window = {"pad": (1, 0, 1, 0, 2, 1), "stride": (1, 2, 1), "dilation": (2, 1, 2)}
    layer("conv3d", x, filters, (2, 4, 4, 8, 4), 4, **window)


@BOTH
@pytest.mark.parametrize("out_pad", [(-1, 1, 0, 0), (0, 0, 0, 0), (2, -2, -1, 3)])
def test_transpose_conv2d(element: ScalarType, out_pad: tuple[int, int, int, int]) -> None:
    x, filters = elements(element, 1, 8, 7, 3), elements(element, 4, 3, 3, 3, seed=1)
    out = (1, 7 * 2 + 3 + sum(out_pad[:2]), 6 * 3 + 3 + sum(out_pad[2:]), 4)
    layer("transpose_conv2d", x, filters, out, 4, out_pad=out_pad, stride=(2, 3))


@BOTH
def test_filters_that_are_computed(element: ScalarType) -> None:
    arrays = [elements(element, 1, 5, 5, 3), elements(element, 4, 3, 3, 3, seed=1)]
    attributes = {"pad": (1, 1, 1, 1), "stride": (1, 1), "dilation": (1, 1), "input_zp": 0, "weight_zp": 0}
    operands: list[np.ndarray | Value] = [*arrays, bias_of(element, 4)]
    assert_same(one_op("conv2d", operands, ((1, 5, 5, 4), accumulator(element)), attributes), arrays, ulps=4)


@pytest.mark.parametrize("element", [i8, i16, f32], ids=str)
def test_matmul(element: ScalarType) -> None:
    arrays = [elements(element, 2, 3, 4), elements(element, 2, 4, 5, seed=1)]
    zero_points = {"a_zp": 3, "b_zp": -4} if element == i8 else {"a_zp": 0, "b_zp": 0}
    assert_same(one_op("matmul", arrays, ((2, 3, 5), accumulator(element)), zero_points), arrays, ulps=4)


PADDINGS = pytest.mark.parametrize(
    ("pad", "out"), [((1, 1, 1, 1), (9, 7)), ((2, 0, 0, 1), (9, 6)), ((0, 0, 0, 0), (7, 5))], ids=str
)


@PADDINGS
@pytest.mark.parametrize("element", [i8, i16, f32], ids=str)
def test_max_pool(element: ScalarType, pad: tuple[int, int, int, int], out: tuple[int, int]) -> None:
    x = elements(element, 1, 9, 7, 3)
    attributes = {"kernel": (3, 3), "stride": (1, 1), "pad": pad}
    assert_same(one_op("max_pool2d", [x], ((1, *out, 3), element), attributes), [x])


@PADDINGS
@pytest.mark.parametrize(
    ("element", "zero_points"), [(i8, (0, 0)), (i8, (-3, 9)), (i8, (-128, -128)), (i16, (0, 0)), (f32, (0, 0))]
)
def test_average_pool(
    element: ScalarType, zero_points: tuple[int, int], pad: tuple[int, int, int, int], out: tuple[int, int]
) -> None:
    x = elements(element, 1, 9, 7, 3)
    zeros = {"input_zp": zero_points[0], "output_zp": zero_points[1]}
    attributes = {"kernel": (3, 3), "stride": (1, 1), "pad": pad, **zeros}
    assert_same(one_op("avg_pool2d", [x], ((1, *out, 3), element), attributes), [x], ulps=4)


@pytest.mark.parametrize("mode", ["NEAREST_NEIGHBOR", "BILINEAR"])
@pytest.mark.parametrize("element", [i8, i16, f32], ids=str)
@pytest.mark.parametrize(
    ("scale", "offset", "border"), [((4, 2, 3, 1), (-1, 0), (1, 2)), ((2, 1, 4, 1), (0, 0), (0, 0))]
)
def test_resize(
    element: ScalarType, mode: str, scale: tuple[int, ...], offset: tuple[int, int], border: tuple[int, int]
) -> None:
    x = elements(element, 1, 8, 7, 3)
    height = (7 * scale[0] - offset[0] + border[0]) // scale[1] + 1
    width = (6 * scale[2] - offset[1] + border[1]) // scale[3] + 1
    result = {i8: i32, i16: i64, f32: f32}[element] if mode == "BILINEAR" else element
    attributes = {"scale": scale, "offset": offset, "border": border, "mode": mode}
    assert_same(one_op("resize", [x], ((1, height, width, 3), result), attributes), [x], ulps=4)


@pytest.mark.parametrize(("high", "builtins"), [(6.0, ["conv_2d"]), (5.0, ["conv_2d", "maximum", "minimum"])])
def test_a_clamp_is_the_activation(high: float, builtins: list[str]) -> None:
    x = elements(f32, 1, 5, 5, 3)
    attributes = {"pad": (0, 0, 0, 0), "stride": (1, 1), "dilation": (1, 1), "input_zp": 0, "weight_zp": 0}
    operands: list[np.ndarray | Value] = [x, constant(elements(f32, 4, 3, 3, 3, seed=1)), bias_of(f32, 4)]
    module = one_op("conv2d", operands, ((1, 3, 3, 4), f32), attributes)
    (convolution,) = module.main.ops
    convolution.result.name = ""
    clamped = Value(convolution.result.type, "clamped")
    limits = {"min_val": 0.0, "max_val": high}
    module.main.ops.append(Op("tosa.clamp", [convolution.result], [clamped], limits, convolution.location))
    module.main.outputs = [clamped]
    assert assert_same(module, [x], ulps=4) == builtins
