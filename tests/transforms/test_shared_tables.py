"""Tables of which one has the entries of another with fewer bits."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, const

from tflq.analysis.evaluate.registry import evaluate_function
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, i32
from tflq.transforms.shared_tables import SharedTables

INDEX = argument((1, 9), i32)
WIDE = np.arange(-20, 236).reshape(1, -1, 1) ** 3 * 91


def looked_up(*tables: np.ndarray) -> Function:
    ops = [Op("tosa.gather", [const(table, i32), INDEX], [Value(TensorType((1, 9, 1), i32), "y")]) for table in tables]
    return Function("main", [INDEX], [op.result for op in ops], ops)


@pytest.mark.parametrize("bits", [1, 12])
@pytest.mark.parametrize("first", [True, False])
def test_the_narrow_table_is_a_shift_of_the_wide_one(bits: int, first: bool) -> None:
    narrow = (WIDE + (1 << bits >> 1)) >> bits
    function = looked_up(*((narrow, WIDE) if first else (WIDE, narrow)))
    index = np.random.default_rng(1).integers(0, 256, (1, 9)).astype(np.int32)
    want = evaluate_function(function, {INDEX: index})
    assert SharedTables().run(Module([function])).modified
    assert sorted(op.short_name for op in function.ops) == ["arithmetic_right_shift", "gather", "gather"]
    got = evaluate_function(function, {INDEX: index})
    for value in function.outputs:
        np.testing.assert_array_equal(got[value], want[value])


@pytest.mark.parametrize("other", [WIDE, WIDE >> 12, WIDE[:, :200], np.zeros_like(WIDE)])
def test_other_tables_stay(other: np.ndarray) -> None:
    assert not SharedTables().run(Module([looked_up(WIDE, other)])).modified
