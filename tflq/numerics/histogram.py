"""Histograms of float32 values in bins that do not depend on the values: 32 to each power of two.

A bin holds the floats that have the sign, the exponent and the first five bits of the fraction in common, so that its
width is 1/32 of the power of two below it. Bins are numbered in the order of their values: 0 holds +0 and the smallest
positive values, -1 holds -0 and the smallest negative ones. Sums of histograms are exact, in any order.
"""

from __future__ import annotations

from typing import Final

import numpy as np

PER_OCTAVE: Final = 32
_SHIFT: Final = 18  # of 23 bits of a fraction, five remain
_MAGNITUDES: Final = 1 << (31 - _SHIFT)
_PIECE: Final = 1 << 13
FINITE: Final = 255 * PER_OCTAVE
"""Bins from -FINITE up to, but without, FINITE are of finite values."""


def histogram(values: np.ndarray) -> np.ndarray:
    """How many of float32 values are in each bin: int64, the bins of +0 and up, then those of -0 and down. What is not
    finite counts beyond FINITE in both halves."""
    counts = np.zeros(2 * _MAGNITUDES, np.int64)
    add_histogram(counts, values)
    return counts


def add_histogram(counts: np.ndarray, values: np.ndarray) -> None:
    """Adds the histogram of values to counts, in pieces that stay in the processor's cache."""
    patterns = np.ascontiguousarray(values, np.float32).reshape(-1).view(np.uint32)
    for start in range(0, patterns.size, _PIECE):
        places = (patterns[start : start + _PIECE] >> np.uint32(_SHIFT)).astype(np.intp)
        np.add.at(counts, places, 1)  # of one dim and as it is stored, it goes without buffers


def finite_bins(counts: np.ndarray) -> dict[int, int]:
    """The bins of finite values that are not empty, by number and in order. counts: of `histogram`, or sums of such."""
    ordered = np.concatenate([counts[_MAGNITUDES : _MAGNITUDES + FINITE][::-1], counts[:FINITE]])
    found = np.flatnonzero(ordered)
    return dict(zip((found - FINITE).tolist(), ordered[found].tolist(), strict=True))


def edges(bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of bins, by their numbers, as float64. Both belong to the bin."""
    magnitudes = np.where(bins < 0, -1 - bins, bins).astype(np.uint32)
    near = (magnitudes << np.uint32(_SHIFT)).view(np.float32).astype(np.float64)
    far = ((magnitudes + np.uint32(1)) * np.uint32(1 << _SHIFT) - np.uint32(1)).view(np.float32).astype(np.float64)
    return np.where(bins < 0, -far, near), np.where(bins < 0, -near, far)
