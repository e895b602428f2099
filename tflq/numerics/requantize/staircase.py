"""Requantization as a staircase.

A requantization f is monotone and has few results, so its thresholds T(n), the smallest x with f(x) >= n, determine it.
Any formula with the same thresholds is the same function on every input. For TOSA's RESCALE (`numerics.fixed_point`)

    T(n) = ceil(((2n - 1) 2^(s-1) - r) / M)    r = 2^30 for n >= 1, -2^30 for n <= 0 if it rounds twice (s > 31), else 0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tflq.numerics.fixed_point import quantize_multipliers

if TYPE_CHECKING:
    import numpy.typing as npt


_MOST_LEFT = 29
"""Bits to the left up to which RESCALE has a shift for a multiplier."""
NEVER = 1 << 48
"""A threshold that no accumulator reaches; all have passed -NEVER."""
_FAR: Final = 2.0**30
_CLOSE: Final = 2.0**-20
"""A number below _FAR in float64 that is farther from whole numbers than this is between the same two as the exact one:
four roundings are 2^-51 of it."""


def rescale_thresholds(
    levels: np.ndarray, mantissa: npt.ArrayLike, shift: npt.ArrayLike, *, double_round: bool = True
) -> np.ndarray:
    """T(n) of a RESCALE by non-negative multipliers int[C], for levels n int64 [L], which climb, or [L, C]: int64
    [L, C], within ±NEVER."""
    m, s = np.atleast_1d(np.asarray(mantissa, np.int64)), np.atleast_1d(np.asarray(shift, np.int64))
    odd = 2 * _of_channels(levels).astype(np.int64) - 1
    second = np.where(s > 31, 1 << 30, 0) if double_round else np.zeros_like(s)
    with np.errstate(divide="ignore", invalid="ignore"):
        half, jump = np.ldexp(0.5, s) / m, second / m
        reals = odd.astype(np.float64) * half
        if levels.ndim == 1:
            positive = int(np.searchsorted(levels, 1))
            reals[:positive] += jump
            reals[positive:] -= jump
        else:
            reals -= np.where(odd > 0, jump, -jump)
        first = np.ceil(reals)
        reals -= first
        far = np.abs(odd).max(initial=0) * half.max(initial=0) + jump.max(initial=0) + 1
    least, most = reals.min(initial=-0.5), reals.max(initial=-0.5)
    if not (least > _CLOSE - 1 and most < -_CLOSE and far < _FAR):
        rest = ~((reals > _CLOSE - 1) & (reals < -_CLOSE) & (np.abs(first) < _FAR))
        first[rest] = _exact_thresholds(*(np.broadcast_to(v, rest.shape)[rest] for v in (odd, m, s, second)))
    return first.astype(np.int64)


def _exact_thresholds(odd: np.ndarray, m: np.ndarray, s: np.ndarray, second: np.ndarray) -> np.ndarray:
    """T(n) of odd numbers 2n - 1 in integers, within ±NEVER."""
    far = np.abs(odd) > (np.int64(1) << 62) >> (s - 1)
    target = (np.where(far, 0, odd) << (s - 1)) - np.where(odd > 0, second, -second)
    limit = np.where(odd > 0, NEVER, -NEVER)
    return np.where(far | (m == 0), limit, np.clip(-((-target) // np.maximum(m, 1)), -NEVER, NEVER))


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
