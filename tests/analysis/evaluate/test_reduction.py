"""What reductions of no elements are."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.analysis.evaluate.registry import evaluate_op
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, i8, i32


@pytest.mark.parametrize(("name", "wanted"), [("tosa.reduce_max", -128), ("tosa.reduce_min", 127)])
def test_the_greatest_of_nothing_is_what_any_other_replaces(name: str, wanted: int) -> None:
    op = Op(name, [Value(TensorType((2, 0), i8))], [Value(TensorType((2, 1), i8))], {"axis": 1})
    (found,) = evaluate_op(op, [np.zeros((2, 0), np.int8)]) or []
    np.testing.assert_array_equal(found, np.full((2, 1), wanted))


def test_the_first_of_nothing_is_0() -> None:
    op = Op("tosa.argmax", [Value(TensorType((2, 0, 3), i8))], [Value(TensorType((2, 3), i32))], {"axis": 1})
    (found,) = evaluate_op(op, [np.zeros((2, 0, 3), np.int8)]) or []
    np.testing.assert_array_equal(found, np.zeros((2, 3)))


@pytest.mark.parametrize(("name", "wanted"), [("tfl.reduce_max", -128), ("tfl.reduce_min", 127)])
def test_over_several_axes(name: str, wanted: int) -> None:
    axes = constant(np.asarray([0, 1], np.int32))
    op = Op(name, [Value(TensorType((2, 0), i8)), axes], [Value(TensorType((), i8))], {"keep_dims": False})
    (found,) = evaluate_op(op, [np.zeros((2, 0), np.int8), axes.array]) or []
    assert found == wanted
