"""Kernels that compute on stored integers, whatever their scales: reproduced, with a warning; or honoured (real)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import argument, const, convert_and_compare, edge_inputs, one_op

import tflq
from tflq.ir.ops import Value
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType, i8, i32, ui8

SEVERAL = UniformQuantizedPerAxisType.of(i8, 3, [0.05, 0.2, 0.4], 0)
ONE = UniformQuantizedType.of(i8, 0.1, 3)
POOL = {
    "padding": "VALID",
    "stride_w": 1,
    "stride_h": 1,
    "filter_width": 2,
    "filter_height": 2,
    "fused_activation_function": "NONE",
}
RESIZE = {"align_corners": False, "half_pixel_centers": True}


def _size(*numbers: int) -> Value:
    return const(np.asarray(numbers, np.int32), i32, "size")


def _compared(model: bytes, warning: str) -> None:
    batches = edge_inputs(tflq.read(model).main.inputs)
    (row,) = convert_and_compare(model, batches).report.rows
    assert row.path == "integer"
    assert warning in row.warning
    (row,) = tflq.convert(model, semantics="real").report.rows
    assert not row.warning


@pytest.mark.parametrize("elements", [(SEVERAL, ONE), (ONE, SEVERAL)], ids=["operand", "result"])
@pytest.mark.parametrize("name", ["average_pool_2d", "max_pool_2d", "resize_bilinear", "resize_nearest_neighbor"])
def test_windows(name: str, elements: tuple[Any, Any]) -> None:
    pools = name.endswith("2d")
    x, y = argument((1, 4, 5, 3), elements[0]), argument((1, 3, 4, 3) if pools else (1, 7, 8, 3), elements[1], "y")
    operands = [x] if pools else [x, _size(7, 8)]
    _compared(one_op(f"tfl.{name}", operands, [y], POOL if pools else RESIZE, 3), "the stored integers")


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("name", ["arg_max", "arg_min"])
def test_order(name: str, axis: int) -> None:
    """Along another dim than that of the scales, stored integers are in the order of the values."""
    shape = (1, 4, 5, 3)
    y = argument(shape[:axis] + shape[axis + 1 :], i32, "y")
    model = one_op(
        f"tfl.{name}", [argument(shape, SEVERAL), const(np.asarray(axis), i32)], [y], {"output_type": "INT32"}, 2
    )
    _compared(model, "compares the stored integers" if axis == 3 else "")


def test_a_pool_with_an_activation_is_real() -> None:
    model = one_op(
        "tfl.max_pool_2d",
        [argument((1, 4, 5, 3), ONE)],
        [argument((1, 3, 4, 3), SEVERAL, "y")],
        {**POOL, "fused_activation_function": "RELU"},
        3,
    )
    (row,) = tflq.convert(model).report.rows
    assert "the range of RELU is not defined on several scales" in row.reason


def test_rows_of_length_one() -> None:
    y = argument((1, 4, 5, 3), UniformQuantizedType.of(i8, 2.0**-7, 0), "y")
    model = one_op(
        "tfl.l2_normalization", [argument((1, 4, 5, 3), SEVERAL)], [y], {"fused_activation_function": "NONE"}
    )
    _compared(model, "several scales")


@pytest.mark.parametrize(
    ("element", "warning"),
    [(ONE, "stores the integer 0"), (UniformQuantizedType.of(i8, 0.3, -5), "copies"), (SEVERAL, "copies")],
)
def test_rows_that_keys_find(element: Any, warning: str) -> None:
    keys, wanted = (const(np.asarray(v), i32, n) for v, n in (([1, 4], "keys"), ([4, 3, 1], "wanted")))
    results = [argument((3, 1, 2, 3), element, "y"), argument((3,), ui8, "hits")]
    _compared(one_op("tfl.hashtable_lookup", [wanted, keys, argument((2, 1, 2, 3), ONE)], results, {}), warning)


def test_rows_of_a_table() -> None:
    operands = [const(np.asarray([2, 0]), i32, "ids"), argument((3, 1, 2, 3), ONE)]
    _compared(one_op("tfl.embedding_lookup", operands, [argument((2, 1, 2, 3), SEVERAL, "y")], {}), "copies")
