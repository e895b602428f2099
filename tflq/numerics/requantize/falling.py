"""Requantization in float32 by one line: of sums that fall, or of sums that are clipped.

    u = relu(h - x)                       the convolution's own: weights with the other sign, h in the bias
    f(x) = floor(relu(c - u * m))         MUL, ADD with RELU, FLOOR

h is where the last level has been reached, so the first rectifier ends the levels above and the second one below:
neither a clamp nor the product that undoes its scale is needed. f is monotone in x for m >= 0, so it equals the
requantization if f(T(n)) has reached n and f(T(n) - 1) has not, and the same at
the ends.

There is no gain to choose, so m is fixed; h is any integer before the line reaches a further level. Some are tried,
with c in the middle of what they leave (-u m is (x - h) m). Where thousands of accumulators share a level that is
not enough.

The same line with one clamp of whole numbers, whose lower end is where the line has left the first level:

    f(x) = floor(clip(x - h, -span, 0) * m + c)         CLIP, MUL, ADD, FLOOR

As the clamp stands before the product, no runtime can multiply m into the weights of the convolution, and it has no
other constants to put together. What is left to it is to round MUL and ADD once (`tflq.numerics.float_basics`), so
these lines are proven with both roundings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from tflq.numerics.float_basics import EXACT, FARTHEST, SumRounding, float_steps, from_steps, whole_bounds
from tflq.numerics.requantize.climb import Climb
from tflq.numerics.requantize.float_forms import FloatForm, Prepare
from tflq.numerics.requantize.forms import Ops, X
from tflq.numerics.requantize.gaps import Gaps, Nearest
from tflq.numerics.requantize.lines import HardestThresholds

# These numbers bound the search, not the proof. By docs/decisions/0016 it decides 83 of 3,560 models, and takes 0.8 of
# the 4.6 s in which those that meet it are converted.
_TRIED: Final = (4, 12, *[32] * 6)  # h of each wave
_STEPS: Final = np.asarray([0, 1, -1])[:, None]  # of m away from the real slope
_FURTHER: Final = 7  # how far h is from the one before
_LEFT: Final = (0.8, 0.25)  # the share of channels that is too many after the first waves, if more than a few
_ROOM: Final = 0.9  # how much of a level h may use up
_FEW: Final = 12
_HARDEST: Final = 8  # channels that are tried first
_LAST: Final = 4  # so many channels or fewer are tried with all further h at once
_LITTLE: Final = 2.0**-40  # of a level: more than the room is rounded by
_TIMES: Final = 3  # roundings twice, of the product and the sum or the level, and one of the slope


@dataclass(frozen=True, eq=False)
class Falling(FloatForm):
    """floor(relu(c - u m)) of u = relu(h - x): proven at every threshold, with product and sum rounded separately."""

    h: np.ndarray
    m: np.ndarray
    c: np.ndarray

    @classmethod
    def fit(cls, climb: Climb) -> Falling | None:
        return _fit(climb._replace(bottom=0), "separate")

    def prepare(self) -> Prepare:
        return Prepare(negate=True, add=self.h, relu=True)

    def offset(self, bottom: int) -> int:
        return bottom

    def apply(self, x: X, ops: Ops[X]) -> X:
        return ops.floor(ops.multiply_add(x, ops.row(-self.m), ops.row(self.c), relu=True))


@dataclass(frozen=True, eq=False)
class Clipped(FloatForm):
    """floor(clip(x - h, -span, 0) m + c): proven at every threshold, with product and sum rounded separately and
    once."""

    h: np.ndarray
    span: np.ndarray
    m: np.ndarray
    c: np.ndarray

    @classmethod
    def fit(cls, climb: Climb) -> Clipped | None:
        line = _fit(climb, "either")
        if line is None:
            return None
        over = np.maximum(line.c - np.float32(climb.bottom + 0.5), 0)
        span = np.divide(over, line.m, out=np.zeros_like(over), where=line.m > 0)
        return cls(line.h, span, line.m, line.c)

    def prepare(self) -> Prepare:
        return Prepare(negate=False, add=-self.h, relu=False)

    def falling(self, bottom: int) -> Falling | None:
        return Falling(self.h, self.m, self.c) if bottom == 0 else None

    def apply(self, x: X, ops: Ops[X]) -> X:
        u = ops.clip(x, -self.span, np.zeros_like(self.span))
        return ops.floor(ops.multiply_add(u, ops.row(self.m), ops.row(self.c)))


class _Task(NamedTuple):
    """A search for lines by steps of C channels. `slope`: levels per accumulator, float64 [C]; `top`: where the last
    level is reached; `span`: the number of accumulators by which h may be further, int64 [C]."""

    steps: Nearest
    slope: np.ndarray
    top: np.ndarray
    span: np.ndarray
    rounding: SumRounding

    def of_channels(self, some: np.ndarray) -> _Task:
        slope, top, span = (v[some] for v in (self.slope, self.top, self.span))
        return _Task(self.steps.of_channels(some), slope, top, span, self.rounding)

    @property
    def m(self) -> np.ndarray:
        """The float32 numbers next to the slope."""
        return self.slope.astype(np.float32)

    @property
    def bounds(self) -> np.ndarray:
        """The `level_bounds` of all levels."""
        return whole_bounds(int(self.steps.levels[0]), self.steps.levels.size)

    def proves(self, fit: Falling) -> np.ndarray:
        """Whether a line meets every threshold and ends at the last level, bool [C]."""
        ends, steps = np.floor(fit.c) <= self.steps.levels[-1], self.steps
        each = fit.of_channels(steps.channel)
        if self.rounding == "separate":
            return np.asarray(ends & steps.meets(each(steps.x), steps.level))
        less, bounds = (steps.x - each.h).astype(np.float32), self.bounds.take(steps.place)
        for product in (less * each.m, less.astype(np.float64) * each.m):
            ends &= steps.meets(each.c, bounds - product)
        return ends


def _fit(climb: Climb, rounding: SumRounding) -> Falling | None:
    top = np.clip(climb.thresholds[-1], climb.low, climb.high)
    span = np.clip(_ROOM / np.maximum(climb.slope, 1 / EXACT), 1, sum(_TRIED) * _FURTHER).astype(np.int64)
    least = top + span - EXACT  # below it x is rounded, but on the first level anyway
    climb = climb.exact_part(least)
    low, live = climb.low, climb.live
    farthest = EXACT if rounding == "separate" else FARTHEST
    if (low < least)[live].any() or (np.abs(top) + span >= farthest)[live].any():
        return None
    fit, rest = Falling(*(np.zeros(low.shape, np.float32) for _ in range(3))), np.nonzero(~live)[0]
    fit.c[rest] = (climb.thresholds[:, rest] <= low[rest]).sum(0) + (climb.bottom + 0.5)
    if rest.size == low.size:
        return fit
    some = np.nonzero(live)[0]
    lines = _search(climb.of_channels(some), top[some], span[some], rounding)
    if lines is None:
        return None
    fit.store(some, lines)
    return fit


def _search(climb: Climb, top: np.ndarray, span: np.ndarray, rounding: SumRounding) -> Falling | None:
    """The lines of all channels; None if one has none, as where thresholds jump at zero. Where a few have none, the
    others are not looked at. Those that have the least room are tried first."""
    slope = climb.slope.astype(np.float32).astype(np.float64)
    few, least = np.arange(slope.size)[:_HARDEST], climb.thresholds.shape[0] * -(2.0**-22)
    for some in (few, np.arange(slope.size)):
        gaps = Gaps.of(climb.of_channels(some), slope[some])
        at_least, below = gaps.room()
        if (below - at_least < least).any():
            return None
    result, sure = _middle(gaps, at_least, below, top)
    left = np.nonzero(~sure)[0]
    left = left[np.argsort((below - at_least)[left])]
    for some in (np.sort(v) for v in (left[:_HARDEST], left[_HARDEST:]) if v.size):
        steps = gaps.nearest(some, _TIMES, climb.size)
        task = _Task(steps, climb.slope[some], top[some], span[some], rounding)
        lines = _proven(task, result.of_channels(some), slope.size)
        if lines is None:
            return None
        result.store(some, lines)
    return result


def _middle(gaps: Gaps, at_least: np.ndarray, below: np.ndarray, top: np.ndarray) -> tuple[Falling, np.ndarray]:
    """The line through the middle of all thresholds, and whether no rounding decides about it: all are farther from it
    than a product and a sum are rounded by."""
    climb, slope = gaps.climb, gaps.slope
    most = np.minimum(below, climb.levels[-1] + 1 - top * slope)
    c = ((at_least + most) / 2 + top * slope).astype(np.float32)
    largest = np.maximum(np.abs(c), (top - np.maximum(climb.beneath(0), climb.low)) * slope)
    rounded = np.spacing(largest.astype(np.float32)) / 2 + _LITTLE
    h, offset = top.astype(np.float32), c - top * slope
    sure = (h == top) & (at_least + rounded <= offset) & (offset < most - 2 * rounded)
    return Falling(h, slope.astype(np.float32), c), sure


def _proven(task: _Task, result: Falling, of: int) -> Falling | None:
    """Lines that are proven, the first ones where these are, of so many channels; None if one has none."""
    left, order = np.nonzero(~task.proves(result))[0], 0
    if not left.size:
        return result
    task = task.of_channels(left)
    tight = HardestThresholds.of(task.steps, task.slope, odd=False)
    for wave, tried in enumerate(_TRIED):
        fit, some = _tried(task, tight, np.arange(order, order + tried)[:, None])
        hits, order = np.nonzero(some)[0], order + tried
        if hits.size:
            hits = hits[task.of_channels(hits).proves(fit.of_channels(hits))]
            result.store(left[hits], fit.of_channels(hits))
            if hits.size == left.size:
                return result
            rest = np.delete(np.arange(left.size), hits)
            left, task, tight = left[rest], task.of_channels(rest), tight.columns(rest)
        if left.size > max(_LEFT[min(wave, 1)] * of, _FEW):
            return None
        if wave == 1 and left.size <= _LAST:
            further = np.arange(order, sum(_TRIED))[:, None]
            if not _tried(task, tight, further)[1].all():
                return None
    return None


def _tried(task: _Task, tight: HardestThresholds, order: np.ndarray) -> tuple[Falling, np.ndarray]:
    """The line of each channel that leaves most room on its tightest thresholds, and whether it leaves any. It is
    chosen among some h by their order [H, 1]."""
    h = task.top + order * _FURTHER % task.span
    near = from_steps(np.maximum(float_steps(task.m) + _STEPS, 0))
    h, m = np.tile(h, (len(near), 1)), np.repeat(near, len(order), 0)
    lines = tight.lines(h.astype(np.float64), m, task.bounds, rounding=task.rounding)
    columns = np.arange(task.slope.size)
    fit = Falling(h[lines.best, columns].astype(np.float32), m[lines.best, columns], lines.c)
    return fit, lines.any
