"""Integers of 32 bits that are stored with fewer."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, i8, i16, i32
from tflq.transforms.narrow_storage import NarrowStorage


def _function(most: int) -> Function:
    """Numbers up to a bound, of which two slices are read, and joined behind each other."""
    x, sizes = argument((1, 8), i16), ((1, 8), (1, 8), (1, 8), (1, 3), (1, 5), (1, 8), (1, 8))
    wide, twice, bounded, first, second, joined, y = (Value(TensorType(size, i32)) for size in sizes)
    ops = [
        Op("tosa.cast", [x], [wide], {}),
        Op("tosa.add", [wide, wide], [twice], {}),
        Op("tosa.clamp", [twice], [bounded], {"min_val": -most, "max_val": most, "nan_mode": "PROPAGATE"}),
        Op("tosa.slice", [bounded], [first], {"start": (0, 0), "size": (1, 3)}),
        Op("tosa.slice", [bounded], [second], {"start": (0, 3), "size": (1, 5)}),
        Op("tosa.concat", [second, first], [joined], {"axis": 1}),
        Op("tosa.add", [joined, const(np.asarray([[1 << 20]]), i32)], [y], {}),
    ]
    return Function("main", [x], [y], ops)


@pytest.mark.parametrize(("most", "storage"), [(127, i8), (128, i16), (1 << 14, i16)])
def test_what_is_moved_is_stored_in_as_many_bits_as_it_needs(most: int, storage: object) -> None:
    function = _function(most)
    (x,), (y,) = function.inputs, function.outputs
    array = np.random.default_rng(5).integers(-(1 << 15), 1 << 15, x.type.sizes).astype(np.int16)
    want = evaluate_function(function, {x: array})[y]
    assert NarrowStorage().run(Module([function])).modified
    assert [op.results[0].type.storage for op in function.ops if op.short_name in ("slice", "concat")] == [storage] * 3
    np.testing.assert_array_equal(evaluate_function(function, {x: array})[y], want)


def test_what_needs_more_bits_stays() -> None:
    assert not NarrowStorage().run(Module([_function(1 << 15)])).modified
