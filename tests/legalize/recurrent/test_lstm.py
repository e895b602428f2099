"""LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM on int8: every variant, the state over several runs, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from recurrent import assert_same_states, lstm_model

from tflq.conversion import convert
from tflq.errors import UnsupportedError


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


def test_a_cell_state_that_the_kernel_has_no_tanh_for_is_computed_in_float() -> None:
    (row,) = convert(lstm_model(np.random.default_rng(0), cell_exponent=-8)).report.rows
    assert (row.path, row.reason) == ("float", "the scale of 'c' is not one of 2^-15 to 2^-9, as the kernel asks")


def test_the_report_says_how_many_steps() -> None:
    (row,) = convert(lstm_model(np.random.default_rng(0)), format="tosa").report.rows
    assert (row.path, row.note) == ("integer", "3 steps written out; its state is variables")
