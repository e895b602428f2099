"""Small fractions that stand for ratios of scales: scaled integers compared exactly, in int32.

The sign of s1 x - s2 y, for integers |x|, |y| <= N, depends only on which fractions of terms up to N the ratio s2 / s1
lies between. So does any other ratio between the same two: their mediant, of terms below 2 N, or the ratio itself where
it is such a fraction. x A and y B, for A / B = s1 / s2 so replaced, are within 2 N^2. Source: Farey sequences.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

__all__ = ["comparing_factors"]


def comparing_factors(first: np.ndarray, second: np.ndarray, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers A and B, int64 of the arrays' shape, for which x A and y B compare as x first and y second do, for all
    |x|, |y| <= reach."""
    pairs = np.stack([first.reshape(-1), second.reshape(-1)], 1)
    distinct, places = np.unique(pairs, axis=0, return_inverse=True)
    terms = np.asarray([_terms(float(a), float(b), reach) for a, b in distinct], np.int64)
    found = terms[places.reshape(-1)]
    return found[:, 0].reshape(first.shape), found[:, 1].reshape(first.shape)


def _terms(first: float, second: float, reach: int) -> tuple[int, int]:
    """Of scales that may be 0 or infinite: infinite ones are equal, and above all others."""
    if not first or not second:
        return int(first > 0), int(second > 0)
    if first == second:
        return 1, 1
    if math.inf in (first, second):
        return (reach + 1, 1) if first > second else (1, reach + 1)
    return _between(Fraction(first) / Fraction(second), reach)


def _between(ratio: Fraction, reach: int) -> tuple[int, int]:
    """The ratio, if its terms are within reach, else the mediant of its neighbours of such terms."""
    if max(ratio.numerator, ratio.denominator) <= reach:
        return ratio.numerator, ratio.denominator
    low, high = (0, 1), (1, 0)
    while max(middle := (low[0] + high[0], low[1] + high[1])) <= reach:
        below = middle[0] * ratio.denominator < ratio.numerator * middle[1]
        near, far = (low, high) if below else (high, low)
        steps = _steps(ratio, near, far, reach)
        moved = near[0] + steps * far[0], near[1] + steps * far[1]
        low, high = (moved, high) if below else (low, moved)
    return middle


def _steps(ratio: Fraction, near: tuple[int, int], far: tuple[int, int], reach: int) -> int:
    """How often `far` can be added to `near` without passing the ratio, or leaving what is within reach."""
    gaps = [abs(ratio.numerator * q - ratio.denominator * p) for p, q in (near, far)]
    return min(gaps[0] // gaps[1], *((reach - n) // f for n, f in zip(near, far, strict=True) if f))
