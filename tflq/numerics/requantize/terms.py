"""Sums of scaled integers in int32: integer multipliers with as many bits behind the point as the sum leaves.

    sum of x_i r_i  ~  (sum of (x_i M_i + 2^(s_i - 1)) >> s_i) / 2^f        M_i = round(r_i 2^(f + s_i))

Each term is off by at most half a count of 2^-f for its shift, and by |x_i| 2^(-s_i - 1) counts for its
multiplier. With s_i as large as M_i < 2^31 allows, f is chosen so that the sum stays within 2^30.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_BOUND = 30
_MOST_BITS = 28
_ROUGHLY = 2.0**-7


class Term(NamedTuple):
    """A term's multipliers, int64 of its ratios' shape, and the shift of its products."""

    multiplier: np.ndarray
    shift: int


def fit_terms(
    ratios: Sequence[np.ndarray],
    reaches: Sequence[int],
    count: int = 1,
    most_bits: int = _MOST_BITS,
    roughly: float = _ROUGHLY,
) -> tuple[list[Term], int, float]:
    """The terms x_i r_i for |x_i| <= reach_i, `count` of each summed, and the bits behind the point. The bits are
    negative if nothing fits, as for infinite ratios. Third, the largest error of the sum before it is rounded, in
    counts. Terms that are off by no more than `roughly` are products without a shift."""
    if not all(np.isfinite(r).all() for r in ratios):
        return [Term(np.zeros(r.shape, np.int64), 0) for r in ratios], -1, math.inf
    most = count * sum(float(r.max()) * reach for r, reach in zip(ratios, reaches, strict=True))
    bits = min(_BOUND - math.frexp(most)[1], most_bits)
    plain = [Term(np.floor(np.ldexp(r, bits) + 0.5).astype(np.int64), 0) for r in ratios]
    off = count * sum(reaches) * 0.5 * 2.0**-bits
    if off <= roughly:
        return plain, bits, off
    terms, off = [], 0.0
    for ratio, reach in zip(ratios, reaches, strict=True):
        shift = min(max(31 - bits - math.frexp(float(ratio.max()))[1] - 1, 0), 46)
        multiplier = np.floor(np.ldexp(ratio, bits + shift) + 0.5).astype(np.int64)
        terms.append(Term(multiplier, shift))
        off += count * (0.5 + reach * 2.0 ** (-shift - 1)) * 2.0**-bits
    return terms, bits, off
