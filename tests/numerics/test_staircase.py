"""Thresholds of requantizations: on a line of integers, and of functions of sums of squares."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tflq.numerics.fixed_point import half_away, multiply, quantize_multipliers
from tflq.numerics.staircase import (
    ThresholdLine,
    fit_threshold_line,
    float_thresholds,
    quotient_thresholds,
    response_thresholds,
    root_thresholds,
    roundings_agree,
)

# A scale by a double as a candidate and its threshold.


def result(line: ThresholdLine, x: np.ndarray) -> np.ndarray:
    """For x int64 [n, C], not negative; all that is computed is in int32, but for the products."""
    n = np.minimum((x * line.multiplier + (np.int64(1) << (line.shift - 1))) >> line.shift, line.last - 1)
    spread = (n << line.spread) + line.rest_offset
    low = (spread * line.rest + (1 << (30 + line.spread))) >> (31 + line.spread)
    below = n * line.part + line.part_offset + low
    threshold = n * line.whole + line.whole_offset + (below >> line.bits)
    for value in (spread, low, below, threshold, n * line.whole, n * line.part):
        assert np.abs(value).max() < 1 << 31
    return n + (x >= threshold)


@pytest.mark.parametrize("last", [255, 32768])
@pytest.mark.parametrize("exponent", [-2, -8, -13, -20, -28])
def test_around_every_threshold(last: int, exponent: int) -> None:
    rng = np.random.default_rng(-exponent)
    scale = 2.0**exponent * np.asarray([1.0, 0.75, *rng.uniform(0.5, 1, 6)])
    reach = int(min(2 * last / scale.min(), (1 << 31) - 1))
    line = fit_threshold_line(scale, last, reach)
    assert line is not None
    thresholds = float_thresholds(np.arange(1, last + 1), scale)
    x = np.concatenate([thresholds, thresholds - 1, thresholds + 1, rng.integers(0, reach, (500, scale.size))])
    x = np.clip(x, 0, reach)
    expected = np.minimum(np.floor(x * scale + 0.5), last)
    np.testing.assert_array_equal(result(line, x), expected)


def test_none_for_scales_of_a_half_and_more() -> None:
    assert fit_threshold_line(np.asarray([0.5]), 127, 1000) is None


# Thresholds on sums of squares: the stored value steps there, and not before.


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


@pytest.mark.slow
@pytest.mark.parametrize("powers", [False, True])
def test_two_roundings_agree_with_one(powers: bool) -> None:
    """For every sum of a range: of float64 once, and of a multiplier twice."""
    rng, found = np.random.default_rng(0), set()
    for _ in range(1500):
        scale = 2.0 ** (rng.integers(-6, 2, 5) if powers else rng.uniform(-9, 2, 5))
        low, high = -rng.integers(0, 300, 5), rng.integers(0, 300, 5)
        bottom, top = -int(rng.integers(0, 128)), int(rng.integers(1, 128))
        agree = roundings_agree(scale, scale, low, high, bottom, top)
        for channel, (mantissa, left) in enumerate(zip(*quantize_multipliers(scale), strict=True)):
            x = np.arange(low[channel], high[channel] + 1)
            once = np.clip(half_away(x * scale[channel]), bottom, top)
            twice = np.clip(multiply(x.astype(np.int32), mantissa, left), bottom, top)
            assert agree[channel] == (once == twice).all(), (scale[channel], low, high)
        found.update(agree.tolist())
    assert found == {True, False}


def test_two_roundings_do_not_agree_where_types_end() -> None:
    one = np.ones(1, np.int64)
    for scale in (0.0, np.inf, np.nan, 2.0**31):
        assert not roundings_agree(np.asarray([scale]), np.asarray([scale]), -(one << 20), one << 20, -128, 127).any()
