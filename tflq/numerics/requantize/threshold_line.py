"""round_half_away(double(x) * scale) on int32 alone, where no RESCALE is equal: a candidate and its threshold.

The function is odd, so let x >= 0. A RESCALE by less than the scale gives n, which is the result or one less; the
result is

    n + (x >= T(n + 1))        T(m) = ceil((m - 1/2) / scale), the smallest x with a result of m or more

T is a line of integers. With 1 / scale = P + (Q + R / 2^31) / 2^b, P whole, Q below 2^b, R below 2^31,

    T(n + 1) = n P + K + ((n Q + k + ((n 2^t + c) R + 2^(30 + t)) >> (31 + t)) >> b)

where K, k and c make up the constant 1 + 1 / (2 scale), less a little; MUL with a shift has the 64-bit product that
this takes. b is 15, or less where R would be too small for c R to make up the constant. The line is compared with T
at every n. Where all results are 0, T is the integer beyond all x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tflq.numerics.requantize.staircase import float_thresholds

_I31 = (1 << 31) - 1
_BITS = (15, 14, 13, 12, 11, 10)  # b
_TINY = tuple(2.0**-e for e in range(36, 9, -1))  # by how much less than 1 the line is raised


class ThresholdLine(NamedTuple):
    """int64 [C] each, except `spread`, t. `multiplier` and `shift` give n; `last` is the greatest result."""

    multiplier: np.ndarray
    shift: np.ndarray
    last: np.ndarray
    spread: int
    whole: np.ndarray  # P
    whole_offset: np.ndarray  # K
    part: np.ndarray  # Q
    part_offset: np.ndarray  # k
    rest: np.ndarray  # R
    rest_offset: np.ndarray  # c
    bits: np.ndarray  # b


def fit_threshold_line(scale: np.ndarray, last: int, reach: int) -> ThresholdLine | None:
    """The line for positive scales float64[C] below 1/2, x in [0, reach], for results up to `last`.

    None if int32 does not hold it.
    """
    if not (scale < 0.5).all() or reach > _I31 or last > 1 << 15:
        return None
    spread = 30 - last.bit_length()  # n 2^t is below 2^30, and c may be as much
    reached = np.clip(np.floor(reach * scale + 0.5), 1, last).astype(np.int64)
    rows = []
    for d, most in zip(scale, reached, strict=True):
        row = _channel(float(d), np.arange(most), reach, spread)
        if row is None:
            return None
        rows.append(row)
    shift = np.minimum(31 - np.frexp(scale)[1], 62).astype(np.int64)
    multiplier = np.floor(np.ldexp(scale, shift)).astype(np.int64)
    return ThresholdLine(multiplier, shift, reached, spread, *np.asarray(rows, np.int64).T)


def _channel(scale: float, n: np.ndarray, reach: int, spread: int) -> tuple[int, ...] | None:
    """P, K, Q, k, R, c, b of one channel, or None."""
    from fractions import Fraction

    inverse = 1 / Fraction(scale)
    thresholds = np.minimum(float_thresholds(n + 1, np.asarray([scale]))[:, 0], reach + 1)
    if int(inverse) * int(n[-1]) > _I31:
        return None
    gap = float((1 + (n + 0.5) * float(inverse) - thresholds)[thresholds <= reach].min(initial=1))
    for bits in _BITS:
        fixed = int(inverse * (1 << (bits + 31)))
        whole, part, rest = fixed >> (bits + 31), (fixed >> 31) & ((1 << bits) - 1), fixed & _I31
        for tiny in (gap / 2, *_TINY):  # between the line and an integer below it
            constant = 1 + inverse / 2 - Fraction(tiny)
            offset = constant.numerator // constant.denominator
            below = (constant - offset) * (1 << bits)
            # MUL adds a half; the rest of the constant is c R / 2^(31 + t)
            remainder = below - int(below) - Fraction(1, 2)
            c = round(remainder * (1 << (31 + spread)) / rest) if rest else 0
            row = (whole, offset, part, int(below), rest, c, bits)
            if abs(c) <= 1 << 30 and _climbs(_line(row, n, spread), thresholds, reach):
                return row
    if thresholds[0] > reach and reach < _I31:
        return 0, reach + 1, 0, 0, 0, 0, _BITS[0]
    return None


def _climbs(line: np.ndarray, thresholds: np.ndarray, reach: int) -> bool:
    """Whether the line has every threshold within reach, and is beyond reach for all others."""
    same = np.where(thresholds > reach, line > reach, line == thresholds)
    return bool(same.all()) and int(line.max()) <= _I31


def _line(row: tuple[int, ...], n: np.ndarray, spread: int) -> np.ndarray:
    """T(n + 1) on the line."""
    whole, offset, part, part_offset, rest, c, bits = row
    low = (((n << spread) + c) * rest + (1 << (30 + spread))) >> (31 + spread)
    return n * whole + offset + ((n * part + part_offset + low) >> bits)
