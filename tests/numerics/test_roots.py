"""Thresholds on sums of squares: the stored value steps there, and not before."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tflq.numerics.roots import quotient_thresholds, response_thresholds, root_thresholds


@pytest.mark.parametrize(("ratio", "count"), [(Fraction(1), 4), (Fraction(3, 7), 9), (Fraction(5, 2), 1)])
def test_roots_step_at_their_thresholds(ratio: Fraction, count: int) -> None:
    sums = np.arange(20000)
    steps = np.floor(float(ratio) * np.sqrt(sums / count) + 0.5)
    table = root_thresholds(ratio, count, 60)
    np.testing.assert_array_equal((sums[:, None] >= table).sum(1), np.minimum(steps, 60))


@pytest.mark.parametrize("ratio", [Fraction(1, 128), Fraction(5, 512), Fraction(1, 4)])
def test_quotients_step_at_their_thresholds(ratio: Fraction) -> None:
    table = quotient_thresholds(ratio, 50, 128)
    for x in (0, 1, 7, 50):
        sums = np.arange(max(x * x, 1), 5000)
        steps = np.minimum(np.floor(x / (float(ratio) * np.sqrt(sums)) + 0.5), 128)
        np.testing.assert_array_equal((sums[:, None] <= table[x]).sum(1), steps)


def test_responses_step_at_their_thresholds() -> None:
    table = response_thresholds(0.7, 1.0, 0.01, 0.75, 50, 128)
    sums = np.arange(5000)
    for x in (0, 3, 50):
        steps = np.floor(x * 0.7 * (1.0 + 0.01 * sums) ** -0.75 + 0.5)
        np.testing.assert_array_equal((sums[:, None] <= table[x]).sum(1), steps)
