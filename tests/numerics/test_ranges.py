"""Ranges from samples: each method against its formula on the values themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflq.numerics.ranges import PER_OCTAVE, finite_bins, histogram, least_squared_error, moving_average, percentile

VALUES = st.lists(st.floats(-1000, 1000, width=32), min_size=1, max_size=300).map(lambda v: np.array(v, np.float32))


def quantized_error(values: np.ndarray, low: float, high: float, levels: int = 256) -> float:
    scale = (high - low) / (levels - 1)
    steps = np.clip(np.rint(values / scale), np.rint(low / scale), np.rint(low / scale) + levels - 1)
    return float(((steps * scale - values) ** 2).sum())


@given(VALUES)
def test_the_moving_average_weighs_what_came_last(values: np.ndarray) -> None:
    samples = values.astype(np.float64).tolist()
    weights = [0.05 * 0.95**back for back in range(len(samples) - 1)] + [0.95 ** (len(samples) - 1)]
    wanted = sum(weight * value for weight, value in zip(weights, reversed(samples), strict=True))
    low, high = moving_average(samples, [value + 1 for value in samples])
    assert low == pytest.approx(wanted, abs=1e-9)
    assert high == pytest.approx(wanted + 1, abs=1e-9)


@given(VALUES, st.floats(50, 100))
def test_so_many_elements_are_between_percentiles(values: np.ndarray, percent: float) -> None:
    bins = finite_bins(histogram(values))
    low, high = percentile(bins, percent, float(values.min()), float(values.max()))
    assert values.min() <= low <= high + 1e-30 or percent == 50
    for end, share in ((low, 1 - percent / 100), (high, percent / 100)):
        same = finite_bins(histogram(np.array([end])))  # elements of the same bin may be on either side
        (number,) = same
        below, within = ((sum(c for b, c in bins.items() if test(b))) for test in (number.__gt__, number.__eq__))
        assert below - 1e-6 <= share * values.size <= below + within + 1e-6 or end in (values.min(), values.max())


def test_a_percentile_of_many_values_is_that_of_the_values() -> None:
    values = np.random.default_rng(0).normal(size=200_000).astype(np.float32)
    low, high = percentile(finite_bins(histogram(values)), 99.9, float(values.min()), float(values.max()))
    assert low == pytest.approx(np.quantile(values, 0.001), rel=1 / PER_OCTAVE)
    assert high == pytest.approx(np.quantile(values, 0.999), rel=1 / PER_OCTAVE)


@pytest.mark.parametrize("outlier", [0.0, 30.0, 300.0])
def test_the_least_squared_error_is_near_that_of_all_fractions(outlier: float) -> None:
    values = np.random.default_rng(0).normal(size=50_000).astype(np.float32)
    values[0] = outlier
    low, high = float(values.min()), float(values.max())
    found = quantized_error(values, *least_squared_error(finite_bins(histogram(values)), 256, low, high))
    errors = [quantized_error(values, low * part / 100, high * part / 100) for part in range(1, 101)]
    assert found <= 1.02 * min(errors)
    assert found < 0.95 * errors[-1] or outlier == 0


@given(VALUES)
def test_the_least_squared_error_is_of_a_range_around_zero(values: np.ndarray) -> None:
    ends = float(values.min()), float(values.max())
    low, high = least_squared_error(finite_bins(histogram(values)), 256, *ends)
    assert min(ends[0], 0) <= low <= 0 <= high <= max(ends[1], 0)
