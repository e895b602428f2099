"""Recurrent operators in float on TOSA: on the reference model, and back in the interpreter over several runs."""

from __future__ import annotations

import pytest
from matrix.run import case_of
from matrix.run_tosa import run_tosa


@pytest.mark.parametrize("name", ["float_svdf", "float_rnn", "float_sequence_rnn", "float_both_ways_rnn"])
def test_steps_written_out(name: str) -> None:
    outcome = run_tosa(case_of(name, 4), back=True)
    assert outcome.kind == "ok", outcome.detail
