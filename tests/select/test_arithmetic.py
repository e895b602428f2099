"""Products, shifts, comparisons, choices and tables as kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.lowered import assert_lowered, draw, kernels_of

from tflq.builder import Builder, broadcast
from tflq.errors import UnsupportedError
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, TensorType, i8, i16, i32, i64, ui8

SHAPE = (2, 3, 5, 7)
DEEP = (2, 3, 4, 5, 6)


@pytest.mark.parametrize("element", [i8, i16, i32, i64])
def test_mul(element: ScalarType) -> None:
    arrays = [draw(element, SHAPE, 1, -100, 100), draw(element, SHAPE[-1:], 2, -100, 100)]
    assert_lowered(lambda b, x, y: b.mul(x, y), arrays, [element] * 2)


@pytest.mark.parametrize("shift", [1, 15, 31, 32, 40])
def test_mul_with_a_shift(shift: int) -> None:
    """Products of which 32 bits are left."""
    limit = min((1 << shift) - 2, i32.maximum)
    x = draw(i32, SHAPE, 1, i32.minimum + 1)
    for other in (SHAPE, (*SHAPE[:-1], 1)):
        y = draw(i32, other, 2, -limit, limit)
        assert_lowered(lambda b, v, w: b.mul(v, w, shift), [x, y], [i32, i32])
    assert_lowered(lambda b, v: b.mul(v, b.constant(np.asarray(-limit)), shift), [x], [i32])
    assert_lowered(lambda b, v: b.mul(b.constant(np.asarray(limit)), v, shift), [x], [i32])


@pytest.mark.parametrize("shape", [SHAPE, DEEP])
@pytest.mark.parametrize("rounding", [False, True])
def test_arithmetic_right_shift(shape: tuple[int, ...], rounding: bool) -> None:
    x = draw(i32, shape)

    def by(amount: int) -> Callable[[Builder, Value], Value]:
        return lambda b, v: b.arithmetic_right_shift(v, b.constant(np.asarray(amount)), round=rounding)

    for amount in (0, 1, 2, 31):
        assert_lowered(by(amount), [x], [i32])
    for other in (shape, (*shape[:-1], 1)):
        amounts = draw(i32, other, 3, 0, 31)
        assert_lowered(lambda b, v, w: b.arithmetic_right_shift(v, w, round=rounding), [x, amounts], [i32, i32])
    channels = draw(i32, shape[-1:], 3, 0, 31)
    assert_lowered(lambda b, v: b.arithmetic_right_shift(v, b.constant(channels), round=rounding), [x], [i32])


def test_a_shift_that_the_kernel_cannot_broadcast_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="broadcasts 4 dims"):
        kernels_of(lambda b, x, y: b.arithmetic_right_shift(x, y), [i32, i32], [DEEP, (2, 1, 4, 1, 1)])


@pytest.mark.parametrize("element", [i8, ui8, i16, i32, i64])
def test_comparisons_and_select(element: ScalarType) -> None:
    arrays = [draw(element, SHAPE, seed, 0, 9) for seed in (1, 2)]
    for compare in (Builder.equal, Builder.greater, Builder.greater_equal):
        assert_lowered(lambda b, x, y, f=compare: f(b, x, y), arrays, [element] * 2)
        assert_lowered(lambda b, x, y, f=compare: b.select(f(b, x, y), y, x), arrays, [element] * 2)


@pytest.mark.parametrize("element", [i8, ui8])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "float32"])
def test_table(element: ScalarType, dtype: str) -> None:
    entries = np.random.default_rng(0).integers(0, 100, 256).astype(dtype)
    x = np.arange(element.minimum, element.maximum + 1).astype(element.dtype).reshape(1, 16, 16)
    assert_lowered(lambda b, v: b.table(v, entries), [x], [element])


@pytest.mark.parametrize("first", [i8, ui8])
@pytest.mark.parametrize("second", [i8, ui8])
@pytest.mark.parametrize("other", [SHAPE, (1, 1, 5, 1)])
def test_table_of_two(first: ScalarType, second: ScalarType, other: tuple[int, ...]) -> None:
    entries = np.random.default_rng(0).integers(-128, 128, 65536).astype(np.int8)
    arrays = [draw(first, SHAPE, 1), draw(second, other, 2)]
    assert_lowered(lambda b, x, y: table_2d(b, x, y, entries), arrays, [first, second])


def test_table_of_two_with_a_constant() -> None:
    entries = np.random.default_rng(0).integers(-128, 128, 65536).astype(np.int8)
    for swap in (False, True):
        assert_lowered(lambda b, x, swap=swap: table_2d(b, *_pair(b, x, swap), entries), [draw(i8, SHAPE, 1)], [i8])


def table_2d(b: Builder, x: Value, y: Value, entries: np.ndarray) -> Value:
    shape = broadcast(x.type.shape, y.type.shape)
    return b.emit("ext.table_2d", [x, y, b.constant(entries, i8)], TensorType(shape, i8))


def _pair(b: Builder, x: Value, swap: bool) -> tuple[Value, Value]:
    row = b.constant(draw(i8, SHAPE[-1:], 2), i8)
    return (row, x) if swap else (x, row)


def test_interpolating_table() -> None:
    """TOSA's 16-bit table: 513 entries, 7 bits between them, over all inputs."""
    entries = np.random.default_rng(0).integers(-32768, 32768, 513).astype(np.int16)
    x = np.arange(-32768, 32768).astype(np.int16).reshape(1, 256, 256)

    def emit(b: Builder, v: Value) -> Value:
        return b.emit("tosa.table", [v, b.constant(entries, i16)], TensorType(v.type.shape, i32))

    assert_lowered(emit, [x], [i16])
