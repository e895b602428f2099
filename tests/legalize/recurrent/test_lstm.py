"""LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM on int8: every variant, the state over several runs, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import interpret
from support.recurrent import assert_same_states, lstm_model

from tflq.base.errors import UnsupportedError
from tflq.conversion.convert import convert
from tflq.formats.tflite.reader import read
from tflq.formats.tflite.writer import write
from tflq.ir.types import UniformQuantizedPerAxisType, i8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["unidirectional_sequence_lstm", "lstm"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cifg": True},
        {"peephole": True},
        {"peephole": True, "cifg": True},
        {"outputs": 4},
        {"outputs": 4, "proj_clip": 0.5},
        {"outputs": 4, "peephole": True, "batch": 3},
        {"cell_clip": 0.3},
        {"cell_exponent": -15},
        {"cell_exponent": -16},
        {"cell_exponent": -20, "outputs": 4},
        {"cell_exponent": -16, "peephole": True, "norm": True},
        {"cell_exponent": -9},
        {"batch": 1, "steps": 1},
        {"norm": True},
        {"norm": True, "cells": 40},
        {"norm": True, "cells": 2, "cifg": True},
        {"norm": True, "peephole": True, "cifg": True, "outputs": 4},
    ],
    ids=str,
)
def test_state_over_runs(name: str, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(7)
    assert_same_states(lstm_model(rng, name, **options), rng)


@pytest.mark.parametrize("options", [{}, {"peephole": True, "outputs": 4}], ids=str)
def test_time_first(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(8)
    assert_same_states(lstm_model(rng, time_major=True, steps=4, batch=3, **options), rng)


@pytest.mark.parametrize("options", [{"format": "tosa"}, {"state": "variables"}], ids=str)
def test_too_many_steps_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match="513 steps would be written out"):
        convert(lstm_model(np.random.default_rng(0), steps=513), **options)


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [-16, -8, 1])
def test_a_kernel_without_a_tanh_for_the_cell_state_is_kept_with_a_warning(exponent: int) -> None:
    file = lstm_model(np.random.default_rng(0), cell_exponent=exponent)
    conversion = convert(file)
    (row,) = conversion.report.rows
    assert row.path == "kept"
    assert "has a tanh only for cell states of scale 2^-15 to 2^-9, and 'c' has another" in row.warning
    assert row.warning.endswith("the output gate is multiplied by the input gate instead")
    batches = [[np.random.default_rng(n).integers(-128, 128, (2, 3, 5)).astype(np.int8)] for n in range(3)]
    want = interpret(file, batches)
    for data in (conversion.data, convert(file, state="variables").data):
        np.testing.assert_array_equal(interpret(data, batches), want)


@pytest.mark.parametrize(
    ("given", "options", "reason"),
    [
        ({"cell_exponent": -16}, {"semantics": "real"}, "the output gate is multiplied by the input gate instead"),
        ({"cell_exponent": -16, "cifg": True}, {"state": "variables"}, "by whatever its memory holds instead"),
        ({"cell_exponent": -31}, {}, "the scale of 'c' is not one of 2^-30 to 2^1, as the kernel asks"),
        ({"cell_exponent": -8, "name": "lstm"}, {}, "the scale of 'c' is not one of 2^-30 to 2^-9, as the kernel asks"),
    ],
    ids=str,
)
def test_what_no_kernel_gets_right_is_computed_in_float(
    given: dict[str, Any], options: dict[str, Any], reason: str
) -> None:
    (row,) = convert(lstm_model(np.random.default_rng(0), **given), **options).report.rows
    assert row.path == "float"
    assert reason in row.reason


def test_several_scales_are_kept_with_a_warning() -> None:
    """The kernel finds none, and runs."""
    module = read(lstm_model(np.random.default_rng(0)))
    weights = module.main.ops[0].operand(2)
    weights.type = weights.type.with_element(UniformQuantizedPerAxisType.of(i8, 0, np.linspace(0.01, 0.02, 6), 0))
    file = bytes(write(module))
    conversion = convert(file)
    (row,) = conversion.report.rows
    assert (row.path, row.warning) == (
        "kept",
        "UNIDIRECTIONAL_SEQUENCE_LSTM's kernel reads only one of the several scales of 'w1'",
    )
    batches = [[np.random.default_rng(0).integers(-128, 128, (2, 3, 5)).astype(np.int8)]]
    np.testing.assert_array_equal(interpret(conversion.data, batches), interpret(file, batches))
    assert convert(file, state="variables").report.rows[0].path == "float"


def test_the_report_says_how_many_steps() -> None:
    (row,) = convert(lstm_model(np.random.default_rng(0)), format="tosa").report.rows
    assert (row.path, row.note) == ("integer", "3 steps written out; its state is variables")
