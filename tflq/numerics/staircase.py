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

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "NEVER",
    "Division",
    "Staircase",
    "fit_division",
    "fit_divisions",
    "float_staircase",
    "float_thresholds",
    "rescale_staircase",
    "rescale_thresholds",
]

NEVER = 1 << 48
"""A threshold that no accumulator reaches; -NEVER is one that all have passed."""

_I31 = (1 << 31) - 1
_HOPELESS, _FEW = 0.9, 16  # where this share of more than a few channels is not proven, the numerators are too small
_BLOCK = 128  # channels whose distances stay in the cache

_Pairs: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Numerators and denominators of fractions, int64 [C] each."""


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


class Staircase(NamedTuple):
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


class Division(NamedTuple):
    """f(x) = trunc((a x + sign(x) c) / b), each int64 [C]."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray


def _fractions(step: np.ndarray, most: np.ndarray) -> list[_Pairs]:
    """Fractions a/b near 1 / step float64[C] with 1 <= a <= `most`, best first: the last convergents, scaled up.

    All in float64: the integers are below 2^31, so the quotients' floors are exact.
    """
    size = step.size
    found = np.zeros((6, size))  # the last convergent, the last semiconvergent, the convergent before
    index, bound = np.arange(size), most.astype(np.float64)
    p0, q0, p1, q1 = np.ones(size), np.zeros(size), np.zeros(size), np.ones(size)  # below 1 it starts at 0/1
    rest = step
    while index.size:
        term = np.floor(rest)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.maximum(np.floor(np.fmin((_I31 - q0) / q1, (bound - p0) / p1)), 0.0)
        stop = term > room
        times = np.where(stop, room, term)
        p2, q2, rest = p0 + times * p1, q0 + times * q1, rest - term
        done = stop | (rest < 2.0**-30)
        if done.any():
            ended = np.where(stop, (p1, q1, p2, q2, p0, q0), (p2, q2, p2, q2, p1, q1))
            found[:, index[done]] = ended[:, done]
            index, bound, rest, p1, q1, p2, q2 = (v[~done] for v in (index, bound, rest, p1, q1, p2, q2))
        p0, q0, p1, q1, rest = p1, q1, p2, q2, 1.0 / rest
    a, b = found[0::2], found[1::2]
    factor = np.floor(np.minimum(most / np.maximum(a, 1), _I31 / np.maximum(b, 1)))
    return list(zip((a * factor).astype(np.int64), (b * factor).astype(np.int64), strict=True))


def _multiples(step: np.ndarray, most: np.ndarray, tried: int) -> list[_Pairs]:
    """The best of the few largest a, b = a * step rounded: less exact than the convergents, and soon found."""
    numerators = np.maximum(most - np.arange(tried)[:, None], 0).astype(np.float64)
    products = numerators * step
    error = np.abs(products - np.rint(products))
    best = error.argmin(axis=0), np.arange(most.size)
    return [(numerators[best].astype(np.int64), np.minimum(np.rint(products[best]), _I31 + 1).astype(np.int64))]


def _near(step: np.ndarray, most: np.ndarray) -> list[_Pairs]:
    return _multiples(step, most, 32)


def _nearer(step: np.ndarray, most: np.ndarray) -> list[_Pairs]:
    return _multiples(step, most, 128)


def fit_division(stairs: Staircase, low: np.ndarray, high: np.ndarray) -> Division | None:
    """A `Division` with the thresholds of `stairs` on every x of [low, high] (int64 [C]), or None.

    The slope has to be below 1, and 0 has to map to 0. All intermediate values are in int32.
    """
    return fit_divisions(stairs, low, high, [low.size])[0]


def fit_divisions(stairs: Staircase, low: np.ndarray, high: np.ndarray, sizes: Sequence[int]) -> list[Division | None]:
    """`fit_division` of many requantizations with the same levels at once: one after the other, they have `sizes`
    channels."""
    owner, count = np.repeat(np.arange(len(sizes)), sizes), np.asarray(sizes)
    step = np.minimum(stairs.step, 2.0**40)
    reach = np.maximum(np.maximum(np.abs(low), np.abs(high)), 1)
    most = np.floor(_I31 / (reach + 0.5 * step + 2.0)).astype(np.int64)
    lost = np.bincount(owner, (step <= 1) | (most < 1), count.size) > 0
    gaps = _gaps(stairs, reach)
    a, b, c = (np.zeros(low.shape, np.int64) for _ in range(3))
    left = np.nonzero(~lost[owner])[0]
    pairs: list[_Pairs] = []
    for candidates, exactly in ((_near, False), (_nearer, False), (None, True), (_fractions, True)):
        if not left.size:
            break
        if candidates is not None:
            pairs = candidates(step[left], most[left])
        if exactly:
            thresholds = stairs.thresholds(stairs.levels, left)
            some, proven = _fit_exactly(stairs.levels, thresholds, pairs, low[left], high[left])
        else:
            some, proven = _fit_by_gaps(stairs, left, gaps.of(left), pairs, reach[left])
        done = left[proven]
        a[done], b[done], c[done] = some.a[proven], some.b[proven], some.c[proven]
        left, pairs = left[~proven], [(p[~proven], q[~proven]) for p, q in pairs]
        if candidates is _nearer:
            before = np.bincount(owner[np.concatenate((done, left))], minlength=count.size)
            after = np.bincount(owner[left], minlength=count.size)
            hopeless = (after > _HOPELESS * before) & (before > _FEW)
            lost |= hopeless
            keep = ~hopeless[owner[left]]
            left, pairs = left[keep], [(p[keep], q[keep]) for p, q in pairs]
    lost[owner[left]] = True
    starts = np.cumsum(count) - count
    return [
        None if gone else Division(a[i : i + n], b[i : i + n], c[i : i + n])
        for gone, i, n in zip(lost, starts, count, strict=True)
    ]


class _Gaps(NamedTuple):
    """Of each channel: how often it climbs within reach, and the least distances of X(m) to integers on both sides."""

    climbs: np.ndarray
    below: np.ndarray
    above: np.ndarray

    def of(self, channels: np.ndarray) -> _Gaps:
        return _Gaps(self.climbs[channels], self.below[channels], self.above[channels])


def _gaps(stairs: Staircase, reach: np.ndarray) -> _Gaps:
    first, step = stairs.first, stairs.step
    last = max(int(stairs.levels[-1]), int(1 - stairs.levels[0]), 1)
    with np.errstate(invalid="ignore"):
        climbs = np.clip(np.floor((reach - first) / step) + 2, 1, last)
    order = np.arange(last)[:, None]
    least, most = np.empty(first.shape), np.empty(first.shape)
    with np.errstate(invalid="ignore"):
        for at in range(0, first.size, _BLOCK):
            block = slice(at, at + _BLOCK)
            within = order * step[block]
            within += first[block]
            within -= np.floor(within)
            least[block], most[block] = within.min(axis=0), within.max(axis=0)
    return _Gaps(climbs, least, 1.0 - most)


def _fit_by_gaps(
    stairs: Staircase, channels: np.ndarray, gaps: _Gaps, pairs: list[_Pairs], reach: np.ndarray
) -> tuple[Division, np.ndarray]:
    """A division for each of `channels`, and whether the gaps prove it."""
    first, step, climbs = stairs.first[channels], stairs.step[channels], gaps.climbs
    finite = np.isfinite(step)
    last = max(int(stairs.levels[-1]), int(1 - stairs.levels[0]), 1)
    guard = 2.0**-20 + (first + last * step) * 2.0**-50  # of rounding in the distances
    clear = (gaps.below > guard) & (gaps.above > guard)  # an X(m) that is an integer, or may be one, has two sides
    a, b, c = (np.zeros(first.shape, np.int64) for _ in range(3))
    proven = np.zeros(first.shape, bool)
    for numerator, denominator in pairs:
        top = np.maximum(numerator, 1)
        drift = denominator / top - step
        centred = step - first + drift * (1 + climbs) / 2 - (gaps.above - gaps.below) / 2
        offset = np.floor(np.where(finite, top * centred, 0) + 0.5)
        ends = drift + step - first - offset / top, climbs * drift + step - first - offset / top
        fits = clear & (np.maximum(*ends) < gaps.above - guard) & (np.minimum(*ends) > guard - gaps.below)
        fits &= (numerator > 0) & (denominator <= _I31) & (offset >= 0) & (numerator * reach + offset <= _I31)
        take = fits & ~proven
        a[take], b[take], c[take] = numerator[take], denominator[take], offset[take]
        proven |= fits
        if proven.all():
            break
    return Division(a, b, c), proven


def _fit_exactly(
    levels: np.ndarray,
    thresholds: np.ndarray,
    fractions: list[_Pairs],
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[Division, np.ndarray]:
    """A division for each channel, and whether it meets every threshold int64 [L, C] that x of [low, high] reaches."""
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
            break
    return Division(a, b, c), ~left
