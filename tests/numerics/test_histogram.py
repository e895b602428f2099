"""Histograms: which bin a value is in, and that bins follow the values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tflq.numerics.ranges import FINITE, PER_OCTAVE, edges, finite_bins, histogram

FLOATS = st.lists(st.floats(width=32), min_size=1, max_size=60)


def bin_of(value: float) -> int:
    ((number, count),) = finite_bins(histogram(np.array([value]))).items()
    assert count == 1
    return number


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_value_is_between_the_edges_of_its_bin(value: float) -> None:
    (low,), (high,) = edges(np.array([bin_of(value)]))
    assert low <= value <= high


def test_bins_follow_one_another_and_are_a_thirty_second_of_an_octave() -> None:
    for bins in (np.arange(-FINITE, 0), np.arange(FINITE)):  # between these are -0 and +0
        low, high = (side.astype(np.float32) for side in edges(bins))
        assert np.array_equal(np.nextafter(high[:-1], np.float32(np.inf)), low[1:])
    octave = np.arange(bin_of(1.0), bin_of(2.0))
    assert len(octave) == PER_OCTAVE
    starts = edges(octave)[0]
    assert np.array_equal(starts, 1 + np.arange(PER_OCTAVE) / PER_OCTAVE)


@given(FLOATS, FLOATS)
def test_every_finite_value_is_counted_once_in_any_order(left: list[float], right: list[float]) -> None:
    first, second = (np.array(side, np.float32) for side in (left, right))
    whole = finite_bins(histogram(np.concatenate([second, first])))
    assert whole == finite_bins(histogram(first) + histogram(second))
    assert list(whole) == sorted(whole)
    assert sum(whole.values()) == np.isfinite(first).sum() + np.isfinite(second).sum()
