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
from tflq.numerics.requantize.climb import Climb, Nearest, Steps, blocks
from tflq.numerics.requantize.float_forms import FloatForm, Prepare
from tflq.numerics.requantize.forms import Ops, X
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
    """A search for lines. `top`: where the last level is reached; `span`: the number of accumulators by which h may be
    further, int64 [C]."""

    climb: Climb
    top: np.ndarray
    span: np.ndarray
    rounding: SumRounding

    def of_channels(self, channels: np.ndarray) -> _Task:
        return _Task(self.climb.of_channels(channels), self.top[channels], self.span[channels], self.rounding)

    def proves(self, fit: Falling, steps: Steps) -> np.ndarray:
        """Whether a line meets every threshold and ends at the last level, bool [C]."""
        ends = np.floor(fit.c) <= steps.levels[-1]
        if self.rounding == "separate":
            return ends & steps.meets_thresholds(fit(steps.reached), fit(steps.missed))
        at_least, below = steps.left(fit.h.astype(np.float64), fit.m, self.rounding)
        return ends & (at_least <= fit.c) & (fit.c < below)


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
    lines, channels = Falling(*(np.zeros(low.size - rest.size, np.float32) for _ in range(3))), np.nonzero(live)[0]
    if not _search(_Task(climb, top, span, rounding).of_channels(channels), lines):
        return None
    fit.store(channels, lines)
    return fit


def _search(task: _Task, result: Falling) -> bool:
    """Fills `result`; answers whether all channels have a line. Those that have the least room are tried first: where
    one of them has no line, the others need none."""
    room = _room(task.climb)
    if room is None:
        return False
    hardest = np.argsort(room[1] - room[0])[:_HARDEST]
    if room.shape[1] > _HARDEST and not _fill(task, result, room, hardest):
        return False
    return _fill(task, result, room, np.arange(room.shape[1]))


def _room(climb: Climb) -> np.ndarray | None:
    """The room of lines of the nearest m, float64 [2, C]; None if a channel has no line, as where thresholds jump at
    zero."""
    slope = climb.slope.astype(np.float32).astype(np.float64)
    channels, rooms = np.arange(slope.size), []
    for some in (channels[:_HARDEST], channels):  # where a few have none, the others are not looked at
        rooms = [climb.of_channels(block).room(slope[block]) for block in blocks(some.size)]
        if any((room[0] > room[1] + climb.thresholds.shape[0] * 2.0**-22).any() for room in rooms):
            return None
    return np.concatenate(rooms, 1)


def _fill(task: _Task, result: Falling, room: np.ndarray, channels: np.ndarray) -> bool:
    """Fills `result` for some channels; answers whether all of them have a line."""
    some = task.of_channels(channels)
    fit, sure = _middle(some, room[:, channels])
    rest = np.nonzero(~sure)[0]
    if rest.size:
        some, lines = some.of_channels(rest), fit.of_channels(rest)
        near = some.climb.nearest(lines.m.astype(np.float64), _TIMES, some.climb.size)
        proven = np.zeros(rest.size, bool)
        for group in near.groups():
            proven[group] = some.of_channels(group).proves(lines.of_channels(group), near.steps(group))
        if not _waves(some, lines, near, np.nonzero(~proven)[0], channels.size):
            return False
        fit.store(rest, lines)
    result.store(channels, fit)
    return True


def _middle(task: _Task, room: np.ndarray) -> tuple[Falling, np.ndarray]:
    """The line of the nearest m through the middle of all thresholds, and whether no rounding decides about it: all are
    farther from it than a product and a sum are rounded by."""
    climb, m = task.climb, task.climb.slope.astype(np.float32)
    slope = m.astype(np.float64)
    at_least, most = room[0], np.minimum(room[1], climb.levels[-1] + 1 - task.top * slope)
    c = ((at_least + most) / 2 + task.top * slope).astype(np.float32)
    largest = np.maximum(np.abs(c), (task.top - np.maximum(climb.beneath(0), climb.low)) * slope)
    rounded = np.spacing(largest.astype(np.float32)) / 2 + _LITTLE
    h, offset = task.top.astype(np.float32), c - task.top * slope
    sure = (h == task.top) & (at_least + rounded <= offset) & (offset < most - 2 * rounded)
    return Falling(h, m, c), sure


def _waves(task: _Task, result: Falling, near: Nearest, left: np.ndarray, of: int) -> bool:
    """Fills `result` for the channels that are left, of so many; answers whether all of them have a line."""
    if not left.size:
        return True
    tight, order = HardestThresholds.of(near.steps(left), task.climb.slope[left], odd=False), 0
    for wave, tried in enumerate(_TRIED):
        if not left.size:
            break
        fit, some = _tried(task.of_channels(left), tight, np.arange(order, order + tried)[:, None])
        hits, order = np.nonzero(some)[0], order + tried
        if hits.size:
            proven = task.of_channels(left[hits]).proves(fit.of_channels(hits), near.steps(left[hits]))
            hits = hits[proven]
            result.store(left[hits], fit.of_channels(hits))
            rest = np.delete(np.arange(left.size), hits)
            left, tight = left[rest], tight.columns(rest)
        if left.size > max(_LEFT[min(wave, 1)] * of, _FEW):
            return False
        if wave == 1 and 0 < left.size <= _LAST:
            further = np.arange(order, sum(_TRIED))[:, None]
            if not _tried(task.of_channels(left), tight, further)[1].all():
                return False
    return not left.size


def _tried(task: _Task, tight: HardestThresholds, order: np.ndarray) -> tuple[Falling, np.ndarray]:
    """The line of each channel that leaves most room on its tightest thresholds, and whether it leaves any. It is
    chosen among some h by their order [H, 1]."""
    h = task.top + order * _FURTHER % task.span
    near = from_steps(np.maximum(float_steps(task.climb.slope.astype(np.float32)) + _STEPS, 0))
    h, m = np.tile(h, (len(near), 1)), np.repeat(near, len(order), 0)
    bounds = whole_bounds(task.climb.bottom + 1, task.climb.thresholds.shape[0])[None]
    gain = np.zeros(m.shape, np.int64)
    lines = tight.lines(h.astype(np.float64), m, bounds, gain, rounding=task.rounding)
    columns = np.arange(task.climb.slope.size)
    fit = Falling(h[lines.best, columns].astype(np.float32), m[lines.best, columns], lines.c)
    return fit, lines.any
