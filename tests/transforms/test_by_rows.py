"""Products that are computed row by row where steps read their rows."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, i8, i16, i32
from tflq.transforms.by_rows import ByRows

RNG = np.random.default_rng(2)
X = argument((1, 5, 4), i8)


def result(element: ScalarType, *shape: int) -> Value:
    return Value(TensorType(shape, element), "y")


def stepwise(starts: list[int], size: int = 1, height: int = 1) -> tuple[Function, list[Op]]:
    """A product of 5 rows of X, requantized, and slices of it, which are added up."""
    rows = Op("tosa.reshape", [X], [result(i8, 5, 1, 1, 4)])
    weights = const(RNG.integers(-127, 128, (3, height, 1, 4)), i8)
    pad = (0, height - 1, 0, 0)
    attributes = {"pad": pad, "stride": (1, 1), "dilation": (1, 1), "input_zp": 3, "weight_zp": 0}
    operands: list[Value | None] = [rows.result, weights, const(RNG.integers(-900, 900, 3), i32)]
    conv = Op("tosa.conv2d", operands, [result(i32, 5, 1, 1, 3)], attributes)
    numbers = {"multiplier": np.asarray([1 << 30], np.int32), "shift": np.asarray([36], np.int8)}
    flags = {"input_zp": 0, "output_zp": 0, "rounding_mode": "SINGLE_ROUND", "scale32": True, "per_channel": False}
    scaled = Op("tosa.rescale", [conv.result], [result(i16, 5, 1, 1, 3)], numbers | flags)
    flat = Op("tosa.reshape", [scaled.result], [result(i16, 1, 5, 3)])
    ops = [rows, conv, scaled, flat]
    slices = [
        Op("tosa.slice", [flat.result], [result(i16, 1, size, 3)], {"start": (0, at, 0), "size": (1, size, 3)})
        for at in starts
    ]
    return Function("main", [X], [op.result for op in slices], [*ops, *slices]), ops


def test_each_row_is_a_product_where_it_is_read() -> None:
    function, before = stepwise([3, 0, 4, 1, 2])
    array = RNG.integers(-128, 128, (1, 5, 4)).astype(np.int8)
    want = evaluate_function(function, {X: array})
    assert ByRows().run(Module([function])).modified
    names = [op.short_name for op in function.ops]
    assert names == ["slice", "reshape", "conv2d", "rescale", "reshape"] * 5
    assert not set(before) & set(function.ops)
    got = evaluate_function(function, {X: array})
    for value in function.outputs:
        np.testing.assert_array_equal(got[value], want[value])


@pytest.mark.parametrize(
    ("starts", "size", "height"),
    [([0, 1, 2, 3], 1, 1), ([0, 1, 2, 3, 3], 1, 1), ([0, 2], 2, 1), ([0, 1, 2, 3, 4], 1, 2)],
)
def test_what_is_not_read_row_by_row_stays(starts: list[int], size: int, height: int) -> None:
    """A row that nothing reads or two read, two rows at a time, and a window over several."""
    function, _ = stepwise(starts, size, height)
    assert not ByRows().run(Module([function])).modified


def test_a_product_that_is_returned_stays() -> None:
    function, before = stepwise([0, 1, 2, 3, 4])
    function.outputs.append(before[-1].result)
    assert not ByRows().run(Module([function])).modified


def test_channels_of_one_row_are_no_rows() -> None:
    x = argument((1, 1, 1, 4), i8)
    weights, bias = const(RNG.integers(-127, 128, (4, 1, 1, 4)), i8), const(np.zeros(4), i32)
    attributes = {"pad": (0, 0, 0, 0), "stride": (1, 1), "dilation": (1, 1), "input_zp": 3, "weight_zp": 0}
    conv = Op("tosa.conv2d", [x, weights, bias], [result(i32, 1, 1, 1, 4)], attributes)
    slices = [
        Op("tosa.slice", [conv.result], [result(i32, 1, 1, 1, 1)], {"start": (0, 0, 0, at), "size": (1, 1, 1, 1)})
        for at in range(4)
    ]
    assert not ByRows().run(Module([Function("main", [x], [op.result for op in slices], [conv, *slices])])).modified
