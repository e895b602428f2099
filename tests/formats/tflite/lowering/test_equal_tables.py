"""Equal tables are there once, in whichever operator or function they are looked up."""

from __future__ import annotations

import numpy as np
from support.harness import edge_inputs, interpret
from support.sums import sums, tables

import tflq
from tflq.formats.tflite.lowering.tables import ShareTables


def test_tables_of_one_function() -> None:
    model = sums(0.1, 0.1, 0.2, filler=50_000)
    made = tflq.convert(model).data
    assert tables(made) == 2
    draws = edge_inputs(tflq.read(model).main.inputs)
    for want, got in zip(interpret(model, draws), interpret(made, draws), strict=True):
        for a, b in zip(want, got, strict=True):
            np.testing.assert_array_equal(a, b)


def test_tables_of_two_functions() -> None:
    assert tables(tflq.convert(sums(0.1, functions=2, filler=50_000)).data) == 1


def test_nothing_to_share() -> None:
    module = tflq.read(tflq.convert(sums(0.1, 0.2, filler=50_000)).data)
    assert not ShareTables().run(module).modified
