"""Requantization by other integer operations: a division, one RESCALE, a sum of scaled integers, products of limbs.

A division that truncates, like the DIV kernel's on int32, can climb the same staircase as a requantization:

    f(x) = (a x + sign(x) c) / b

a/b is a fraction near M / 2^s with a small enough that the sum stays in int32 (its error is much smaller than that of a
multiplier and a shift of as many bits); c is any number that meets every threshold.

The proof: a requantization (`tflq.numerics.staircase`) climbs at the reals X(m) = X(1) + (m - 1) 2^s / M, the division
at Y(m) = (m b - c) / a, on both sides of zero; the thresholds are ceil(X(m)) and ceil(Y(m)). They are equal if no
integer lies between X(m) and Y(m). There are three ways to see that, each for what the one before left over:

    the least distances of all X(m) to the integers, against the largest of all Y(m) - X(m)
    the distance of each X(m), against its own Y(m) - X(m)
    each threshold, computed exactly: where X(m) is an integer, or may be one

The first two need no list of all X(m). Y(m) - X(m) is linear in m, so only corners of the convex hull of the points
(m, X(m) mod 1) can be nearest to an integer, and `_corners` goes from one to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from tflq.base.results import has_form, returns
from tflq.numerics.staircase import Staircase, float_thresholds, rescale_staircase

_I31 = (1 << 31) - 1
_BLOCK = 512  # channels whose multiples stay in the cache, as 32 bits

_TURN = 2.0**-32
_WHOLE = 2.0**32
_FAR = 2.0**40

_Pair: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Numerators and denominators of fractions, int64 [C] each."""

_Offsets: TypeAlias = tuple[np.ndarray, np.ndarray]
"""c of each channel, int64 [C], and whether it is proven, bool [C]."""


class Division(NamedTuple):
    """f(x) = trunc((a x + sign(x) c) / b), each int64 [C]."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray


class _Task(NamedTuple):
    """The channels that need a division, for inputs in [low, high] (int64 [C]).

    reach: the largest magnitude of an input, 1 at least. most: the largest numerator whose sums stay in int32. first,
    step: where each climbs, finite. climbs: how often within reach, on the side where it does so more often, and once
    more. guard: more than all roundings in the distances of X(m) to the integers and to Y(m) add up to. below, above:
    the least distances of all X(m) to the integers on both sides.
    """

    stairs: Staircase
    low: np.ndarray
    high: np.ndarray
    reach: np.ndarray  # int64 [C], as is `most`; the rest is float64
    most: np.ndarray
    first: np.ndarray
    step: np.ndarray
    climbs: np.ndarray
    guard: np.ndarray
    below: np.ndarray
    above: np.ndarray

    @classmethod
    def searched(cls, stairs: Staircase, low: np.ndarray, high: np.ndarray) -> _Task:
        first, step, last = np.minimum(stairs.first, _FAR), np.minimum(stairs.step, _FAR), stairs.last.astype(float)
        reach = np.maximum(np.maximum(np.abs(low), np.abs(high)), 1)
        most = np.floor(_I31 / (reach + 0.5 * step + 2.0)).astype(np.int64)
        climbs = np.minimum(np.maximum(np.floor((reach - first) / step) + 2.0, 1.0), last)
        guard = 2.0**-20 + last * 2.0**-31 + (first + last * step) * 2.0**-50
        for block in _blocks(last.size):
            last[block] = last[block].max()
        distances = nearest(_turns(first), _turns(step), last)
        return cls(stairs, low, high, reach, most, first, step, climbs, guard, *distances)

    def of(self, channels: np.ndarray) -> _Task:
        return _Task(self.stairs.of(channels), *(v[channels] for v in self[1:]))

    @property
    def clear(self) -> np.ndarray:
        """Whether surely no X(m) is an integer: such a threshold has two sides."""
        return (self.below > self.guard) & (self.above > self.guard)


_Candidates: TypeAlias = Callable[[_Task], list[_Pair]]
_Proof: TypeAlias = Callable[[_Task, np.ndarray, np.ndarray], _Offsets]


def fit_division(stairs: Staircase, low: np.ndarray, high: np.ndarray) -> Division | None:
    """A `Division` with the thresholds of `stairs` on every x of [low, high] (int64 [C]), or None.

    The slope must be below 1, and 0 must map to 0. All intermediate values are in int32.
    """
    proven, divisions = fit_divisions(stairs, low, high, np.asarray([low.size]))
    return divisions if proven.all() else None


def fit_divisions(
    stairs: Staircase, low: np.ndarray, high: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, Division]:
    """`fit_division` of many requantizations with as many levels at once; one after the other, they have `sizes`
    channels. Whether each has a division, bool, and the divisions of all channels: meaningless where there is none."""
    owner = np.repeat(np.arange(sizes.size), sizes)
    whole = _Task.searched(stairs, low, high)
    divisions = Division(*np.zeros((3, low.size), np.int64))
    failed = np.bincount(owner, (whole.step <= 1) | (whole.most < 1), sizes.size) > 0
    left = np.nonzero(~failed[owner])[0]
    left = _try_candidates(whole, left, divisions, (_near, _by_gaps), (_near, _by_distances))
    left = _try_candidates(whole, left, divisions, (_nearer, _by_distances), (_fractions, _by_distances))
    failed[owner[left[whole.clear[left]]]] = True  # for these there is no other proof
    left = _try_candidates(whole, left[~failed[owner[left]]], divisions, (_nearer, _exactly), (_fractions, _exactly))
    failed[owner[left]] = True
    return ~failed, divisions


def _are_divisions(arrays: Sequence[np.ndarray], bottom: np.ndarray, *arguments: Any) -> bool:
    """Whether arrays are those of `rescale_divisions`: four of channels, and one of RESCALEs."""
    channels, scalings = bottom.shape, arguments[-1].shape
    forms = (*[(np.float64, channels)] * 2, (np.bool_, scalings), *[(np.int64, channels)] * 3)
    return len(arrays) == len(forms) and all(has_form(array, *form) for array, form in zip(arrays, forms, strict=True))


@returns(_are_divisions)
def rescale_divisions(
    bottom: np.ndarray,
    count: int,
    mantissa: np.ndarray,
    shift: np.ndarray,
    double_round: bool,
    low: np.ndarray,
    high: np.ndarray,
    sizes: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """`fit_divisions` of RESCALEs (`rescale_staircase`): `first` and `step` of their staircases; which have a division;
    a, b and c of all channels."""
    stairs = rescale_staircase(bottom, count, mantissa, shift, double_round=double_round)
    proven, divisions = fit_divisions(stairs, low, high, sizes)
    return stairs.first, stairs.step, proven, *divisions


def _try_candidates(
    whole: _Task, left: np.ndarray, divisions: Division, *trials: tuple[_Candidates, _Proof]
) -> np.ndarray:
    """Fills `divisions` for the channels of `left` for which a trial proves a fraction; answers the other channels."""
    for candidates, proof in trials:
        if not left.size:
            break
        task = whole if left.size == whole.first.size else whole.of(left)
        for a, b in candidates(task):
            c, proven = proof(task, a, b)
            proven &= (a > 0) & (b <= _I31) & (c >= 0) & (a * task.reach + c <= _I31)
            places = np.flatnonzero(proven)
            channels = left[places]
            for values, some in zip(divisions, (a, b, c), strict=True):
                values[channels] = some[places]
        left = left[divisions.a[left] == 0]
    return left


# Fractions near 1 / step, best first.


def _near(task: _Task) -> list[_Pair]:
    return _multiples(task, 32)


def _nearer(task: _Task) -> list[_Pair]:
    return _multiples(task, 128)


def _multiples(task: _Task, tried: int) -> list[_Pair]:
    """The best of the few largest a, with b = a * step rounded: less exact than the convergents, but quick."""
    step, most = task.step, task.most
    best = np.empty(step.shape, np.int64)
    order = np.arange(tried, dtype=np.uint32)
    largest, apart = _turns(most * step)[:, None], _turns(step)[:, None]
    for block in _blocks(step.size):
        places = largest[block] - order * apart[block]
        best[block] = np.minimum(places, -places).argmin(axis=1)
    a = np.maximum(most - best, 0)
    return [(a, np.minimum(np.rint(a * step), _I31 + 1).astype(np.int64))]


def _fractions(task: _Task) -> list[_Pair]:
    """The last convergents, scaled up.

    All in float64: the integers are below 2^31, so the quotients' floors are exact.
    """
    step, most = task.step, task.most
    last = np.zeros((6, step.size))  # the last convergent, the last semiconvergent, the convergent before
    index, bound = np.arange(step.size), most.astype(np.float64)
    p0, q0, p1, q1 = (np.full(step.size, v) for v in (1.0, 0.0, 0.0, 1.0))  # below 1 it starts at 0/1
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
            last[:, index[done]] = ended[:, done]
            index, bound, rest, p1, q1, p2, q2 = (v[~done] for v in (index, bound, rest, p1, q1, p2, q2))
        p0, q0, p1, q1, rest = p1, q1, p2, q2, 1.0 / rest
    a, b = last[0::2], last[1::2]
    factor = np.floor(np.minimum(most / np.maximum(a, 1), _I31 / np.maximum(b, 1)))
    return list(zip((a * factor).astype(np.int64), (b * factor).astype(np.int64), strict=True))


# Proofs: c of each channel for a fraction, and whether it is proven.


def _by_gaps(task: _Task, a: np.ndarray, b: np.ndarray) -> _Offsets:
    """By the least distances of all X(m) to the integers on both sides."""
    first, step, below, above, guard, climbs = task.first, task.step, task.below, task.above, task.guard, task.climbs
    top = np.maximum(a, 1)
    drift = b / top - step
    c = np.floor(top * (step - first + drift * (1 + climbs) / 2 - (above - below) / 2) + 0.5)
    ends = drift + step - first - c / top, climbs * drift + step - first - c / top
    return c.astype(np.int64), task.clear & (np.maximum(*ends) < above - guard) & (np.minimum(*ends) > guard - below)


def _by_distances(task: _Task, a: np.ndarray, b: np.ndarray) -> _Offsets:
    """By the distances of each X(m) within reach to the integers on both sides."""
    first, step, guard, climbs = task.first, task.step, task.guard, task.climbs
    top = np.maximum(a, 1)
    drift = b / top - step
    high, low = drifting(_turns(first), _turns(step), climbs, drift)
    start, error = step - first, top * guard
    # Y(m) <= ceil(X(m)) and Y(m) > floor(X(m)); both differences are multiples of 1 / a, which small errors do not hide
    least = np.ceil(top * (start + low - 1.0) + np.where(error < 0.25, -error, error))
    most = np.ceil(top * (start + high) - error) - 1.0
    least = np.maximum(least, 0.0)
    return np.floor((least + most) / 2).astype(np.int64), task.clear & (least <= most)


def _exactly(task: _Task, a: np.ndarray, b: np.ndarray) -> _Offsets:
    """By every threshold that the inputs reach."""
    n, low, high = task.stairs.levels, task.low, task.high
    thresholds = task.stairs.thresholds(n)
    level = np.where(n > 0, n, 1 - n)  # the |quotient| that must be reached on one side of T and not on the other
    reached = np.abs(np.where(n > 0, np.maximum(thresholds, low), np.minimum(thresholds - 1, high)))
    missed = np.abs(np.where(n > 0, np.minimum(thresholds - 1, high), np.maximum(thresholds, low)))
    inside, below = thresholds <= high, thresholds > low
    must = np.where(n > 0, inside, below)
    must_not = np.where(n > 0, below & (thresholds > 1), inside & (thresholds < 0))
    least = np.where(must, level * b - a * reached, 0).max(axis=0, initial=0)
    most = np.where(must_not, level * b - 1 - a * missed, _I31).min(axis=0, initial=_I31)
    return np.where(most == _I31, least, (least + most) // 2), least <= most


# How near X(m) comes to the integers, in `_TURN`s, whose wrapping drops the integer part: 2^-24 too small at most, for
# 255 levels. `first` and `step`: uint32 [C]; `last`: how many m there are.


def nearest(first: np.ndarray, step: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least distances of all X(m) to the integers below and above: float64 [C]."""
    start, apart = np.concatenate([first, ~first]), np.concatenate([step, -step])
    places = np.empty(start.shape)
    for at, _, place in _corners(start, apart, np.concatenate([last, last])):
        places[at] = place
    below, above = places.reshape(2, -1) * _TURN
    return below, above + _TURN


def drifting(first: np.ndarray, step: np.ndarray, last: np.ndarray, drift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest (X(m) mod 1) + m `drift`: float64 [C]."""
    end = first + (last - 1).astype(np.uint32) * step
    start = np.concatenate([first, end, ~first, ~end])  # the lower corners from both ends, and the upper ones
    apart = np.concatenate([step, -step, -step, step])
    order, back = np.concatenate([np.ones(last.size), last] * 2), np.repeat([1.0, -1.0, 1.0, -1.0], step.size)
    drift = np.concatenate([drift, drift, -drift, -drift])  # what is greatest is least with the other sign
    beyond = np.repeat([0.0, 0.0, 1.0 - _WHOLE, 1.0 - _WHOLE], step.size)
    lowest = np.full(start.shape, np.inf)
    for at, index, place in _corners(start, apart, np.concatenate([last] * 4)):
        sums = drift[at] * (order[at] + back[at] * index) + (place + beyond[at]) * _TURN
        lowest[at] = np.minimum(lowest[at], sums)
    least, most = lowest.reshape(2, 2, -1).min(axis=1)
    return least, -most


def _corners(
    start: np.ndarray, apart: np.ndarray, count: np.ndarray
) -> Iterator[tuple[np.ndarray | slice, np.ndarray, np.ndarray]]:
    """The corners of the convex hull of the points (m, start + m `apart` mod 2^32), m below `count`, from the first to
    the lowest: of which channels, m, and the place there.

    Each point that is lower than all before it is one step further than the last: the step of fewest m that falls by no
    more than there is left to fall. As in Euclid's algorithm, such a step is the one before with steps that rise added,
    and the other way around. All numbers are integers below 2^33, whose quotients have exact floors in float64.
    """
    index, place, rise = np.zeros(start.shape), start.astype(np.float64), apart.astype(np.float64)
    yield slice(None), index, place
    moving = np.flatnonzero((apart > 0) & (count > 1))
    index, place, rise, left = index[moving], place[moving], rise[moving], count[moving] - 1.0
    fall = _WHOLE - rise  # by how much, over `of_fall` of m
    of_fall, of_rise = np.ones(fall.shape), np.ones(fall.shape)
    at = moving if moving.size < start.size else slice(None)
    while moving.size:
        times = np.ceil((fall - place) / rise)
        times = np.minimum(np.maximum(times, 0.0, out=times), np.floor((fall - 1.0) / rise), out=times)
        fall -= times * rise
        of_fall += times * of_rise
        times = np.minimum(np.floor(place / fall), np.floor(left / of_fall))
        place -= times * fall
        times *= of_fall
        index += times
        left -= times
        yield at, index, place
        times = np.floor((rise - 1.0) / fall)
        rise -= times * fall
        of_rise += times * of_fall
        on = (of_fall + of_rise <= left) & (rise < fall)  # the others stay as they are
        if 2 * np.count_nonzero(on) < moving.size:
            places = np.flatnonzero(on)  # numpy takes by places several times faster than by bits
            at = moving = moving[places]
            place, index, left, fall, of_fall, rise, of_rise = (
                v[places] for v in (place, index, left, fall, of_fall, rise, of_rise)
            )


def _turns(x: np.ndarray) -> np.ndarray:
    """The fractional part of each x, in `_TURN`s."""
    return ((x - np.floor(x)) * _WHOLE).astype(np.int64).astype(np.uint32)


def _blocks(channels: int, at_once: int = _BLOCK) -> Iterator[slice]:
    return (slice(at, at + at_once) for at in range(0, channels, at_once))


# round_half_away(double(x) * scale) as TOSA's RESCALE with one rounding: (x q M + 2^(s-1)) >> s.
#
# Both are staircases (`tflq.numerics.staircase`): they are equal on a range of x if they pass each level at the same
# x. With T(n) the threshold of level n, x q M >= (2n - 1) 2^(s-1) must hold at x = T(n) and not at T(n) - 1. Each
# bounds M, so the right multipliers are the integers of one interval, which is found exactly. s makes M as large as
# 31 bits allow. Where the interval has no integer, an odd factor q of x makes the slopes M q / 2^s denser: it is tried
# as far as q x fits int32.

_BEYOND = 1 << 62  # beyond any product of 31 by 31 bits
_LARGEST_FACTOR = 127
_CHUNK = 1 << 18  # thresholds looked at together: 2 MiB an array


class RescaleFit:
    """The factors q, multipliers M and shifts s, int64 [C] each."""

    __slots__ = ("factor", "multiplier", "shift")

    def __init__(self, factor: np.ndarray, multiplier: np.ndarray, shift: np.ndarray) -> None:
        self.factor: Final = factor
        self.multiplier: Final = multiplier
        self.shift: Final = shift


def saturation_bounds(scale: np.ndarray, lows: int, highs: int) -> tuple[int, int]:
    """Bounds beyond which the result, saturated to [lows, highs], is the same as at them."""
    ends = float_thresholds(np.asarray([lows + 1, highs]), scale)
    return int(ends[0].min()) - 1, int(ends[1].max())


def fit_rescale(scale: np.ndarray, lows: int, highs: int, least: int, most: int) -> RescaleFit | None:
    """The RESCALE by positive scales float64[C] for x in [least, most], saturated to [lows, highs].

    None if a channel has none.
    """
    reach = max(-least, most, 1)
    levels = np.arange(lows + 1, highs + 1)
    if reach > _I31 + 1 or not levels.size:
        return None
    fit = RescaleFit(*(np.zeros(scale.size, np.int64) for _ in range(3)))
    step = max(1, _CHUNK // levels.size)
    for at in range(0, scale.size, step):
        if not _fit_block(fit, np.arange(at, min(at + step, scale.size)), scale, levels, least, most):
            return None
    return fit


def _fit_block(
    fit: RescaleFit, channels: np.ndarray, scale: np.ndarray, levels: np.ndarray, least: int, most: int
) -> bool:
    """Fills in `channels`; answers whether all of them have a multiplier."""
    thresholds = float_thresholds(levels, scale[channels])
    reach = max(-least, most, 1)
    for factor in range(1, _LARGEST_FACTOR + 1, 2):
        if factor > 1 and factor * reach > _I31:
            return False
        multiplier, shift, exists = _multipliers(levels, thresholds, scale[channels], least, most, factor)
        exists &= factor * reach <= np.left_shift(np.int64(1), shift - 1)
        done = channels[exists]
        fit.factor[done], fit.multiplier[done], fit.shift[done] = factor, multiplier[exists], shift[exists]
        channels, thresholds = channels[~exists], thresholds[:, ~exists]
        if not channels.size:
            return True
    return False


def _multipliers(
    levels: np.ndarray, thresholds: np.ndarray, scale: np.ndarray, least: int, most: int, factor: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The middle of each channel's interval of multipliers, the shift, and whether the interval has an integer."""
    shift = np.clip(31 - np.frexp(scale / factor)[1], 2, 62).astype(np.int64)
    odd = 2 * levels[:, None] - 1
    far = np.abs(odd) > _BEYOND >> (shift - 1)
    border = np.where(far, np.where(odd > 0, _BEYOND, -_BEYOND), np.where(far, 0, odd) << (shift - 1))
    # x M >= border at the first x that reaches the level, x M <= border - 1 at the last that does not
    low, high = _bounds(np.maximum(thresholds, least) * factor, border, thresholds <= most)
    low_too, high_too = _bounds(-np.minimum(thresholds - 1, most) * factor, 1 - border, thresholds > least)
    low, high = np.maximum(low, low_too), np.minimum(high, high_too)
    return (low + high) >> 1, shift, low <= high


def _bounds(x: np.ndarray, border: np.ndarray, holds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest M in 0 .. 2^31 - 1 with x M >= border where `holds`, per column; crossed if none."""
    floor = border // np.where(x == 0, 1, x)
    exact = floor * x == border
    low = np.where(holds & (x > 0), np.where(exact, floor, floor + 1), 0).max(axis=0)
    high = np.where(holds & (x < 0), floor, _I31).min(axis=0)
    never = (holds & (x == 0) & (border > 0)).any(axis=0)
    return np.where(never, _I31 + 1, np.maximum(low, 0)), high


# Sums of scaled integers in int32: integer multipliers with as many bits behind the point as the sum leaves.
#
#     sum of x_i r_i  ~  (sum of (x_i M_i + 2^(s_i - 1)) >> s_i) / 2^f        M_i = round(r_i 2^(f + s_i))
#
# Each term is off by at most half a count of 2^-f for its shift, and by |x_i| 2^(-s_i - 1) counts for its
# multiplier. With s_i as large as M_i < 2^31 allows, f is chosen so that the sum stays within 2^30.

_BOUND = 30
_MOST_BITS = 28
_ROUGHLY = 2.0**-7


class Term:
    """A term's multipliers, int64 of its ratios' shape, and the shift of its products."""

    __slots__ = ("multiplier", "shift")

    def __init__(self, multiplier: np.ndarray, shift: int) -> None:
        self.multiplier: Final = multiplier
        self.shift: Final = shift


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


# A double's product with an integer, rounded half away from zero, in 64-bit integers: two forms.
#
# The wide one takes integers of more than 31 bits: round_half_away(double(x) * d) with a double d = M / 2^F, M of 53
# bits. |x| is shifted left by as many bits as make F the same for all channels, and both are split into limbs of 29
# bits, |x| 2^j = x1 2^29 + x0, M = m1 2^29 + m0:
#
#     |x| M 2^j = x1 m1 2^58 + (x1 m0 + x0 m1) 2^29 + x0 m0
#     |y| = floor((|x| M 2^j + h + 2^(F-1)) / 2^F)
#
# The exact product is rounded by float64: less than half a last place below a tie n - 1/2 it becomes that tie. h is
# that half, 2^(F + e - 53) where 2^e is the greatest power of two below the tie, e = -2 for the first; n - 1 is the
# product's integer part (a product further from a tie has the same result with any such h).


LIMB = 29
"""Bits of a limb."""
PART = 9
"""Bits of the integer part that index a table of `WideProduct`."""
_MASK = (1 << LIMB) - 1
_MANTISSA = 53
_SHIFTED = 1 << 58  # of |x| shifted to the left
_LEAST_SHIFT = 8


class WideProduct:
    """The bits to shift |x| by, the limbs of M, the range that x is clamped to first, int64 [C] each; F - 58."""

    __slots__ = ("first", "high", "last", "left", "low", "shift")

    def __init__(
        self, left: np.ndarray, high: np.ndarray, low: np.ndarray, first: np.ndarray, last: np.ndarray, shift: int
    ) -> None:
        self.left: Final = left
        self.high: Final = high
        self.low: Final = low
        self.first: Final = first
        self.last: Final = last
        self.shift: Final = shift

    @property
    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """h of integer parts below 2^PART, and what the bits above add to the last of these: int64 [2^PART] each."""
        part = np.arange(1 << PART)
        exponent = np.frexp(part)[1].astype(np.int64) - 1
        unit = self.shift + 2 * LIMB - _MANTISSA
        lower = np.int64(1) << (unit + np.where(part == 0, -2, exponent))
        upper = np.where(part == 0, 0, (np.int64(1) << (unit + exponent + PART)) - lower[-1])
        return lower, upper

    def of(self, x: np.ndarray) -> np.ndarray:
        """The product with int64 x [..., C], rounded."""
        x = np.clip(x, self.first, self.last)
        magnitude = np.abs(x) << self.left
        upper, lower = magnitude >> LIMB, magnitude & _MASK
        between = upper * self.low + lower * self.high
        whole = (upper * self.high + (between >> LIMB)) >> self.shift
        halves = self.halves
        h = halves[0][np.minimum(whole, (1 << PART) - 1)] + halves[1][whole >> PART]
        between += (lower * self.low + h) >> LIMB
        return np.sign(x) * ((upper * self.high + (between >> LIMB) + (1 << (self.shift - 1))) >> self.shift)


def fit_wide_product(scale: np.ndarray, lows: int, highs: int, least: int, most: int) -> WideProduct | None:
    """The product by positive scales float64[C] for x in [least, most], saturated to [lows, highs] of 16 bits at most.

    None if 64 bits do not hold it.
    """
    enough = np.ceil((max(-lows, highs) + 1) / scale)
    first, last = (np.clip(end, -enough, enough).astype(np.int64) for end in (float(least), float(most)))
    reach = np.maximum(np.abs(first), np.abs(last)).astype(np.float64)
    fraction, exponent = np.frexp(scale)
    still = reach * scale < 0.25  # nothing but 0
    places = np.where(still, 0, _MANTISSA - exponent)
    top = max(int(places.max()), 2 * LIMB + _LEAST_SHIFT)
    left = np.where(still, 0, top - places)
    if (np.where(still, 0, reach) * 2.0**left >= _SHIFTED).any() or (reach >= 2.0**_MANTISSA).any():
        return None
    mantissa = np.where(still, 0, fraction * 2.0**_MANTISSA).astype(np.int64)
    return WideProduct(left, mantissa >> LIMB, mantissa & _MASK, first, last, top - 2 * LIMB)


# The long one, for integers within 31 bits.
#
# round_half_away(double(x) * d) with a double d = M / 2^F, whose 53 bits stay whole where F allows it. The product has
# up to 85 bits, so M is split in two limbs, M = high * 2^32 + low:
#
#     floor((x M + c) / 2^F + 1/2) = floor((x high + floor((x low + c) / 2^32) + 2^(k-1)) / 2^k)     k = F - 32
#
# c decides ties, and products that float64 rounds up to a tie: it is d >= 0 for x > 0 and -d for x < 0.
# `fit_long_product` takes the smallest that gives the double's result on both sides of every threshold.

_THRESHOLDS_TOGETHER = 1 << 19  # thresholds looked at together: 4 MiB an array


class LongProduct:
    """The limbs int64 [C], k, the correction by sign, and the range int64 [C] that x is clamped to first."""

    __slots__ = ("correction", "first", "high", "last", "low", "shift")

    def __init__(
        self, high: np.ndarray, low: np.ndarray, shift: int, correction: int, first: np.ndarray, last: np.ndarray
    ) -> None:
        self.high: Final = high
        self.low: Final = low
        self.shift: Final = shift
        self.correction: Final = correction
        self.first: Final = first
        self.last: Final = last


def fit_long_product(scale: np.ndarray, lows: int, highs: int, least: int, most: int) -> LongProduct | None:
    """The product by positive scales float64[C] for x in [least, most], saturated to [lows, highs].

    None if 64 bits do not hold it.
    """
    levels = np.arange(lows + 1, highs + 1)
    ends = float_thresholds(levels[[0, -1]], scale)
    # a range beyond all thresholds, on either side, is clamped to the nearest of these
    first = np.minimum(np.maximum(ends[0] - 1, least), ends[1])
    last = np.maximum(np.minimum(ends[1], most), ends[0] - 1)
    first, last = _narrowed(first, scale), _narrowed(last, scale)
    reach = int(max(np.abs(first).max(), np.abs(last).max()))
    smallest, largest = math.frexp(float(scale.min()))[1], math.frexp(float(scale.max()))[1]
    result_bits = int(max(-lows, highs) + float(scale.max()) + 2).bit_length()
    fraction = min(max(64, 53 - smallest), 94 - result_bits, 62 - largest)
    if reach >= 1 << 31 or fraction < 34:
        return None
    whole = [int(math.ldexp(float(d), 53)) for d in np.frexp(scale)[0]]
    places = fraction - 53 + np.frexp(scale)[1]
    mantissa = [m << int(p) if p >= 0 else m >> -int(p) for m, p in zip(whole, places, strict=True)]
    high = np.asarray([m >> 32 for m in mantissa], np.int64)
    low = np.asarray([m & 0xFFFFFFFF for m in mantissa], np.int64)
    # the double's last place near the largest results is 2^(result_bits - 53): no tie is missed by more
    sizes = range(max(fraction - 46, 0), fraction - 53 + result_bits + 1)
    for correction in (0, 1, reach, *(1 << size for size in sizes)):
        fit = LongProduct(high, low, fraction - 32, correction, first, last)
        if correction < 1 << 60 and _climbs(fit, scale, levels):
            return fit
    return None


def _narrowed(end: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """An end of the range brought within 31 bits, in the channels where that gives the same result."""
    nearer = np.clip(end, -_I31, _I31)
    same = np.floor(np.abs(end) * scale + 0.5) == np.floor(np.abs(nearer) * scale + 0.5)
    return np.where(same, nearer, end)


def _climbs(fit: LongProduct, scale: np.ndarray, levels: np.ndarray) -> bool:
    """Whether the product passes each level where the double does, on the whole range."""
    step = max(1, _THRESHOLDS_TOGETHER // levels.size)
    for at in range(0, scale.size, step):
        part = slice(at, at + step)
        thresholds = float_thresholds(levels, scale[part])
        after = np.clip(thresholds, fit.first[part], fit.last[part])
        before = np.clip(thresholds - 1, fit.first[part], fit.last[part])
        passed = (_quotient(fit, after, part) >= levels[:, None]) | (thresholds > fit.last[part])
        not_yet = (_quotient(fit, before, part) < levels[:, None]) | (thresholds - 1 < fit.first[part])
        if not (passed & not_yet).all():
            return False
    return True


def _quotient(fit: LongProduct, x: np.ndarray, part: slice) -> np.ndarray:
    """The result of the two limbs."""
    below = (x * fit.low[part] + np.sign(x) * fit.correction) >> 32
    return (x * fit.high[part] + below + (1 << (fit.shift - 1))) >> fit.shift
