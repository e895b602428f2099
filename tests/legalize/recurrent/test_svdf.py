"""SVDF: the state over several runs, sums that leave int32, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.recurrent import assert_same_states, svdf_model

from tflq.conversion import convert
from tflq.errors import UnsupportedError


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch": 1, "rank": 1, "units": 6},
        {"memory": 1},
        {"biased": False, "memory": 9},
        {"time": 32767, "scale": 15.0},
        {"time": 32767, "bias": 2**31 - 1, "scale": 15.0, "memory": 8},
    ],
    ids=["plain", "rank 1", "no memory", "no bias", "sums of 31 bits", "sums that wrap"],
)
def test_state_over_runs(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    assert_same_states(svdf_model(rng, **options), rng, runs=8)


def test_only_relu_has_a_kernel() -> None:
    model = svdf_model(np.random.default_rng(0), activation="TANH")
    (row,) = convert(model).report.rows
    assert (row.path, row.reason) == ("float", "SVDF's int8 kernel takes only RELU")
    with pytest.raises(UnsupportedError, match="takes only RELU; without --fallback error"):
        convert(model, fallback="error")


def test_kept_for_tflite_with_the_reason() -> None:
    conversion = convert(svdf_model(np.random.default_rng(0)))
    (row,) = conversion.report.rows
    assert row.path == "kept"
    assert "reset_all_variables" in row.reason
