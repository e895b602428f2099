"""SCATTER_ND, SPARSE_TO_DENSE and segments; tests/matrix/scattering.py and segments.py have random models of them."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, interpret, one_op

import tflq
from tflq.ir.types import UniformQuantizedType, i8, i16, i32

Quantized = UniformQuantizedType


def test_updates_of_int16_that_meet_are_added_and_saturate() -> None:
    element = Quantized.of(i16, 0.5)
    operands = [const(np.asarray([[1], [1], [2]]), i32), argument((3,), element), const(np.asarray([4]), i32)]
    model = one_op("tfl.scatter_nd", operands, [argument((4,), element, "y")], {})
    conversion = tflq.convert(model, fallback="error")
    updates = np.asarray([30000, 30000, -7], np.int16)
    assert interpret(conversion.data, [[updates]])[0][0].tolist() == [0, 32767, -7, 0]


def test_zeros_are_stored_or_real_as_the_semantics_say() -> None:
    element = Quantized.of(i8, 0.5, 9)
    operands = [const(np.asarray([[1]]), i32), argument((1,), element), const(np.asarray([2]), i32)]
    model = one_op("tfl.scatter_nd", operands, [argument((2,), element, "y")], {})
    update = np.asarray([-4], np.int8)
    conversion = convert_and_compare(model, [[update]])
    assert "stores the integer 0" in conversion.report.rows[0].warning
    real = tflq.convert(model, semantics="real")
    assert interpret(real.data, [[update]])[0][0].tolist() == [9, -4]


@pytest.mark.parametrize("scalar", [False, True])
def test_the_last_of_equal_places_stays(scalar: bool) -> None:
    element = Quantized.of(i8, 0.5, 9)
    values = argument(() if scalar else (3,), element)
    places = const(np.asarray([[0, 1], [1, 2], [0, 1]]), i32)
    operands = [places, const(np.asarray([2, 3]), i32), values, const(np.asarray(5), element)]
    model = one_op("tfl.sparse_to_dense", operands, [argument((2, 3), element, "y")], {"validate_indices": False})
    array = np.asarray(7 if scalar else [1, 2, 3], np.int8)
    convert_and_compare(model, [[array]], fallback="error")


@pytest.mark.parametrize(
    ("name", "wanted"), [("sum", [[6, 10], [3, 3]]), ("max", [[5, 7], [-128, -128]]), ("min", [[4, 6], [127, 127]])]
)
def test_segments_of_rows(name: str, wanted: list[list[int]]) -> None:
    element = Quantized.of(i8, 0.5, 3)
    operands = [argument((3, 2), element), const(np.asarray([0, -1, 0]), i32), const(np.asarray(2), i32)]
    model = one_op(f"tfl.unsorted_segment_{name}", operands, [argument((2, 2), element, "y")], {})
    rows = np.asarray([[4, 7], [99, 99], [5, 6]], np.int8)
    conversion = tflq.convert(model, fallback="error")
    assert interpret(conversion.data, [[rows]])[0][0].tolist() == wanted
