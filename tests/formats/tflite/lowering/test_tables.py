"""Tables as kernels."""

from __future__ import annotations

import numpy as np
import pytest
from support.lowered import assert_lowered, draw, kernels_of

from tflq.dialects.builder import Builder
from tflq.dialects.inference import broadcast
from tflq.dialects.quant import Table2D
from tflq.dialects.tosa.movement import Table
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, TensorType, i8, i16, i32, ui8

SHAPE = (2, 3, 5, 7)


@pytest.mark.parametrize("element", [i8, ui8])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "float32"])
def test_table(element: ScalarType, dtype: str) -> None:
    entries = np.random.default_rng(0).integers(0, 100, 256).astype(dtype)
    x = np.arange(element.minimum, element.maximum + 1).astype(element.dtype).reshape(1, 16, 16)
    assert_lowered(lambda b, v: b.table(v, entries), [x], [element])


def test_table_of_a_difference_to_the_greatest() -> None:
    """Its index is in int32 already, within the type that it is narrowed to."""
    entries = np.random.default_rng(0).integers(0, 1 << 30, 256).astype(np.int32)

    def looked_up(b: Builder, x: Value, above: int) -> Value:
        differences = b.sub(b.cast(x, i32), b.cast(b.reduce("max", x, 3), i32))
        return b.table(b.cast(b.add(differences, b.constant(above)), i8), entries)

    for above, narrowed in ((127, False), (128, True)):
        assert_lowered(lambda b, x, above=above: looked_up(b, x, above), [draw(i8, SHAPE)], [i8])
        kinds = kernels_of(lambda b, x, above=above: looked_up(b, x, above), [i8], [SHAPE])
        assert ("bitcast" in kinds) == narrowed


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
    return b.emit(Table2D, [x, y, b.constant(entries, i8)], TensorType(shape, i8))


def _pair(b: Builder, x: Value, swap: bool) -> tuple[Value, Value]:
    row = b.constant(draw(i8, SHAPE[-1:], 2), i8)
    return (row, x) if swap else (x, row)


def test_interpolating_table() -> None:
    """TOSA's 16-bit table: 513 entries, 7 bits between them, over all inputs."""
    entries = np.random.default_rng(0).integers(-32768, 32768, 513).astype(np.int16)
    x = np.arange(-32768, 32768).astype(np.int16).reshape(1, 256, 256)

    def emit(b: Builder, v: Value) -> Value:
        return b.emit(Table, [v, b.constant(entries, i16)], TensorType(v.type.shape, i32))

    assert_lowered(emit, [x], [i16])
