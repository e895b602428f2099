"""Requantization in float32 that holds however a runtime rounds sums and puts constants together: one product, a line
that falls or is clipped, or two steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from tflq.base.results import per_channel, returns
from tflq.numerics.float_basics import (
    EXACT,
    HardestThresholds,
    Steps,
    SumRounding,
    blocks,
    exact_part,
    float_steps,
    from_steps,
    inside,
    level_bounds,
    live_channels,
    multiply_add,
    proven,
)

# Nothing but a product rounds.
#
#     u = relu(h - x)                  the convolution's own: weights with the other sign, h in the bias
#     f(x) = floor(relu(q - u) * m)    SUB with RELU, MUL, FLOOR
#
# h is where the last level has been reached, so the first rectifier ends the levels above, and the second one below.
# q - u is the distance of x from where a line of slope m begins. It is exact: it is a multiple of the unit in the last
# place of q, and not larger than q. So f is one product, rounded once, however a runtime rounds sums and puts
# constants together: the sum has a rectifier before and after it. (A model with a quantized tensor has x m + c
# computed as (x + c / m) m by OpenVINO.)
#
# f is monotone in x for m >= 0, so it equals the requantization of `tflq.numerics.float_requantize` if f(T(n)) has
# reached n and f(T(n) - 1) has not, and the same at the ends. A product reaches n from a real number on
# (`float_basics.level_bounds`), so each threshold bounds q for a given m; of the numbers between the bounds, q is the
# one in the middle. Where thousands of accumulators share a level, q is too coarse, and there may be none.


_SLOPES: Final = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8, -8)  # steps of m away from the real slope
_EARLY: Final = 3  # tries after which channels without a line may be too many
_TOO_MANY: Final = 0.25  # the share of channels that is too many, if more than a few
_FEW: Final = 12
_FARTHEST: Final = EXACT << 4  # where x is not exact, but h - x may be
_FLAT: Final = np.float32(2.0**-40)  # m of a channel with one result: no accumulator changes it


class DistanceRequantization(NamedTuple):
    """f(x) = floor(relu(q - relu(h - x)) * m): float32 [C] each, h whole; results are levels from 0 on."""

    h: np.ndarray
    q: np.ndarray
    m: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """f of integers [..., C], operation by operation in float32."""
        u = np.maximum(self.h.astype(np.float64) - x, 0).astype(np.float32)
        total = np.maximum(self.q - u, np.float32(0))
        total *= self.m
        return np.floor(total, out=total)

    @property
    def live(self) -> np.ndarray:
        """Whether a channel's result depends on x, bool [C]."""
        return self.m > _FLAT


@returns(per_channel(3))
def distance_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, ...]:
    """`fit_distance` as arrays; empty without a proof."""
    return tuple(fit_distance(thresholds, slope, low, high) or ())


def fit_distance(
    thresholds: np.ndarray,
    slope: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    *,
    below: np.ndarray | None = None,
) -> DistanceRequantization | None:
    """The requantization with thresholds T(1) ... T(L) int64 [L, C] on accumulators in [low, high] int64 [C], with
    about `slope` float64 [C] levels per unit. `below`: the greatest accumulators below each threshold, if they are not
    one less. None without a proof."""
    top = np.clip(thresholds[-1], low, high)
    least = top + 1 - EXACT  # below it h - x is rounded, but on the first level anyway
    low, live = exact_part(thresholds, low, high, least)
    if ((low < least) | (np.abs(top) >= _FARTHEST))[live].any():
        return None
    flat = (((thresholds <= low).sum(0) + 0.5) / _FLAT).astype(np.float32)
    fit = DistanceRequantization(np.where(live, top, 0).astype(np.float32), flat, np.full(low.shape, _FLAT, np.float32))
    left = np.nonzero(live)[0]
    few = max(_TOO_MANY * left.size, _FEW)
    for count, step in enumerate(_SLOPES):
        if not left.size:
            return fit
        if count == _EARLY and left.size > few:
            return None
        proven = np.zeros(left.size, bool)
        for block in blocks(left.size):
            some = left[block]
            beneath = None if below is None else below.take(some, 1)
            steps = Steps.of(thresholds.take(some, 1), beneath, low[some], high[some], 0)
            proven[block] = _fill_distance(fit, some, steps, slope[some], step)
        left = left[~proven]
    return fit if not left.size else None


def _fill_distance(
    result: DistanceRequantization, channels: np.ndarray, steps: Steps, slope: np.ndarray, step: int
) -> np.ndarray:
    """Fills in q and m of the channels for which the m that is `step` float32 numbers from the slope is proven.
    Answers for which it is, bool [C]."""
    m = from_steps(np.maximum(float_steps(slope.astype(np.float32)) + step, 1))
    h = result.h[channels]
    bounds = level_bounds(steps.level[:, 0], np.ones(1, np.float32))[0, :-2, None] / m.astype(np.float64)
    at_least, under = bounds - steps.reached, bounds - steps.missed
    q = inside(np.fmax.reduce(at_least, 0) + h, np.fmin.reduce(under, 0) + h)
    fit = DistanceRequantization(h, q, m)
    proven = steps.meets_thresholds(fit(steps.reached), fit(steps.missed)) & (np.floor(q * m) <= steps.level[-1])
    result.q[channels[proven]], result.m[channels[proven]] = q[proven], m[proven]
    return np.asarray(proven)


# Sums that fall, with three kernels after the convolution; sums that are clipped.
#
#     u = relu(h - x)                       the convolution's own: weights with the other sign, h in the bias
#     f(x) = floor(relu(c - u * m))         MUL, ADD with RELU, FLOOR
#
# h is where the last level has been reached, so the first rectifier ends the levels above and the second one below:
# neither a clamp nor the product that undoes its scale is needed. f is monotone in x for m >= 0, so it equals the
# requantization of `tflq.numerics.float_requantize` if f(T(n)) has reached n and f(T(n) - 1) has not, and the same at
# the ends.
#
# There is no gain to choose, so m is fixed; h is any integer before the line reaches a further level. Some are tried,
# with c in the middle of what they leave (-u m is (x - h) m). Where thousands of accumulators share a level that is
# not enough.
#
# The same line with one clamp of whole numbers, whose lower end is where the line has left the first level:
#
#     f(x) = floor(clip(x - h, -span, 0) * m + c)         CLIP, MUL, ADD, FLOOR
#
# As the clamp stands before the product, no runtime can multiply m into the weights of the convolution, and it has no
# other constants to put together. What is left to it is to round MUL and ADD once (`tflq.numerics.float_basics`), so
# these lines are proven with both roundings; and c may be off by a part of a unit in its last place.


_TRIED: Final = (4, 12, *[32] * 6)  # h of each wave
_STEPS: Final = np.asarray([0, 1, -1])[:, None]  # of m away from the real slope
_FURTHER: Final = 7  # how far h is from the one before
_LEFT: Final = (0.8, 0.25)  # the share of channels that is too many after the first waves, if more than a few
_ROOM: Final = 0.9  # how much of a level h may use up
_MARGIN: Final = 0.25  # units in the last place of c


class FallingRequantization(NamedTuple):
    """f(x) = floor(relu(c - relu(h - x) * m)): float32 [C] each; results are levels from 0 on."""

    h: np.ndarray
    m: np.ndarray
    c: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """f of integers [..., C], operation by operation in float32."""
        u = np.maximum(self.h.astype(np.float64) - x, 0).astype(np.float32)
        total = multiply_add(u, -self.m, self.c)
        np.maximum(total, np.float32(0), out=total)
        return np.floor(total, out=total)

    def of(self, channels: np.ndarray) -> FallingRequantization:
        """The requantization of some channels."""
        return FallingRequantization(*(v[channels] for v in self))


class ClippedRequantization(NamedTuple):
    """f(x) = floor(clip(x - h, -span, 0) * m + c): float32 [C] each, h whole."""

    h: np.ndarray
    span: np.ndarray
    m: np.ndarray
    c: np.ndarray

    def __call__(self, x: np.ndarray, *, fused: bool = False) -> np.ndarray:
        """f of integers [..., C] in float32; `fused`: with one rounding for MUL and ADD."""
        u = np.clip((x - self.h.astype(np.float64)).astype(np.float32), -self.span, np.float32(0))
        total = multiply_add(u, self.m, self.c, fused=fused)
        return np.floor(total, out=total)


@returns(per_channel(3))
def falling_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, ...]:
    """`fit_falling` as arrays; empty without a proof."""
    return tuple(fit_falling(thresholds, slope, low, high) or ())


@returns(per_channel(4))
def clipped_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray, bottom: int
) -> tuple[np.ndarray, ...]:
    """`fit_clipped` as arrays: h, span, m and c; empty without a proof."""
    return tuple(fit_clipped(thresholds, slope, low, high, bottom) or ())


def fit_falling(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray
) -> FallingRequantization | None:
    """The requantization with thresholds T(1) ... T(L) int64 [L, C] on accumulators in [low, high] int64 [C], with
    about `slope` float64 [C] levels per unit. None without a proof."""
    return _fit(thresholds, slope, low, high, 0, "separate")


def fit_clipped(
    thresholds: np.ndarray,
    slope: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    bottom: int = 0,
    *,
    below: np.ndarray | None = None,
) -> ClippedRequantization | None:
    """The clipped requantization for thresholds of levels from `bottom` + 1 on, with either rounding of sums.
    `below`: the greatest accumulators below each threshold, if they are not one less. None without a proof."""
    fit = _fit(thresholds, slope, low, high, bottom, "either", below)
    if fit is None:
        return None
    over = np.maximum(fit.c - np.float32(bottom + 0.5), 0)
    span = np.divide(over, fit.m, out=np.zeros_like(over), where=fit.m > 0)
    return ClippedRequantization(fit.h, span, fit.m, fit.c)


class _Task(NamedTuple):
    """Thresholds T(1) ... T(L) int64 [L, C] on [low, high], int64 [C], of lines that gain about `slope` float64 [C]
    levels per unit. `top`: where the last level is reached; `span`: the number of accumulators by which h may be
    further, int64 [C]. `below` as in `fit_clipped`."""

    thresholds: np.ndarray
    below: np.ndarray | None
    low: np.ndarray
    high: np.ndarray
    slope: np.ndarray
    top: np.ndarray
    span: np.ndarray
    bottom: int
    rounding: SumRounding

    def of(self, channels: np.ndarray) -> _Task:
        below = None if self.below is None else self.below.take(channels, 1)
        low, high, slope, top, span = (v[channels] for v in self[2:7])
        thresholds = self.thresholds.take(channels, 1)
        return _Task(thresholds, below, low, high, slope, top, span, self.bottom, self.rounding)

    @property
    def steps(self) -> Steps:
        return Steps.of(self.thresholds, self.below, self.low, self.high, self.bottom)

    def proves(self, fit: FallingRequantization, steps: Steps) -> np.ndarray:
        """Whether f meets every threshold and ends at the last level, bool [C]."""
        ends = np.floor(fit.c) <= steps.level[-1, 0]
        if self.rounding == "separate":
            return ends & steps.meets_thresholds(fit(steps.reached), fit(steps.missed))
        margin = np.spacing(fit.c) * _MARGIN
        for fused in (False, True):
            at_least, below = steps.left(fit.h.astype(np.float64), fit.m, fused=fused)
            ends &= (at_least <= fit.c - margin) & (fit.c + margin < below)
        return ends


def _fit(
    thresholds: np.ndarray,
    slope: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    bottom: int,
    rounding: SumRounding,
    below: np.ndarray | None = None,
) -> FallingRequantization | None:
    top = np.clip(thresholds[-1], low, high)
    span = np.clip(_ROOM / np.maximum(slope, 1 / EXACT), 1, sum(_TRIED) * _FURTHER).astype(np.int64)
    least = top + span - EXACT  # below it x is rounded, but on the first level anyway
    low, live = exact_part(thresholds, low, high, least)
    farthest = EXACT if rounding == "separate" else _FARTHEST
    if (low < least)[live].any() or (np.abs(top) + span >= farthest)[live].any():
        return None
    h, m = np.zeros(low.shape, np.float32), np.zeros(low.shape, np.float32)
    c = ((thresholds <= low).sum(0) + (bottom + 0.5)).astype(np.float32)
    fit, left = FallingRequantization(h, m, c), np.nonzero(live)[0]
    task = _Task(thresholds, below, low, high, slope, top, span, bottom, rounding)
    return fit if _search(task, fit, left) else None


def _search(task: _Task, result: FallingRequantization, channels: np.ndarray) -> bool:
    """Fills `result` for the channels; answers whether all of them have a line."""
    first = _first(task, result, channels)
    if first is None:
        return False
    (left, tight), order = first, 0
    for wave, tried in enumerate(_TRIED):
        if tight is None or not left.size:
            break
        fit, hits = _tried(task.of(left), tight, np.arange(order, order + tried)[:, None])
        hits = np.nonzero(hits)[0]
        hits = hits[proven(task.of(left[hits]), fit.of(hits))]
        _keep(result, left[hits], fit.of(hits))
        rest = np.delete(np.arange(left.size), hits)
        left, tight, order = left[rest], tight.columns(rest), order + tried
        if left.size > max(_LEFT[min(wave, 1)] * channels.size, _FEW):
            return False
    return not left.size


def _first(
    task: _Task, result: FallingRequantization, channels: np.ndarray
) -> tuple[np.ndarray, HardestThresholds | None] | None:
    """Fills `result` where the line of the nearest m through the middle of all thresholds is proven. Answers the other
    channels and their tightest thresholds; None if a channel has no line, as where thresholds jump at zero."""
    rest_of_channels, tight = [np.zeros(0, np.int64)], []
    for block in blocks(channels.size):
        some = task.of(channels[block])
        steps, m = some.steps, some.slope.astype(np.float32)
        slope = m.astype(np.float64)
        least, most = (reduce(v, 0) for reduce, v in zip((np.max, np.min), steps.room(slope), strict=True))
        if (least > most + len(steps.level) * 2.0**-22).any():
            return None
        most = np.minimum(most, steps.level[-1] + 1 - some.top * slope)
        c = ((least + most) / 2 + some.top * slope).astype(np.float32)
        fit = FallingRequantization(some.top.astype(np.float32), m, c)
        good = some.proves(fit, steps)
        _keep(result, channels[block][good], fit.of(good))
        rest = np.nonzero(~good)[0]
        if rest.size:
            rest_of_channels.append(channels[block][rest])
            tight.append(HardestThresholds.of(steps.of_channels(rest), some.slope[rest], odd=False))
    return np.concatenate(rest_of_channels), HardestThresholds.joined(tight) if tight else None


def _keep(result: FallingRequantization, channels: np.ndarray, fit: FallingRequantization) -> None:
    for target, new in zip(result, fit, strict=True):
        target[channels] = new


def _tried(task: _Task, tight: HardestThresholds, order: np.ndarray) -> tuple[FallingRequantization, np.ndarray]:
    """The line of each channel that leaves most room on its tightest thresholds, and whether it leaves any. It is
    chosen among some h by their order [H, 1]."""
    h = task.top + order * _FURTHER % task.span
    near = from_steps(np.maximum(float_steps(task.slope.astype(np.float32)) + _STEPS, 0))
    h, m = np.tile(h, (len(near), 1)), np.repeat(near, len(order), 0)
    levels = task.thresholds.shape[0]
    bounds = level_bounds(np.arange(1, levels + 1) + task.bottom, np.ones(1, np.float32))
    gain = np.zeros(m.shape, np.int64)
    lines = tight.lines(h.astype(np.float64), m, bounds, gain, rounding=task.rounding)
    columns = np.arange(task.slope.size)
    fit = FallingRequantization(h[lines.best, columns].astype(np.float32), m[lines.best, columns], lines.c)
    return fit, lines.any


# Two steps: whole levels first, then what is left, which is small.
#
#     u = clip(x - h, low, high)              from before the first level to where the last one is reached
#     n = floor(u * p)                        p about the levels per accumulator
#     r = u - n * S                           S the accumulators per level, with as many bits as keep n * S exact
#     f(x) = n + floor(r * m + (n * d + c))                           d = S m - 1, what S leaves over
#     f(x) = n + floor(r * m + (n * d + (clip(n, 0, 1) * e + c)))     where thresholds jump at zero: two roundings
#
# u, n S and r have 24 bits: they are exact, however they are rounded. With that h, level k begins a part of a level
# after n = k does, one of `_SHARES`. There, r m is that part, and the rest is about as far below zero; each rounding
# is 2^-25 of a level or less, while in one line of all levels it is 2^-17.
#
# The proof is in bounds of all roundings. Where n = k, the sum of the real numbers r m + n d + c climbs by one level
# around zero, so f is k - 1 or k. It is k from T(k) on, and not before, if the sum there is further from zero than any
# roundings add up to. So the proof holds for MUL and ADD rounded separately or once, and for c added last: that sum
# has the sign of what it rounds, and those before are as large as c. Channels of few accumulators to a level, and
# others without this proof, have one line (`tflq.numerics.float_falling`), with an n of 0.


_FEWEST: Final = 4  # accumulators to a level
_SHARES: Final = (0.25, 0.0625, 0.015625, 0.5)
_ROUNDED: Final = 2.0**-22  # of a number: more than two roundings are
_LITTLE: Final = 2.0**-40  # of a level: more than the proof itself is rounded by


class SplitRequantization(NamedTuple):
    """f(x) as above: float32 [C] each, S as `step`; e is None where the formula has no such term."""

    h: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray
    step: np.ndarray
    m: np.ndarray
    d: np.ndarray
    c: np.ndarray
    e: np.ndarray | None

    def __call__(self, x: np.ndarray, *, fused: bool = False, c_last: bool = False) -> np.ndarray:
        """f of integers [..., C] in float32; `fused`: with one rounding for MUL and ADD; `c_last`: c added last."""
        u = np.clip((x - self.h.astype(np.float64)).astype(np.float32), self.low, self.high)
        n = np.floor(u * self.p)
        r = multiply_add(n, -self.step, u, fused=fused)
        if c_last:
            rest = multiply_add(r, self.m, n * self.d, fused=fused)
            if self.e is not None:
                rest = multiply_add(np.clip(n, 0, 1), self.e, rest, fused=fused)
            return np.asarray(n + np.floor(rest + self.c))
        rest = self.c if self.e is None else multiply_add(np.clip(n, 0, 1), self.e, self.c, fused=fused)
        rest = multiply_add(n, self.d, rest, fused=fused)
        return np.asarray(n + np.floor(multiply_add(r, self.m, rest, fused=fused)))


@returns(per_channel(9, optional=1))
def split_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray, bottom: int
) -> tuple[np.ndarray, ...]:
    """`fit_split` as arrays, e empty where there is none; nothing without a proof."""
    fit = fit_split(thresholds, slope, low, high, bottom)
    return () if fit is None else tuple(np.zeros(0, np.float32) if v is None else v for v in fit)


def of_split_arrays(arrays: Sequence[np.ndarray]) -> SplitRequantization:
    """The requantization of `split_arrays`."""
    h, low, high, p, step, m, d, c, e = arrays
    return SplitRequantization(h, low, high, p, step, m, d, c, e if e.size else None)


def fit_split(
    thresholds: np.ndarray,
    slope: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    bottom: int,
    *,
    below: np.ndarray | None = None,
) -> SplitRequantization | None:
    """The requantization with thresholds T(1) ... T(L) int64 [L, C] of the levels from `bottom` + 1 on.
    Accumulators are in [low, high] int64 [C], with about `slope` float64 [C] levels per unit; 0 is in the middle of
    level 0. None without a proof. `below`: the greatest accumulators below each threshold, if they are not one
    less.

    A channel with one result on its whole range is that number whatever x is. Of others, what is between the first
    level and the last one is below 2^24.
    """
    fit = SplitRequantization(*(np.zeros(low.shape, np.float32) for _ in range(9)))
    live = live_channels(thresholds, low, high)
    first, last = np.maximum(thresholds[0] - 1 if below is None else below[0], low), np.minimum(thresholds[-1], high)
    run = 1 / np.where(live, slope, 1)
    most = np.maximum(-first, last) + 2 * run
    wide = live & (run >= _FEWEST) & (most < EXACT)
    unit = np.exp2(np.floor(np.log2(EXACT / np.where(wide, most, 1))))
    beneath = thresholds - 1 if below is None else below
    task = _SplitTask(thresholds, beneath, first, last, slope, np.rint(run * unit) / unit, bottom)
    for share in _SHARES:
        left = np.nonzero(wide & (fit.p == 0))[0]
        for block in blocks(left.size):
            _fill(fit, left[block], task.of(left[block]), share)
    rest = np.nonzero(fit.p == 0)[0]
    if rest.size:
        some = thresholds.take(rest, 1), slope[rest], low[rest], high[rest], bottom
        one = fit_clipped(*some, below=None if below is None else below.take(rest, 1))
        if one is None:
            return None
        fit.h[rest], fit.low[rest], fit.m[rest], fit.c[rest] = one.h, -one.span, one.m, one.c
    return fit if fit.e is not None and fit.e.any() else fit._replace(e=None)


class _SplitTask(NamedTuple):
    """Thresholds of the levels from `bottom` + 1 on and the greatest accumulators below them, int64 [L, C]. x is in
    [first, last], int64 [C]. Levels per accumulator and, rounded, accumulators per level, float64 [C]."""

    thresholds: np.ndarray
    below: np.ndarray
    first: np.ndarray
    last: np.ndarray
    slope: np.ndarray
    step: np.ndarray
    bottom: int

    def of(self, channels: np.ndarray) -> _SplitTask:
        first, last, slope, step = (v[channels] for v in (self.first, self.last, self.slope, self.step))
        thresholds, below = (v.take(channels, 1) for v in (self.thresholds, self.below))
        return _SplitTask(thresholds, below, first, last, slope, step, self.bottom)


class _Sides(NamedTuple):
    """Both sides of all thresholds: the accumulators that must reach a level, and those that must not, [2, L, C].
    `c`: the c for which r m + n d + c is zero there, NaN where there is no such accumulator. `error`: its distance
    beyond that; `around`: its distance for f to be n or one less. `centred`: whether n is the level, bool [C]."""

    c: np.ndarray
    error: np.ndarray
    around: float
    centred: np.ndarray

    @classmethod
    def of(cls, task: _SplitTask, fit: SplitRequantization, steps: Steps) -> _Sides:
        """The sides of a fit. The error is the largest sum of the roundings next to a threshold, where n d + c is
        as large as r m. These are the roundings of r m, n d and n d + c, or r m + n d. Farther away the error is
        larger by no more than the sum, which keeps its sign when rounded."""
        x = np.stack([steps.reached, steps.missed])
        u = x - fit.h
        n = np.floor(u.astype(np.float32) * fit.p)
        begins = (x == task.thresholds) | (x == task.below)  # not an end of the range
        r_m = (u - n * task.step) * fit.m.astype(np.float64)
        n_d = n * fit.d.astype(np.float64)
        error = _half(r_m) + _half(n_d) + (np.abs(r_m) + np.abs(n_d)) * 2.0**-24 + _LITTLE
        around = float(np.abs(steps.level).max() + 1) * _ROUNDED
        return cls(steps.level - n - (r_m + n_d), error, around, ~(begins & (n != steps.level)).any((0, 1)))

    def left(self, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The interval that some levels, bool [L], leave to c: from the first to the second, float64 [C]."""
        at_least, below = self.c[0] + self.error[0], self.c[1] - self.error[1]
        at_least, below = (np.where(np.isnan(v), free, v)[some] for v, free in ((at_least, -1), (below, 0)))
        return at_least.max(0, initial=self.around - 1), below.min(0, initial=-self.around)


def _fill(result: SplitRequantization, channels: np.ndarray, task: _SplitTask, share: float) -> None:
    """Fills in the constants of the channels for which they are proven."""
    p = task.slope.astype(np.float32)
    h = -np.rint(task.step * (0.5 + share))
    d = (task.step * task.slope - 1).astype(np.float32)
    zero = np.zeros_like(p)
    h, low, high, step = (v.astype(np.float32) for v in (h, task.first - h, task.last - h, task.step))
    fit = SplitRequantization(h, low, high, p, step, p, d, zero, zero)
    steps = Steps.of(task.thresholds, task.below, task.first, task.last, task.bottom)
    sides = _Sides.of(task, fit, steps)
    up = steps.level[:, 0] > 0
    (least, most), (least_up, most_up) = sides.left(~up), sides.left(up)
    both = np.maximum(least, least_up), np.minimum(most, most_up)
    jumps = both[1] <= both[0]
    c = (np.where(jumps, least + most, both[0] + both[1]) / 2).astype(np.float32)
    e = np.where(jumps, (least_up + most_up) / 2 - c, 0).astype(np.float32)
    above = c + e.astype(np.float64)
    error = np.where(jumps, (np.abs(above) + np.abs(c)) * 2.0**-24, 0)
    proven = sides.centred & (least <= c) & (c <= most) & (least_up + error <= above) & (above <= most_up - error)
    for target, new in zip(result, fit._replace(c=c, e=e), strict=True):
        assert target is not None
        assert new is not None
        target[channels[proven]] = new[proven]


def _half(x: np.ndarray) -> np.ndarray:
    """Half a unit in the last place of numbers in float32, float64."""
    return np.spacing(np.abs(x).astype(np.float32)).astype(np.float64) / 2
