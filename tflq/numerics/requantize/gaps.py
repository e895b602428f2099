"""Distances of levels from a line, and the steps so near to it that roundings decide about them.

A line of a slope and an offset is at least n from T(n) on, and less than n before it. So each level bounds the offset
by its distance from the line at T(n), and one accumulator after what is below T(n). For real numbers the ends of these
bounds alone decide. In float32 each bound moves by what is rounded there, so those decide that are as near to the ends
as roundings are large. They are few (`Nearest`), and searches for lines look at no others.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tflq.numerics.requantize.climb import Climb, as_slice, blocks

_ROUNDED: Final = 2.0**-24  # of a number in float32


class Gaps(NamedTuple):
    """The distances of the levels of a climb above lines of a slope [C] through 0, float64 [C, L]: `lower` at
    thresholds, `upper` one accumulator after what is below these; infinite where there is no such accumulator."""

    climb: Climb
    slope: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @classmethod
    def of(cls, climb: Climb, slope: np.ndarray) -> Gaps:
        levels = climb.levels.astype(np.float64)
        lower = _distances(levels, slope, climb.thresholds)
        upper = lower if climb.below is None else _distances(levels, slope, climb.below + 1)
        cut = np.nonzero((climb.thresholds[0] <= climb.low) | (climb.thresholds[-1] > climb.high))[0]
        if cut.size:
            upper, part = upper.copy(), climb.of_channels(cut)
            place, some = np.nonzero(part.thresholds <= part.low)
            lower[cut[some], place] = levels[place] - part.low[some] * slope[cut[some]]
            upper[cut[some], place] = np.inf
            place, some = np.nonzero(part.thresholds > part.high)
            lower[cut[some], place] = -np.inf
            last = np.minimum(part.beneath(place, some), part.high[some])
            upper[cut[some], place] = levels[place] - (last + 1) * slope[cut[some]]
        return cls(climb, slope, lower, upper)

    def of_channels(self, some: np.ndarray) -> Gaps:
        """The distances of some channels."""
        return Gaps(self.climb.of_channels(some), *(v[some] for v in self[1:]))

    def room(self) -> tuple[np.ndarray, np.ndarray]:
        """The offset of lines: at least the first, and less than the second, float64 [C]; infinite where there is no
        bound."""
        return self.lower.max(1), self.upper.min(1) + self.slope

    def nearest(self, some: np.ndarray, times: int, size: float, middle: int = 0) -> Nearest:
        """The steps of some channels that decide about lines of about the slope: where these are met all are, however
        products and sums are rounded. Those of levels from the place `middle` on decide by themselves, and so do those
        before it.

        The others are farther from the lines by `times` the rounding in float32 of a number of such a size, and of
        where the line is at 0. That has to be twice what the roundings of a form add up to, and how far the slope of
        its lines leads from this.
        """
        climb = self.climb.of_channels(some)
        sides = (self.lower, np.maximum, np.greater_equal, -times), (self.upper, np.minimum, np.less_equal, times)
        flat: list[list[np.ndarray]] = [[], [], []]
        for gaps, end, compare, way in sides:
            near = np.empty((some.size, climb.thresholds.shape[0]), bool)
            for block in blocks(some.size):
                rows = gaps[as_slice(some[block])]
                for part in (slice(middle), slice(middle, None)):
                    if rows[:, part].size:
                        ends = end.reduce(rows[:, part], 1)
                        ends[np.isinf(ends)] = np.nan
                        ends += way * _ROUNDED * (size + np.abs(ends))
                        compare(rows[:, part], ends[:, None], out=near[block, part])
            channel, place = np.divmod(np.flatnonzero(near), near.shape[1])
            if way < 0:
                x = np.maximum(climb.thresholds[place, channel], climb.low[channel])
            else:
                x = np.minimum(climb.beneath(place, channel), climb.high[channel])
            for each, values in zip(flat, (x.astype(np.float64), place, channel), strict=True):
                each.append(values)
        x, place, channel = (np.concatenate(v) for v in flat)
        return Nearest(x, place, channel, climb.levels, flat[0][0].size, some.size)


def _distances(levels: np.ndarray, slope: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The distances of levels above a line through 0 at x int64 [L, C], float64 [C, L]."""
    gaps = np.empty(x.shape[::-1])
    for block in blocks(slope.size):  # by rows, so that what follows reduces each at once
        np.multiply(x.T[block].astype(np.float64, "C"), -slope[block, None], out=gaps[block])
        gaps[block] += levels
    return gaps


class Nearest(NamedTuple):
    """The steps that decide about lines of C channels: those that must reach a level, then those that must not, channel
    by channel.

    x: accumulators, float64 [N]. place: of the level among `levels`, all of which this has, int64. channel: int64 [N].
    reached: how many must reach their level. channels: C.
    """

    x: np.ndarray
    place: np.ndarray
    channel: np.ndarray
    levels: np.ndarray
    reached: int
    channels: int

    @property
    def level(self) -> np.ndarray:
        """The level of each step, int64 [N]."""
        return self.place + int(self.levels[0])

    @property
    def missed(self) -> np.ndarray:
        """Whether each step must not reach its level, bool [N]."""
        return np.arange(self.x.size) >= self.reached

    def offsets(self, slope: np.ndarray) -> np.ndarray:
        """The bound that each step sets to the offset of a line of a slope [C], in levels, float64 [N]."""
        return self.x * -slope[self.channel] + self.level

    def ends(self, bounds: np.ndarray, part: np.ndarray | int = 0, parts: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The greatest of the bounds [N] of steps that must reach a level, and the least of the others. Of each channel
        and part, float64 [P, C]; infinite where there are none. `part`: of each step, in this order in a channel."""
        line, ends = self.channel * parts + part, []
        for some, function, none in (
            (slice(self.reached), np.maximum, -np.inf),
            (slice(self.reached, None), np.minimum, np.inf),
        ):
            each, first = np.full(parts * self.channels, none), np.flatnonzero(np.diff(line[some], prepend=-1))
            if first.size:
                each[line[some][first]] = function.reduceat(bounds[some], first)
            ends.append(each.reshape(-1, parts).T)
        return ends[0], ends[1]

    def of_channels(self, some: np.ndarray) -> Nearest:
        """The steps of some channels, in order."""
        if some.size == self.channels:
            return self
        number = np.full(self.channels, -1)
        number[some] = np.arange(some.size)
        channel = number[self.channel]
        there = channel >= 0
        x, place, channel = (v[there] for v in (self.x, self.place, channel))
        return Nearest(x, place, channel, self.levels, int(there[: self.reached].sum()), some.size)

    def meets(self, results: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Whether results are at least their bounds where these must be reached, and less elsewhere, [N]: bool [C]."""
        wrong = results < bounds
        wrong[self.reached :] ^= True
        right = np.ones(self.channels, bool)
        right[self.channel[wrong]] = False
        return right
