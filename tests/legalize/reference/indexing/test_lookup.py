"""Operators that take stored integers, whatever they stand for: warnings, TOSA, refusals. tests/matrix/stored.py has
random models of them."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, one_op
from support.on_tosa import assert_near_kernel
from support.reference import refusal

from tflq.ir.types import UniformQuantizedType, i8, i16, i32

Quantized = UniformQuantizedType
ONE, OTHER = Quantized.of(i8, 0.1, 3), Quantized.of(i8, 0.2, -7)


@pytest.mark.parametrize("element", [ONE, OTHER], ids=["same", "other"])
def test_rows_of_a_table(element: Quantized) -> None:
    table = np.random.default_rng(0).integers(-128, 128, (5, 2, 3))
    operands = [argument((4,), i32), const(table, ONE)]
    model = one_op("tfl.embedding_lookup", operands, [argument((4, 2, 3), element, "y")], {})
    ids = np.asarray([4, 0, 2, 2], np.int32)
    conversion = convert_and_compare(model, [[ids]], fallback="error")
    assert ("copies the stored integers" in conversion.report.rows[0].warning) == (element is OTHER)
    assert_near_kernel(model, [ids])


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_of_two_values(axis: int) -> None:
    values = [argument((), ONE, "on"), argument((), ONE, "off")]
    shape = [(4, 3, 5), (5, 4, 3), (4, 5, 3)][axis + 1] if axis < 1 else (4, 5, 3)
    index = np.random.default_rng(1).integers(-1, 6, (4, 3)).astype(np.int32)
    operands = [argument((4, 3), i32), const(np.asarray(5), i32), *values]
    model = one_op("tfl.one_hot", operands, [argument(shape, ONE, "y")], {"axis": axis})
    arrays: list[np.ndarray] = [index, np.asarray(9, np.int8), np.asarray(-4, np.int8)]
    convert_and_compare(model, [arrays], fallback="error")
    assert_near_kernel(model, arrays)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 5, 3), (4, 4)])
def test_diagonals(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    x, d = (rng.integers(-128, 128, s).astype(np.int8) for s in (shape, (*shape[:-2], min(shape[-2:]))))
    operands = [argument(x.shape, ONE), argument(d.shape, ONE, "d")]
    model = one_op("tfl.matrix_set_diag", operands, [argument(x.shape, ONE, "y")], {})
    convert_and_compare(model, [[x, d]], fallback="error")
    assert_near_kernel(model, [x, d])
    model = one_op("tfl.matrix_diag", [argument(x.shape, ONE)], [argument((*shape, shape[-1]), ONE, "y")], {})
    conversion = convert_and_compare(model, [[x]], fallback="error")
    assert "stores the integer 0" in conversion.report.rows[0].warning
    assert_near_kernel(model, [x])


def test_what_no_kernel_copies() -> None:
    assert "copies rows of i8 to i16" in refusal("tfl.embedding_lookup", [i32, ONE, Quantized.of(i16, 0.1)])
