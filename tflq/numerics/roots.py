"""Thresholds of functions of a sum of squares: where they step from one stored value to the next.

    root_thresholds      least s with r sqrt(s / n) >= m + 1/2
    quotient_thresholds  greatest s with x / (r sqrt(s)) >= m + 1/2
    response_thresholds  greatest s with x r (bias + alpha s)^-beta >= m + 1/2

The first two are exact; the last is in double.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fractions import Fraction

_I31 = (1 << 31) - 1


def root_thresholds(ratio: Fraction, count: int, steps: int) -> np.ndarray:
    """int64 [steps], for m = 0, 1, ..."""
    unit = count / ratio**2 / 4
    return np.asarray([min(math.ceil(unit * (2 * m + 1) ** 2), _I31) for m in range(steps)], np.int64)


def quotient_thresholds(ratio: Fraction, greatest: int, steps: int) -> np.ndarray:
    """int64 [greatest + 1, steps], for x = 0, 1, ... and m = 0, 1, ...; -1 for x = 0, which never reaches a step."""
    unit = 4 / ratio**2
    odd = [(2 * m + 1) ** 2 for m in range(steps)]
    top, bottom = unit.numerator, unit.denominator
    rows = [[min(top * x * x // (bottom * o), _I31) for o in odd] for x in range(1, greatest + 1)]
    return np.asarray([[-1] * steps, *rows], np.int64)


def response_thresholds(ratio: float, bias: float, alpha: float, beta: float, greatest: int, steps: int) -> np.ndarray:
    """int64 [greatest + 1, steps], for x = 0, 1, ... and m = 0, 1, ...; -1 where no sum is small enough."""
    x, m = np.arange(greatest + 1)[:, None], np.arange(steps) + 0.5
    with np.errstate(all="ignore"):
        sums = np.floor(((x * ratio / m) ** (1 / beta) - bias) / alpha)
    return np.clip(np.nan_to_num(sums, nan=-1.0), -1, _I31).astype(np.int64)
