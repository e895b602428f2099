"""CONV2D, DEPTHWISE_CONV2D, TRANSPOSE_CONV2D: exact for any type, window, zero point; refused where there is none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from support.harness import const
from support.harness import random_integers as draw
from support.on_tosa import INTEGER, Emit, assert_exact, emitted, lowered_names

from tflq.base.errors import UnsupportedError
from tflq.dialects.builder import Builder
from tflq.formats.tosa.lowering.engine import lower
from tflq.formats.tosa.rules import Target
from tflq.ir.ops import Value, constant
from tflq.ir.types import ScalarType, Shape, TensorType, i4, i8, i16, i32, i64, ui8
from tflq.numerics.convolution import window
from tflq.numerics.fixed_point import Multiplier


def packed(array: np.ndarray, element: ScalarType) -> Value:
    return constant(array, element, "w") if element.bits < 8 else const(array, element)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation"),
    [
        ((5, 6), (3, 3), (2, 2), (1, 1)),
        ((7, 9), (3, 2), (3, 4), (1, 1)),
        ((9, 8), (2, 3), (1, 1), (3, 2)),
        ((4, 4), (1, 1), (3, 2), (1, 1)),
        ((6, 5), (2, 2), (4, 3), (2, 1)),
        ((3, 3), (5, 4), (2, 1), (1, 1)),
    ],
)
def test_windows(
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: str,
    depthwise: bool,
) -> None:
    rows, columns = (window(n, k, s, d, padding) for n, k, s, d in zip(size, kernel, stride, dilation, strict=True))
    assert rows is not None
    assert columns is not None
    if min(rows.output or 0, columns.output or 0) < 1:
        pytest.skip("no output")
    shape = (*kernel, 3, 2) if depthwise else (4, *kernel, 3)
    outputs = 6 if depthwise else 4

    def emit(b: Builder, x: Value) -> Value:
        return b.conv2d(
            x,
            const(draw(shape, i8), i8),
            b.constant(np.arange(outputs) * 100 - 150),
            (2, rows.output, columns.output, outputs),
            pad=(rows.before, rows.after, columns.before, columns.after),
            stride=stride,
            dilation=dilation,
            input_zp=-7,
            depthwise=depthwise,
        )

    assert set(assert_exact(emit, [i8], [draw((2, *size, 3), i8, 1)])) <= {
        "slice",
        "conv2d",
        "depthwise_conv2d",
    }


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize(
    ("element", "filters", "zero_points"),
    [(i8, i8, (3, 0)), (i8, i4, (-128, 0)), (ui8, ui8, (0, 255)), (ui8, ui8, (131, 120)), (i8, ui8, (5, 128))],
)
def test_types(element: ScalarType, filters: ScalarType, zero_points: tuple[int, int], depthwise: bool) -> None:
    shape, outputs = ((2, 2, 4, 1), 4) if depthwise else ((3, 2, 2, 4), 3)

    def emit(b: Builder, x: Value) -> Value:
        a, w = zero_points
        weights, bias = packed(draw(shape, filters), filters), b.constant(np.arange(outputs))
        return b.conv2d(
            x, weights, bias, (1, 4, 4, outputs), pad=(0, 1, 1, 0), input_zp=a, weight_zp=w, depthwise=depthwise
        )

    x = draw((1, 4, 4, 4), element, 1)
    assert_exact(emit, [element], [x])
    assert_exact(emit, [element], [x], Target(profiles=frozenset({"pro_int"}), extensions=frozenset()))


@pytest.mark.parametrize(("least", "kept"), [(-7, i4), (-8, i8)])
def test_int4_is_kept_but_for_a_value_that_tosa_has_not(least: int, kept: ScalarType) -> None:
    weights = np.maximum(draw((3, 2, 2, 4), i4), least)
    weights[0, 0, 0] = least

    def emit(b: Builder, x: Value) -> Value:
        return b.conv2d(x, packed(weights, i4), b.constant([1, 2, 3]), (1, 3, 3, 3), input_zp=9)

    x = draw((1, 4, 4, 4), i8, 1)
    assert assert_exact(emit, [i8], [x]) == ["conv2d"]
    lowered, _ = lower(emitted(emit, [i8], [x.shape]), INTEGER)
    assert lowered.main.ops[0].operand(1).type.storage == kept


def wide(
    weights: np.ndarray,
    element: ScalarType,
    acc: ScalarType,
    bias: np.ndarray,
    out: Shape,
    pad: Sequence[int] = (0, 0, 0, 0),
    depthwise: bool = False,
) -> Emit:
    def emit(b: Builder, x: Value) -> Value:
        sums = b.conv2d(x, packed(weights, element), b.constant(bias, acc), out, acc=acc, pad=pad, depthwise=depthwise)
        return b.rescale(sums, Multiplier(1 << 30, -20), i16)

    return emit


@pytest.mark.parametrize("acc", [i64, i32])
@pytest.mark.parametrize("filters", [i8, i4])
@pytest.mark.parametrize("depthwise", [False, True])
def test_int16(filters: ScalarType, acc: ScalarType, depthwise: bool) -> None:
    weights = draw((3, 2, 4, 1) if depthwise else (5, 3, 2, 4), filters)
    outputs = 4 if depthwise else 5
    bias = np.asarray([-(1 << 30), 1 << 30, 5, -5, 77])[:outputs]
    emit = wide(weights, filters, acc, bias, (1, 3, 4, outputs), pad=(0, 0, 1, 0), depthwise=depthwise)
    assert_exact(emit, [i16], [draw((1, 5, 4, 4), i16, 1)])


def test_a_bias_of_48_bits() -> None:
    bias = np.asarray([-(1 << 45), 1 << 45, (1 << 40) + 12345])
    emit = wide(draw((3, 1, 1, 4), i8), i8, i64, bias, (1, 2, 2, 3))
    assert_exact(emit, [i16], [draw((1, 2, 2, 4), i16, 1)])
    with pytest.raises(UnsupportedError, match="48 bits"):
        lowered_names(emitted(wide(draw((3, 1, 1, 4), i8), i8, i64, bias << 2, (1, 2, 2, 3)), [i16], [(1, 2, 2, 4)]))


def test_int16_by_int16() -> None:
    bias = np.asarray([-(1 << 31), (1 << 31) - 1, -1, 32768, -32769])

    def emit(b: Builder, x: Value) -> Value:
        matrix = b.reshape(x, (6, 1, 1, 7))
        weights = const(draw((5, 1, 1, 7), i16), i16)
        sums = b.conv2d(matrix, weights, b.constant(bias, i64), (6, 1, 1, 5), acc=i64)
        return b.reshape(b.rescale(sums, Multiplier(1 << 30, -17), i16), (2, 3, 5))

    x = draw((2, 3, 7), i16, 1)
    x[0, 0], x[0, 1] = -32768, 32767
    assert "matmul" in assert_exact(emit, [i16], [x])


@pytest.mark.parametrize("zero_point", [19, -128])
def test_int16_by_weights_with_a_zero_point(zero_point: int) -> None:
    weights = draw((5, 1, 1, 4), i8)

    def emit(b: Builder, x: Value) -> Value:
        bias, shape = b.constant(np.arange(5), i64), (6, 1, 1, 5)
        sums = b.conv2d(b.reshape(x, (6, 1, 1, 4)), const(weights, i8), bias, shape, weight_zp=zero_point, acc=i64)
        return b.rescale(sums, Multiplier(1 << 30, -8), i16)

    assert_exact(emit, [i16], [draw((6, 4), i16, 1)])


@pytest.mark.parametrize("zero_point", [19, -128])
def test_int16_by_depthwise_weights_with_a_zero_point(zero_point: int) -> None:
    """Weights of nine bits are two convolutions, whose sums TOSA adds in 32 bits and not in 48."""

    def emit(b: Builder, x: Value, acc: ScalarType = i32) -> Value:
        weights, bias = const(draw((3, 2, 4, 1), i8), i8), b.constant(np.arange(4) * 1000, acc)
        sums = b.conv2d(x, weights, bias, (1, 3, 3, 4), weight_zp=zero_point, acc=acc, depthwise=True)
        return b.rescale(sums, Multiplier(1 << 30, -8), i16)

    assert assert_exact(emit, [i16], [draw((1, 5, 4, 4), i16, 1)]).count("depthwise_conv2d") == 2
    with pytest.raises(UnsupportedError, match="adds no sums of 48 bits"):
        lowered_names(emitted(lambda b, x: emit(b, x, i64), [i16], [(1, 5, 4, 4)]))


def test_int16_in_groups() -> None:
    def emit(b: Builder, x: Value) -> Value:
        parts = []
        for group in range(3):
            part = b.emit(
                "tosa.slice", [x], TensorType((1, 4, 4, 2), i16), start=(0, 0, 0, 2 * group), size=(1, 4, 4, 2)
            )
            weights, bias = const(draw((2, 3, 3, 2), i8, group), i8), b.constant([group, -(1 << 40)], i64)
            parts.append(b.conv2d(part, weights, bias, (1, 2, 2, 2), acc=i64))
        return b.rescale(b.concat(parts, 3), Multiplier(1 << 30, -10), i16)

    assert "concat" not in assert_exact(emit, [i16], [draw((1, 4, 4, 6), i16, 1)])


def test_batch_of_any_size() -> None:
    def emit(b: Builder, x: Value) -> Value:
        weights, bias = const(draw((2, 3, 3, 4), i8), i8), b.constant(np.zeros(2))
        return b.conv2d(x, weights, bias, (None, 2, 2, 2), stride=(2, 2))

    assert lowered_names(emitted(emit, [i8], [(None, 6, 5, 4)])) == ["slice", "conv2d"]


def test_open_heights() -> None:
    def emit(b: Builder, x: Value, stride: int = 1) -> Value:
        weights, bias = const(draw((2, 3, 3, 4), i8), i8), b.constant(np.zeros(2))
        return b.conv2d(x, weights, bias, (1, None, None, 2), stride=(stride, stride), pad=(1, 1, 1, 1))

    assert lowered_names(emitted(emit, [i8], [(1, None, None, 4)])) == ["conv2d"]
    with pytest.raises(UnsupportedError, match="stride of 2"):
        lowered_names(emitted(lambda b, x: emit(b, x, 2), [i8], [(1, None, None, 4)]))


def test_filters_that_are_computed() -> None:
    def emit(b: Builder, x: Value, w: Value, bias: Value) -> Value:
        return b.conv2d(x, w, bias, (1, 3, 3, 5), input_zp=3, weight_zp=9)

    arrays = [draw((1, 4, 4, 2), ui8), draw((5, 2, 2, 2), ui8, 1), np.arange(5, dtype=np.int32)]
    assert_exact(emit, [ui8, ui8, i32], arrays)


@pytest.mark.parametrize(
    ("element", "filters"), [(i8, i8), (ui8, ui8), (i16, i8), (i8, i4), (i16, i4)], ids=lambda e: str(e)
)
@pytest.mark.parametrize("out_pad", [(0, 0, 0, 0), (-1, -2, -2, 0), (2, 0, 1, 3)])
def test_transpose_conv(element: ScalarType, filters: ScalarType, out_pad: tuple[int, int, int, int]) -> None:
    top, bottom, left, right = out_pad
    acc = i64 if element == i16 else i32

    def emit(b: Builder, x: Value) -> Value:
        sums = b.emit(
            "tosa.transpose_conv2d",
            [x, packed(draw((3, 3, 4, 2), filters), filters), b.constant(np.arange(3), acc)],
            TensorType((1, 7 + top + bottom, 10 + left + right, 3), acc),
            out_pad=out_pad,
            stride=(2, 3),
            input_zp=100 if element == ui8 else 0,
            weight_zp=50 if element == ui8 else 0,
        )
        return b.rescale(sums, Multiplier(1 << 30, -15), i16) if acc == i64 else sums

    assert_exact(emit, [element], [draw((1, 3, 3, 2), element, 1)])


def test_transpose_conv_takes_off_less_than_the_filter() -> None:
    def emit(b: Builder, x: Value) -> Value:
        operands = [x, const(draw((1, 2, 2, 1), i8), i8), b.constant([0])]
        type = TensorType((1, 3, 5, 1), i32)
        return b.emit(
            "tosa.transpose_conv2d", operands, type, out_pad=(-2, 0, 0, 0), stride=(1, 1), input_zp=0, weight_zp=0
        )

    with pytest.raises(UnsupportedError, match="less than the filter"):
        lowered_names(emitted(emit, [i8], [(1, 4, 4, 1)]), INTEGER)
