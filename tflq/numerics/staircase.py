"""Requantization as a staircase, and division that climbs the same one.

A requantization f is monotone and has few results, so it is known by its thresholds T(n), the smallest x with f(x) >=
n. Any formula with the same thresholds is the same function on every input. Of TOSA's RESCALE
(`tflq.numerics.fixed_point`)

    T(n) = ceil(((2n - 1) 2^(s-1) - r) / M)    r = 2^30 for n >= 1, -2^30 for n <= 0 if it rounds twice (s > 31), else 0

A division that truncates, as the DIV kernel's on int32, rounds half away from zero by nature:

    f(x) = (a x + sign(x) c) / b

a/b is the best fraction near M / 2^s with a small enough that the sum stays in int32 (continued fractions: its error
is below 1/b^2, much less than that of a multiplier and a shift of as many bits); c is any number that meets every
threshold.

The proof in two steps. f climbs at the reals X(m) = X(1) + (m - 1) 2^s / M, the division at Y(m) = (m b - c) / a, on
both sides of zero; the thresholds are ceil(X(m)) and ceil(Y(m)). They are equal if no integer lies between X(m) and
Y(m), which the distances of all X(m) to the integers show at once for nearly every channel. Where they do not, each
threshold is computed exactly and compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = [
    "NEVER",
    "Division",
    "Staircase",
    "fit_division",
    "float_staircase",
    "float_thresholds",
    "rescale_staircase",
    "rescale_thresholds",
]

NEVER = 1 << 48
"""A threshold that no accumulator reaches; -NEVER is one that all have passed."""

_I31 = (1 << 31) - 1


def rescale_thresholds(
    levels: np.ndarray, mantissa: npt.ArrayLike, shift: npt.ArrayLike, *, double_round: bool = True
) -> np.ndarray:
    """T(n) of a RESCALE by non-negative multipliers int[C], for levels n int64[L]: int64 [L, C], within ±NEVER."""
    m, s = np.atleast_1d(np.asarray(mantissa, np.int64)), np.atleast_1d(np.asarray(shift, np.int64))
    odd = 2 * levels[:, None].astype(np.int64) - 1
    far = np.abs(odd) > (np.int64(1) << 62) >> (s - 1)
    target = np.where(far, 0, odd) << (s - 1)
    if double_round:
        target = target - np.where(s > 31, np.where(odd > 0, 1 << 30, -(1 << 30)), 0)
    limit = np.where(odd > 0, NEVER, -NEVER)
    exact = -((-target) // np.maximum(m, 1))
    return np.where(far | (m == 0), limit, np.clip(exact, -NEVER, NEVER))


def float_thresholds(levels: np.ndarray, scale: npt.ArrayLike) -> np.ndarray:
    """T(n) of round_half_away(double(x) * scale) for positive scales float64[C]: int64 [L, C], within ±NEVER."""
    d = np.atleast_1d(np.asarray(scale, np.float64))
    # half away: at or above n - 1/2 for n >= 1; strictly above it for n <= 0
    border = levels[:, None] - 0.5
    positive = border > 0
    guess = np.clip(np.ceil(border / d), -NEVER, NEVER)

    def reached(x: np.ndarray) -> np.ndarray:
        product = x * d
        return np.where(positive, product >= border, product > border)

    first = np.full(guess.shape, NEVER, np.float64)
    for step in (1, 0, -1):
        first = np.where(reached(guess + step), guess + step, first)
    return np.clip(first, -NEVER, NEVER).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Staircase:
    """A requantization of C channels: its levels n int64 [L], the thresholds of any of them, and where it climbs, as
    reals.

    `first` is X(1) and `step` the distance from X(m) to X(m + 1), float64 [C]; below zero it climbs at -X(m).
    `thresholds(levels, channels)` is int64 [L, channels].
    """

    levels: np.ndarray
    thresholds: Callable[[np.ndarray, np.ndarray], np.ndarray]
    first: np.ndarray
    step: np.ndarray


def rescale_staircase(
    levels: np.ndarray, mantissa: npt.ArrayLike, shift: npt.ArrayLike, *, double_round: bool = True
) -> Staircase:
    """The staircase of a RESCALE by non-negative multipliers int[C]; a zero one never climbs."""
    m, s = np.atleast_1d(np.asarray(mantissa, np.int64)), np.atleast_1d(np.asarray(shift, np.int64))
    with np.errstate(divide="ignore"):
        step = np.ldexp(1.0, s) / m
        first = (np.ldexp(0.5, s) - np.where(double_round & (s > 31), 2.0**30, 0.0)) / m
    return Staircase(
        levels,
        lambda n, channels: rescale_thresholds(n, m[channels], s[channels], double_round=double_round),
        first,
        step,
    )


def float_staircase(levels: np.ndarray, scale: npt.ArrayLike) -> Staircase:
    """The staircase of round_half_away(double(x) * scale), positive scales float64[C]."""
    d = np.atleast_1d(np.asarray(scale, np.float64))
    return Staircase(levels, lambda n, channels: float_thresholds(n, d[channels]), 0.5 / d, 1.0 / d)


@dataclass(frozen=True, slots=True)
class Division:
    """f(x) = trunc((a x + sign(x) c) / b), each int64 [C]."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray


def _fractions(d: np.ndarray, most: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Candidate fractions a/b near d float64[C] with 1 <= a <= `most`, best first: the last convergents, scaled up.

    All in float64: the integers are below 2^31, so the quotients' floors are exact.
    """
    found = np.zeros((6, d.size))  # the last convergent, the last semiconvergent, the convergent before
    index, bound = np.arange(d.size), most.astype(np.float64)
    p0, q0, p1, q1 = np.ones(d.size), np.zeros(d.size), np.zeros(d.size), np.ones(d.size)  # d < 1 starts at 0/1
    rest = 1.0 / d
    while index.size:
        term = np.floor(rest)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.maximum(np.floor(np.fmin((_I31 - q0) / q1, (bound - p0) / p1)), 0.0)
        stop = term > room
        step = np.where(stop, room, term)
        p2, q2, rest = p0 + step * p1, q0 + step * q1, rest - term
        done = stop | (rest < 2.0**-30)
        if done.any():
            ended = np.where(stop, (p1, q1, p2, q2, p0, q0), (p2, q2, p2, q2, p1, q1))
            found[:, index[done]] = ended[:, done]
            index, bound, rest, p1, q1, p2, q2 = (v[~done] for v in (index, bound, rest, p1, q1, p2, q2))
        p0, q0, p1, q1, rest = p1, q1, p2, q2, 1.0 / rest
    a, b = found[0::2], found[1::2]
    factor = np.floor(np.minimum(most / np.maximum(a, 1), _I31 / np.maximum(b, 1)))
    return list(zip((a * factor).astype(np.int64), (b * factor).astype(np.int64), strict=True))


def fit_division(stairs: Staircase, low: np.ndarray, high: np.ndarray) -> Division | None:
    """A `Division` with the thresholds of `stairs` on every x of [low, high] (int64 [C]), or None.

    The slope has to be below 1, and 0 has to map to 0. All intermediate values are in int32.
    """
    scale = np.maximum(1.0 / stairs.step, 2.0**-40)
    reach = np.maximum(np.maximum(np.abs(low), np.abs(high)), 1)
    most = np.floor(_I31 / (reach + 0.5 / scale + 2.0)).astype(np.int64)
    if (scale >= 1).any() or (most < 1).any():
        return None
    fractions = _fractions(scale, most)
    fit, left = _fit_by_distance(stairs, fractions, reach)
    if left.size:
        thresholds = stairs.thresholds(stairs.levels, left)
        some = _fit_exactly(
            stairs.levels, thresholds, [(a[left], b[left]) for a, b in fractions], low[left], high[left]
        )
        if some is None:
            return None
        for whole, part in ((fit.a, some.a), (fit.b, some.b), (fit.c, some.c)):
            whole[left] = part
    return fit


def _fit_by_distance(
    stairs: Staircase, fractions: list[tuple[np.ndarray, np.ndarray]], reach: np.ndarray
) -> tuple[Division, np.ndarray]:
    """The channels where the distances of X(m) to the integers prove a fraction, and the indices of the others."""
    first, step = stairs.first, stairs.step
    last = max(int(stairs.levels[-1]), int(1 - stairs.levels[0]), 1)
    finite = np.isfinite(step)
    with np.errstate(invalid="ignore"):
        climbs = np.clip(np.floor((reach - first) / step) + 2, 1, last)
        within = np.arange(last)[:, None] * step + first
        within -= np.floor(within)
        above, below = within.min(axis=0), 1.0 - within.max(axis=0)
    guard = 2.0**-20 + (first + last * step) * 2.0**-50  # of rounding in the distances
    a = b = c = np.zeros(first.shape, np.int64)
    left = np.ones(first.shape, bool)
    for numerator, denominator in fractions:
        top = np.maximum(numerator, 1)
        drift = denominator / top - step
        offset = np.floor(np.where(finite, top * (step - first + drift * (1 + climbs) / 2), 0) + 0.5)
        ends = drift + step - first - offset / top, climbs * drift + step - first - offset / top
        proven = (np.maximum(*ends) < below - guard) & (np.minimum(*ends) > guard - above)
        proven &= (numerator > 0) & (offset >= 0) & (numerator * reach + offset <= _I31)
        take = left & proven
        a, b, c = (
            np.where(take, numerator, a),
            np.where(take, denominator, b),
            np.where(take, offset, c).astype(np.int64),
        )
        left &= ~proven
        if not left.any():
            break
    return Division(a, b, c), np.flatnonzero(left)


def _fit_exactly(
    levels: np.ndarray,
    thresholds: np.ndarray,
    fractions: list[tuple[np.ndarray, np.ndarray]],
    low: np.ndarray,
    high: np.ndarray,
) -> Division | None:
    """A division that meets every threshold int64 [L, C] that x of [low, high] can reach."""
    reach = np.maximum(np.maximum(np.abs(low), np.abs(high)), 1)
    n = levels[:, None]
    level = np.where(n > 0, n, 1 - n)  # the |quotient| that has to be reached on one side of T, not on the other
    reached = np.abs(np.where(n > 0, np.maximum(thresholds, low), np.minimum(thresholds - 1, high)))
    missed = np.abs(np.where(n > 0, np.minimum(thresholds - 1, high), np.maximum(thresholds, low)))
    inside, below = thresholds <= high, thresholds > low
    must = np.where(n > 0, inside, below)
    must_not = np.where(n > 0, below & (thresholds > 1), inside & (thresholds < 0))
    a = b = c = np.zeros_like(low)
    left = np.ones(low.shape, bool)
    for numerator, denominator in fractions:
        floor_c = np.where(must, level * denominator - numerator * reached, 0).max(axis=0, initial=0)
        ceil_c = np.where(must_not, level * denominator - 1 - numerator * missed, _I31).min(axis=0, initial=_I31)
        middle = np.where(ceil_c == _I31, floor_c, (floor_c + ceil_c) // 2)
        fits = (floor_c <= ceil_c) & (numerator > 0) & (numerator * reach + middle <= _I31)
        take = left & fits
        a, b, c = np.where(take, numerator, a), np.where(take, denominator, b), np.where(take, middle, c)
        left &= ~fits
        if not left.any():
            return Division(a, b, c)
    return None
