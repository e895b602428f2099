"""Known elements: what is open stays open, wherever it is moved to, and what is known is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.harness import argument, const

from tflq.analysis.known import Known, weight_sums
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, f32, i8, i32, i64
from tflq.transforms.shape_inference import Inference

MASKS = {f"{name}_mask": 0 for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")} | {"offset": False}
NONE = {"fused_activation_function": "NONE"}


def ints(*values: int) -> Value:
    return const(np.asarray(values), i32)


def after(name: str, others: Sequence[Value], attributes: dict[str, Any], element: ScalarType = i32) -> Any:
    """The elements that an op makes of the shape [?, 4, ?, 3]."""
    x = argument((None, 4, None, 3), f32)
    size = Op("tfl.shape", [x], [argument((4,), i32)], {"out_type": "INT32"})
    results = [Value(TensorType(None, element))]
    operands: list[Value | None] = [size.result, *others]
    op = Op(f"tfl.{name}", operands, results, attributes)
    known = Inference(Module([Function("main", [x], results, [size, op])]), {}).known
    return [known[v].elements() for v in results if v in known]


@pytest.mark.parametrize(
    ("name", "others", "attributes", "wanted"),
    [
        ("strided_slice", [ints(1), ints(4), ints(1)], MASKS, [4, None, 3]),
        ("slice", [ints(2), ints(-1)], {}, [None, 3]),
        ("gather", [ints(3, 0)], {"axis": 0, "batch_dims": 0}, [3, None]),
        ("concatenation", [ints(7)], {"axis": 0, **NONE}, [None, 4, None, 3, 7]),
        ("pack", [ints(1, 2, 3, 4)], {"axis": 1, "values_count": 2}, [None, 1, 4, 2, None, 3, 3, 4]),
        ("reshape", [ints(2, 2)], {"new_shape": None}, [None, 4, None, 3]),
        ("mul", [ints(2)], NONE, [None, 8, None, 6]),
        ("floor_div", [ints(3)], {}, [None, 1, None, 1]),
        ("maximum", [ints(3, 9, 1, 1)], {}, [None, 9, None, 3]),
        ("cast", [], {}, [None, 4, None, 3]),
        ("mirror_pad", [const(np.asarray([[1, 0]]), i32)], {"mode": "REFLECT"}, [4, None, 4, None, 3]),
    ],
)
def test_open_elements(name: str, others: list[Value], attributes: dict[str, Any], wanted: list[int | None]) -> None:
    assert after(name, others, attributes, i64 if name == "cast" else i32) == [wanted]


def test_reductions() -> None:
    assert after("reduce_prod", [ints(0)], {"keep_dims": False}) == [[None]]


def test_a_fused_activation_clamps() -> None:
    assert after("add", [ints(3)], {"fused_activation_function": "RELU6"}) == [[None, 6, None, 6]]
    assert after("add", [ints(3)], {"fused_activation_function": "TANH"}) == []


def test_a_quotient_by_zero_is_not_computed() -> None:
    assert after("floor_div", [ints(0)], {}) == []


def computed(name: str, a: np.ndarray, b: np.ndarray, element: ScalarType) -> list[Any]:
    result = Value(TensorType(None, element))
    op = Op(f"tfl.{name}", [const(a, element), const(b, element)], [result], dict(NONE))
    return list(Inference(Module([Function("main", [], [result], [op])]), {}).known[result].array.tolist())


def test_arithmetic_is_the_interpreters() -> None:
    top = np.iinfo(np.int32).max
    assert computed("add", np.asarray([top]), np.asarray([1]), i32) == [-top - 1]
    assert computed("div", np.asarray([-7, 7]), np.asarray([2, -2]), i32) == [-3, -3]
    assert computed("floor_div", np.asarray([-7]), np.asarray([2]), i32) == [-4]
    assert computed("floor_mod", np.asarray([-7]), np.asarray([2]), i32) == [1]
    assert computed("mul", np.asarray([0.1]), np.asarray([3]), f32) == [float(np.float32(0.1) * np.float32(3))]


def test_quantized_integers_are_no_numbers() -> None:
    element = UniformQuantizedType.of(i8, 0.5)
    values = const(np.asarray([1, 2]), element)
    result = Value(TensorType(None, element))
    op = Op("tfl.add", [values, values], [result], dict(NONE))
    assert result not in Inference(Module([Function("main", [], [result], [op])]), {}).known


def test_what_holds_of_both() -> None:
    one = Known.of(np.asarray([1, 2, 3]), np.asarray([False, False, True]))
    other = Known.of(np.asarray([1, 5, 3]), np.asarray([False, False, False]))
    joined = one.join(other)
    assert joined is not None
    assert joined.elements() == [1, None, None]
    assert one.join(Known(np.asarray([1]))) is None


def test_sums_of_weights_are_those_of_each_shape_and_kept_with_their_buffer() -> None:
    array = np.arange(-60, 60, dtype=np.int8).reshape(4, 3, 2, 5)
    weights = const(array, i8)
    rows = Value(TensorType((4, 30), i8), buffer=weights.buffer)
    for axis in ((1, 2, 3), (1, 2), (0,), (3,)):
        assert weight_sums(weights, axis).tolist() == array.sum(axis, dtype=np.int64).tolist()
    assert np.shares_memory(weight_sums(weights, (1, 2, 3)), weight_sums(rows, (1,)))
