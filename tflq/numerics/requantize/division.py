"""Requantization by a division that truncates.

A division that truncates, like the DIV kernel's on int32, can climb the same staircase as a requantization:

    f(x) = (a x + sign(x) c) / b

a/b is a fraction near M / 2^s with a small enough that the sum stays in int32 (its error is much smaller than that of a
multiplier and a shift of as many bits); c is any number that meets every threshold.

The proof: a requantization (`staircase.py`) climbs at the reals X(m) = X(1) + (m - 1) 2^s / M, the division
at Y(m) = (m b - c) / a, on both sides of zero; the thresholds are ceil(X(m)) and ceil(Y(m)). They are equal if no
integer lies between X(m) and Y(m). There are three ways to see that, each for what the one before left over:

    the least distances of all X(m) to the integers, against the largest of all Y(m) - X(m)
    the distance of each X(m), against its own Y(m) - X(m)
    each threshold, computed exactly: where X(m) is an integer, or may be one

The first two need no list of all X(m). Y(m) - X(m) is linear in m, so only corners of the convex hull of the points
(m, X(m) mod 1) can be nearest to an integer, and `_corners` goes from one to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from tflq.base.results import has_form, returns
from tflq.numerics.requantize.forms import Form, Ops, X
from tflq.numerics.requantize.scaling import FixedPoint, Staircase

_I31 = (1 << 31) - 1
_BLOCK = 512  # channels whose multiples stay in the cache, as 32 bits

_TURN = 2.0**-32
_WHOLE = 2.0**32
_FAR = 2.0**40

_Pair: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Numerators and denominators of fractions, int64 [C] each."""

_Offsets: TypeAlias = tuple[np.ndarray, np.ndarray]
"""c of each channel, int64 [C], and whether it is proven, bool [C]."""


class Division(Form):
    """trunc((a x + sign(x) c) / b), or relu(a x + c) / b where all levels are above 0: proven at every threshold, or by
    how near the reals where both climb come to an integer. All of it is in int32."""

    def __init__(self, a: np.ndarray, b: np.ndarray, c: np.ndarray, *, from_zero: bool = False) -> None:
        self.a, self.b, self.c = a, b, c  # int64 [C] each
        self.from_zero = from_zero

    @classmethod
    def fit(cls, stairs: Staircase, low: np.ndarray, high: np.ndarray) -> Division | None:
        """The division with these thresholds for every x in [low, high], int64 [C]; None without a proof.

        The slope must be below 1, and 0 must map to 0. All intermediate values are in int32.
        """
        proven, *numbers = fit_divisions(stairs, low, high, np.asarray([low.size]))
        return cls(*numbers, from_zero=bool(stairs.bottom[0] > 0)) if proven.all() else None

    def apply(self, x: X, ops: Ops[X]) -> X:
        product = ops.mul(x, ops.row(self.a))
        if self.from_zero:
            return ops.div(ops.add(product, ops.row(self.c), relu=True), ops.row(self.b))
        return ops.div(ops.add(product, ops.mul(ops.sign(x), ops.row(self.c))), ops.row(self.b))


class _Task:
    """The channels that need a division, for inputs in [low, high] (int64 [C]).

    reach: the largest magnitude of an input, 1 at least. most: the largest numerator whose sums stay in int32. first,
    step: where each climbs, finite. climbs: how often within reach, on the side where it does so more often, and once
    more. guard: more than all roundings in the distances of X(m) to the integers and to Y(m) add up to. below, above:
    the least distances of all X(m) to the integers on both sides. All are arrays [C]: int64, from `first` on float64.
    """

    def __init__(self, stairs: Staircase, *numbers: np.ndarray) -> None:
        self.stairs = stairs
        self.numbers = numbers
        self.low, self.high, self.reach, self.most, self.first, self.step = numbers[:6]
        self.climbs, self.guard, self.below, self.above = numbers[6:]

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
        return _Task(self.stairs.of_channels(channels), *[v[channels] for v in self.numbers])

    @property
    def clear(self) -> np.ndarray:
        """Whether surely no X(m) is an integer: such a threshold has two sides."""
        return (self.below > self.guard) & (self.above > self.guard)


_Candidates: TypeAlias = Callable[[_Task], list[_Pair]]
_Proof: TypeAlias = Callable[[_Task, np.ndarray, np.ndarray], _Offsets]


def fit_divisions(stairs: Staircase, low: np.ndarray, high: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, ...]:
    """`Division.fit` of many requantizations with as many levels at once; one after the other, they have `sizes`
    channels. Whether each has a division, bool; a, b and c of all channels: meaningless where there is none."""
    owner = np.repeat(np.arange(sizes.size), sizes)
    whole = _Task.searched(stairs, low, high)
    numbers = np.zeros((3, low.size), np.int64)
    failed = np.bincount(owner, (whole.step <= 1) | (whole.most < 1), sizes.size) > 0
    left = np.nonzero(~failed[owner])[0]
    if not stairs.factor.is_line:
        left = _try_candidates(whole, left, numbers, (_near, _exactly), (_nearer, _exactly), (_fractions, _exactly))
        failed[owner[left]] = True
        return ~failed, *numbers
    left = _try_candidates(whole, left, numbers, (_near, _by_gaps), (_near, _by_distances))
    left = _try_candidates(whole, left, numbers, (_nearer, _by_distances), (_fractions, _by_distances))
    failed[owner[left[whole.clear[left]]]] = True  # for these there is no other proof
    left = _try_candidates(whole, left[~failed[owner[left]]], numbers, (_nearer, _exactly), (_fractions, _exactly))
    failed[owner[left]] = True
    return ~failed, *numbers


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
    """`fit_divisions` of RESCALEs: `first` and `step` of their staircases; which have a division;
    a, b and c of all channels."""
    stairs = Staircase.of(FixedPoint(mantissa, shift, double_round), bottom, count)
    return stairs.first, stairs.step, *fit_divisions(stairs, low, high, sizes)


def _try_candidates(
    whole: _Task, left: np.ndarray, numbers: np.ndarray, *trials: tuple[_Candidates, _Proof]
) -> np.ndarray:
    """Fills a, b and c for the channels of `left` for which a trial proves a fraction; answers the other channels."""
    for candidates, proof in trials:
        if not left.size:
            break
        task = whole if left.size == whole.first.size else whole.of(left)
        for a, b in candidates(task):
            c, proven = proof(task, a, b)
            proven &= (a > 0) & (b <= _I31) & (c >= 0) & (a * task.reach + c <= _I31)
            places = np.flatnonzero(proven)
            channels = left[places]
            for values, some in zip(numbers, (a, b, c), strict=True):
                values[channels] = some[places]
        left = left[numbers[0, left] == 0]
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
