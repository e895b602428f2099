"""Requantization as a staircase.

A requantization f is monotone and has few results, so its thresholds T(n), the smallest x with f(x) >= n, determine it.
Any formula with the same thresholds is the same function on every input (`tflq.numerics.division_fit`). For TOSA's
RESCALE (`tflq.numerics.fixed_point`)

    T(n) = ceil(((2n - 1) 2^(s-1) - r) / M)    r = 2^30 for n >= 1, -2^30 for n <= 0 if it rounds twice (s > 31), else 0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from tflq.numerics.fixed_point import quantize_multipliers

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy.typing as npt


_MOST_LEFT = 29
"""Bits to the left up to which RESCALE has a shift for a multiplier."""
NEVER = 1 << 48
"""A threshold that no accumulator reaches; all have passed -NEVER."""


def rescale_thresholds(
    levels: np.ndarray, mantissa: npt.ArrayLike, shift: npt.ArrayLike, *, double_round: bool = True
) -> np.ndarray:
    """T(n) of a RESCALE by non-negative multipliers int[C], for levels n int64 [L] or [L, C]: int64 [L, C], within
    ±NEVER."""
    m, s = np.atleast_1d(np.asarray(mantissa, np.int64)), np.atleast_1d(np.asarray(shift, np.int64))
    odd = 2 * _of_channels(levels).astype(np.int64) - 1
    far = np.abs(odd) > (np.int64(1) << 62) >> (s - 1)
    target = np.where(far, 0, odd) << (s - 1)
    if double_round:
        target = target - np.where(s > 31, np.where(odd > 0, 1 << 30, -(1 << 30)), 0)
    limit = np.where(odd > 0, NEVER, -NEVER)
    exact = -((-target) // np.maximum(m, 1))
    return np.where(far | (m == 0), limit, np.clip(exact, -NEVER, NEVER))


def float_thresholds(levels: np.ndarray, scale: npt.ArrayLike) -> np.ndarray:
    """T(n) of round_half_away(double(x) * scale) for positive scales float64[C] and levels n [L] or [L, C]: int64
    [L, C], within ±NEVER."""
    d = np.atleast_1d(np.asarray(scale, np.float64))
    # half away: at or above n - 1/2 for n >= 1; strictly above it for n <= 0
    border = _of_channels(levels) - 0.5
    positive = border > 0
    guess = np.clip(np.ceil(border / d), -NEVER, NEVER)

    def reached(x: np.ndarray) -> np.ndarray:
        product = x * d
        return np.where(positive, product >= border, product > border)

    first = np.full(guess.shape, NEVER, np.float64)
    for step in (1, 0, -1):
        first = np.where(reached(guess + step), guess + step, first)
    return np.clip(first, -NEVER, NEVER).astype(np.int64)


def roundings_agree(
    scale: npt.ArrayLike, twice: npt.ArrayLike, low: np.ndarray, high: np.ndarray, bottom: int, top: int
) -> np.ndarray:
    """Whether sums are rounded alike once, by `scale` in float64, and twice, by the multiplier of `twice`: bool
    [C]. Both results are clamped to the levels from bottom to top; it holds for every sum in [low, high], int64
    [C].

    Both functions are monotone, so they are equal if all thresholds are that the sums can tell apart.
    """
    reals = np.broadcast_to(np.asarray(scale, np.float64), low.shape)
    mantissa, left = (np.broadcast_to(v, low.shape) for v in quantize_multipliers(twice))
    reach = np.maximum(np.maximum(-low, high), 1).astype(np.float64)
    with np.errstate(invalid="ignore"):
        valid = (mantissa > 0) & (left <= _MOST_LEFT) & (reals > 0) & (reach * np.maximum(reals, 1) < 2.0**30)
    valid &= (low <= high) & (reach * np.exp2(np.maximum(left, 0)) < 2.0**31)
    levels = np.arange(bottom + 1, top + 1)
    once = float_thresholds(levels, np.where(valid, reals, 1.0))
    again = rescale_thresholds(levels, np.where(valid, mantissa, 1), np.where(valid, 31 - left, 31))
    seen = [np.clip(t, low, high + 1) for t in (once, again)]
    return valid & (seen[0] == seen[1]).all(axis=0)


def _of_channels(levels: np.ndarray) -> np.ndarray:
    """Levels as [L, 1] or [L, C]."""
    return levels[:, None] if levels.ndim == 1 else levels


class Staircase:
    """A requantization of C channels: the levels that each climbs to, where, and where as reals.

    The levels of channel c are bottom[c] to bottom[c] + count - 1 (int64 [C]). `first` is X(1) and `step` the distance
    from X(m) to X(m + 1), float64 [C]; below zero it climbs at -X(m). `formula` gives the thresholds of `numbers` ([C]
    each).
    """

    def __init__(
        self,
        bottom: np.ndarray,
        count: int,
        first: np.ndarray,
        step: np.ndarray,
        formula: Callable[..., np.ndarray],
        numbers: tuple[np.ndarray, ...],
    ) -> None:
        self.bottom: Final = bottom
        self.count: Final = count
        self.first: Final = first
        self.step: Final = step
        self.formula: Final = formula
        self.numbers: Final = numbers

    @property
    def top(self) -> np.ndarray:
        """The highest level of each channel."""
        return self.bottom + (self.count - 1)

    @property
    def last(self) -> np.ndarray:
        """The highest number of climbs of each channel on one side of zero: int64 [C]."""
        return np.maximum(np.maximum(self.top, 1 - self.bottom), 1)

    @property
    def levels(self) -> np.ndarray:
        """All levels: int64 [L, C]."""
        return self.bottom + np.arange(self.count)[:, None]

    def of(self, channels: np.ndarray | slice) -> Staircase:
        """The staircase of some of the channels."""
        numbers = tuple([v[channels] for v in self.numbers])
        return Staircase(
            self.bottom[channels], self.count, self.first[channels], self.step[channels], self.formula, numbers
        )

    def thresholds(self, levels: np.ndarray) -> np.ndarray:
        """T(n) for levels n int64 [L] or [L, C]: int64 [L, C]."""
        return self.formula(levels, *self.numbers)


def rescale_steps(mantissa: np.ndarray, shift: np.ndarray, double_round: bool) -> tuple[np.ndarray, np.ndarray]:
    """`first` and `step` of the staircase of a RESCALE by non-negative multipliers int64 [C]."""
    with np.errstate(divide="ignore"):
        whole = np.ldexp(1.0, shift)
        step = whole / mantissa
        first = (whole * 0.5 - np.where(double_round & (shift > 31), 2.0**30, 0.0)) / mantissa
    return first, step


def rescale_staircase(
    bottom: npt.ArrayLike,
    count: int,
    mantissa: npt.ArrayLike,
    shift: npt.ArrayLike,
    *,
    double_round: bool = True,
    steps: tuple[np.ndarray, np.ndarray] | None = None,
) -> Staircase:
    """The staircase of a RESCALE by non-negative multipliers int[C]; a zero one never climbs. steps: its
    `rescale_steps`, where they are known."""
    m, s = np.atleast_1d(np.asarray(mantissa, np.int64)), np.atleast_1d(np.asarray(shift, np.int64))
    first, step = steps or rescale_steps(m, s, double_round)
    formula = partial(rescale_thresholds, double_round=double_round)
    bottom, m, s = (np.broadcast_to(v, step.shape) for v in (bottom, m, s))
    return Staircase(bottom, count, first, step, formula, (m, s))


def float_staircase(bottom: npt.ArrayLike, count: int, scale: npt.ArrayLike) -> Staircase:
    """The staircase of round_half_away(double(x) * scale), positive scales float64[C]."""
    d = np.atleast_1d(np.asarray(scale, np.float64))
    return Staircase(np.broadcast_to(bottom, d.shape), count, 0.5 / d, 1.0 / d, float_thresholds, (d,))


# round_half_away(double(x) * scale) on int32 alone, where no RESCALE is equal: a candidate and its threshold.
#
# The function is odd, so let x >= 0. A RESCALE by less than the scale gives n, which is the result or one less; the
# result is
#
#     n + (x >= T(n + 1))        T(m) = ceil((m - 1/2) / scale), the smallest x with a result of m or more
#
# T is a line of integers. With 1 / scale = P + (Q + R / 2^31) / 2^b, P whole, Q below 2^b, R below 2^31,
#
#     T(n + 1) = n P + K + ((n Q + k + ((n 2^t + c) R + 2^(30 + t)) >> (31 + t)) >> b)
#
# where K, k and c make up the constant 1 + 1 / (2 scale), less a little; MUL with a shift has the 64-bit product that
# this takes. b is 15, or less where R would be too small for c R to make up the constant. The line is compared with T
# at every n.

_I31 = (1 << 31) - 1
_BITS = (15, 14, 13, 12, 11, 10)  # b
_TINY = tuple(2.0**-e for e in range(36, 9, -1))  # by how much less than 1 the line is raised


class ThresholdLine:
    """int64 [C] each, except `spread`, t. `multiplier` and `shift` give n; `last` is the greatest result."""

    __slots__ = (
        "bits",
        "last",
        "multiplier",
        "part",
        "part_offset",
        "rest",
        "rest_offset",
        "shift",
        "spread",
        "whole",
        "whole_offset",
    )

    def __init__(
        self,
        multiplier: np.ndarray,
        shift: np.ndarray,
        last: np.ndarray,
        spread: int,
        whole: np.ndarray,
        whole_offset: np.ndarray,
        part: np.ndarray,
        part_offset: np.ndarray,
        rest: np.ndarray,
        rest_offset: np.ndarray,
        bits: np.ndarray,
    ) -> None:
        self.multiplier: Final = multiplier
        self.shift: Final = shift
        self.last: Final = last
        self.spread: Final = spread
        self.whole: Final = whole  # P
        self.whole_offset: Final = whole_offset  # K
        self.part: Final = part  # Q
        self.part_offset: Final = part_offset  # k
        self.rest: Final = rest  # R
        self.rest_offset: Final = rest_offset  # c
        self.bits: Final = bits  # b


def fit_threshold_line(scale: np.ndarray, last: int, reach: int) -> ThresholdLine | None:
    """The line for positive scales float64[C] below 1/2, x in [0, reach], for results up to `last`.

    None if int32 does not hold it.
    """
    if not (scale < 0.5).all() or reach > _I31 or last > 1 << 15:
        return None
    spread = 30 - last.bit_length()  # n 2^t is below 2^30, and c may be as much
    reached = np.clip(np.floor(reach * scale + 0.5), 1, last).astype(np.int64)
    rows = [_channel(float(d), np.arange(most), reach, spread) for d, most in zip(scale, reached, strict=True)]
    if any(row is None for row in rows):
        return None
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


# Where functions of a sum of squares step from one stored value to the next.
#
#     root_thresholds      least s with r sqrt(s / n) >= m + 1/2
#     quotient_thresholds  greatest s with x / (r sqrt(s)) >= m + 1/2
#     response_thresholds  greatest s with x r (bias + alpha s)^-beta >= m + 1/2
#
# The first two are exact; the last is in double.


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
