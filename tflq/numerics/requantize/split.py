"""Requantization in float32 in two steps: whole levels first, then what is left, which is small.

    u = clip(x - h, low, high)              from before the first level to where the last one is reached
    n = floor(u * p)                        p about the levels per accumulator
    r = u - n * S                           S the accumulators per level, with as many bits as keep n * S exact
    f(x) = n + floor(r * m + (n * d + c))                           d = S m - 1, what S leaves over
    f(x) = n + floor(r * m + (n * d + (clip(n, 0, 1) * e + c)))     where thresholds jump at zero: two roundings

u, n S and r have 24 bits: they are exact, however they are rounded. With that h, level k begins a part of a level
after n = k does, one of `_SHARES`. There, r m is that part, and the rest is about as far below zero; each rounding
is 2^-25 of a level or less, while in one line of all levels it is 2^-17.

The proof is in bounds of all roundings. Where n = k, the sum of the real numbers r m + n d + c climbs by one level
around zero, so f is k - 1 or k. It is k from T(k) on, and not before, if the sum there is further from zero than any
roundings add up to. So the proof holds for MUL and ADD rounded separately or once, and for c added last: that sum
has the sign of what it rounds, and those before are as large as c. Channels of few accumulators to a level, and
others without this proof, have one line (`falling.py`), with an n of 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final, NamedTuple

import numpy as np

from tflq.numerics.float_basics import EXACT
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.falling import Clipped
from tflq.numerics.requantize.float_forms import FloatForm, Prepare
from tflq.numerics.requantize.forms import Ops, X
from tflq.numerics.requantize.gaps import Gaps, Nearest

# With these numbers 145 of 395 requantizations in networks have two steps, and 247 a line; levels have up to 84,000
# accumulators there.
_FEWEST: Final = 4  # accumulators to a level
_SHARES: Final = (0.25, 0.0625, 0.015625, 0.5)
_ROUNDED: Final = 2.0**-22  # of a number: more than two roundings are
_TIMES: Final = 4  # roundings twice, of the product and the sum, which are about a level
_SIZE: Final = 4.0
_LITTLE: Final = 2.0**-40  # of a level: more than the proof itself is rounded by


@dataclass(frozen=True, eq=False)
class Split(FloatForm):
    """n + floor((u - n S) m + (n d + c)) of u = clip(x - h, low, high) and n = floor(u p): the proof bounds the
    roundings of the second step, which is small. S is `step`; where thresholds jump at zero, e is added to c where n
    is positive."""

    optional: ClassVar[int] = 1
    zero_centred: ClassVar[bool] = True

    h: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray
    step: np.ndarray
    m: np.ndarray
    d: np.ndarray
    c: np.ndarray
    e: np.ndarray | None

    @classmethod
    def fit(cls, climb: Climb) -> Split | None:
        """A channel with one result on its whole range is that number whatever x is. Of others, what is between the
        first level and the last one is below 2^24."""
        thresholds, slope, live = climb.thresholds, climb.slope, climb.live
        fit = cls(*(np.zeros(live.shape, np.float32) for _ in range(9)))
        begins = thresholds[0] - 1 if climb.below is None else climb.below[0]
        first, last = np.maximum(begins, climb.low), np.minimum(thresholds[-1], climb.high)
        run = 1 / np.where(live, slope, 1)
        most = np.maximum(-first, last) + 2 * run
        wide = live & (run >= _FEWEST) & (most < EXACT)
        unit = np.exp2(np.floor(np.log2(EXACT / np.where(wide, most, 1))))
        task = _Task(climb._replace(low=first, high=last), np.rint(run * unit) / unit)
        if wide.any():
            left = np.nonzero(wide)[0]
            _fill(fit, left, task.of_channels(left))
        rest = np.nonzero(fit.p == 0)[0]
        if rest.size:
            one = Clipped.fit(climb.of_channels(rest))
            if one is None:
                return None
            fit.h[rest], fit.low[rest], fit.m[rest], fit.c[rest] = one.h, -one.span, one.m, one.c
        return fit if fit.e is not None and fit.e.any() else replace(fit, e=None)

    def prepare(self) -> Prepare:
        return Prepare(negate=False, add=-self.h, relu=False)

    def apply(self, x: X, ops: Ops[X]) -> X:
        u = ops.clip(x, self.low, self.high)
        n = ops.floor(ops.mul(u, ops.row(self.p)))
        if ops.constants_last:
            r = ops.sub(u, ops.mul(n, ops.row(self.step)))
            rest = ops.products(r, ops.row(self.m), n, ops.row(self.d))
            if self.e is not None:
                rest = ops.add(rest, ops.mul(ops.positive(n), ops.row(self.e)))
            return ops.add(n, ops.floor(ops.add(rest, ops.row(self.c))))
        rest = ops.row(self.c)
        if self.e is not None:
            rest = ops.multiply_add(ops.positive(n), ops.row(self.e), rest)
        rest = ops.multiply_add(n, ops.row(self.d), rest)
        r = ops.sub(u, ops.mul(n, ops.row(self.step)))
        return ops.add(n, ops.floor(ops.multiply_add(r, ops.row(self.m), rest)))


class _Task(NamedTuple):
    """Climbs between the first level and where the last one is reached, and the accumulators per level, rounded,
    float64 [C]."""

    climb: Climb
    step: np.ndarray

    def of_channels(self, channels: np.ndarray) -> _Task:
        return _Task(self.climb.of_channels(channels), self.step[channels])


def _whole_levels(fit: Split, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """u and n of accumulators float64."""
    u = x - fit.h
    return u, np.floor(u.astype(np.float32) * fit.p)


def _fill(result: Split, channels: np.ndarray, task: _Task) -> None:
    """Fills in the constants of the channels, with the first of the shares for which they are proven."""
    climb = task.climb
    gaps, left = Gaps.of(climb, climb.slope), np.arange(channels.size)
    near = gaps.nearest(left, _TIMES, _SIZE, max(-climb.bottom, 0))
    for share in _SHARES:
        fit, proven = _of_share(task, near, share)
        proven &= _centred(task, fit, gaps)
        result.store(channels[left[proven]], fit.of_channels(proven))
        if proven.all():
            break
        rest = np.nonzero(~proven)[0]
        left, task, near, gaps = left[rest], task.of_channels(rest), near.of_channels(rest), gaps.of_channels(rest)


def _of_share(task: _Task, near: Nearest, share: float) -> tuple[Split, np.ndarray]:
    """The constants for a share, and for which channels they are proven if n is the level at all thresholds."""
    climb = task.climb
    p = climb.slope.astype(np.float32)
    h = -np.rint(task.step * (0.5 + share))
    d = (task.step * climb.slope - 1).astype(np.float32)
    zero = np.zeros_like(p)
    h, low, high, step = (v.astype(np.float32) for v in (h, climb.low - h, climb.high - h, task.step))
    fit = Split(h, low, high, p, step, p, d, zero, zero)
    (least, least_up), (most, most_up) = _left(task, fit, near)
    ends = np.maximum(least, least_up), np.minimum(most, most_up)
    jumps = ends[1] <= ends[0]
    c = (np.where(jumps, least + most, ends[0] + ends[1]) / 2).astype(np.float32)
    e = np.where(jumps, (least_up + most_up) / 2 - c, 0).astype(np.float32)
    above = c + e.astype(np.float64)
    error = np.where(jumps, (np.abs(above) + np.abs(c)) * 2.0**-24, 0)
    proven = (least <= c) & (c <= most) & (least_up + error <= above) & (above <= most_up - error)
    return replace(fit, c=c, e=e), proven


def _left(task: _Task, fit: Split, near: Nearest) -> tuple[np.ndarray, np.ndarray]:
    """The interval that levels up to 0, and those above it, leave to c: from the first to the second, float64 [2, C].

    At each step there is a c for which r m + n d + c is zero. It must be farther away than the largest sum of the
    roundings next to a threshold, where n d + c is as large as r m. These are the roundings of r m, n d and n d + c, or
    r m + n d. Farther away the error is larger by no more than the sum, which keeps its sign when rounded. Around all
    thresholds, f must be n or one less.
    """
    each, level = fit.of_channels(near.channel), near.level
    u, n = _whole_levels(each, near.x)
    r_m = (u - n * task.step[near.channel]) * each.m.astype(np.float64)
    n_d = n * each.d.astype(np.float64)
    error = _half(r_m) + _half(n_d) + (np.abs(r_m) + np.abs(n_d)) * 2.0**-24 + _LITTLE
    error[near.reached :] *= -1
    around = float(np.abs(near.levels).max() + 1) * _ROUNDED
    at_least, below = near.ends(level - n - (r_m + n_d) + error, level > 0, 2)
    return np.maximum(at_least, around - 1), np.minimum(below, -around)


def _centred(task: _Task, fit: Split, gaps: Gaps) -> np.ndarray:
    """Whether n is the level on near sides of all thresholds that are not an end of the range, bool [C]. Most are
    farther from the next level than roundings are large, also those beyond the range."""
    centred = _far_from_next(fit, gaps)
    for exact in (False, True):
        if centred.all():
            break
        rest = np.nonzero(~centred)[0]
        climb, some = task.climb.of_channels(rest), fit.of_channels(rest)
        whole = climb._replace(low=climb.thresholds[0] - 1, high=climb.thresholds[-1])
        centred[rest] = _exactly_centred(climb, some) if exact else _far_from_next(some, Gaps.of(whole, climb.slope))
    return centred


def _far_from_next(fit: Split, gaps: Gaps) -> np.ndarray:
    """Whether the next level is farther from all thresholds than roundings are large, bool [C]."""
    climb, begin = gaps.climb, fit.h * gaps.slope
    off = float(np.abs(climb.levels).max() + 2) * _ROUNDED
    return np.asarray((-gaps.upper.max(1) - gaps.slope - begin >= off) & (-gaps.lower.min(1) - begin < 1 - off))


def _exactly_centred(climb: Climb, fit: Split) -> np.ndarray:
    """Whether n is the level next to thresholds, as it is computed, bool [C]."""
    steps, centred = climb.steps, np.ones(climb.slope.size, bool)
    for x, end in ((steps.reached, climb.thresholds), (steps.missed, climb.beneath())):
        _, n = _whole_levels(fit, x)
        centred &= ~((x == end) & (n != climb.levels[:, None])).any(0)
    return centred


def _half(x: np.ndarray) -> np.ndarray:
    """Half a unit in the last place of numbers in float32, float64."""
    return np.spacing(np.abs(x).astype(np.float32)).astype(np.float64) / 2
