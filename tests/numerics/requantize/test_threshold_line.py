"""A scale by a double as a candidate and its threshold, which lies on a line of integers."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.numerics.requantize.staircase import float_thresholds
from tflq.numerics.requantize.threshold_line import ThresholdLine, fit_threshold_line


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


def test_a_channel_whose_results_are_all_0() -> None:
    """Its threshold is beyond all x, of which the largest int32 leaves none."""
    scale, reach = np.asarray([2.0**-33, 0.01]), (1 << 31) - 2
    line = fit_threshold_line(scale, 32768, reach)
    assert line is not None
    x = np.asarray([[0, 0], [reach, 50], [reach // 2, reach]])
    np.testing.assert_array_equal(result(line, x), [[0, 0], [0, 1], [0, 32768]])
    assert fit_threshold_line(scale, 32768, reach + 1) is None
