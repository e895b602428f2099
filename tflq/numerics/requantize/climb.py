"""Thresholds of a function that climbs, its levels and where: all that a search for a form in float32 needs.

They are those of a scaling, of a table that climbs along a line, or of a table of two that climbs with their product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from tflq.numerics.float_basics import SumRounding, whole_bounds
from tflq.numerics.requantize.scaling import Bounds, Factor, Scaling

_BLOCK: Final = 128  # channels whose thresholds stay in the cache
_ROUNDED: Final = 2.0**-24  # of a number in float32
_TOGETHER: Final = 8, 32  # steps of channels that are looked at together
_TABLE_LEVELS: Final = 1024  # that a table may climb, since each two of them are compared


class Climb(NamedTuple):
    """The climbs of C channels on accumulators in [low, high], int64 [C].

    thresholds: T(n) of the levels from `bottom` + 1 on, int64 [L, C]. slope: about the levels per unit, float64 [C].
    below: the greatest accumulators below each threshold, int64 [L, C], if they are not one less.
    """

    thresholds: np.ndarray
    slope: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bottom: int = 0
    below: np.ndarray | None = None

    def of_channels(self, some: np.ndarray) -> Climb:
        """The climbs of some channels."""
        one = _as_slice(some)
        below = None if self.below is None else self.below[:, one]
        return Climb(self.thresholds[:, one], self.slope[one], self.low[one], self.high[one], self.bottom, below)

    def beneath(self, *places: np.ndarray | slice | int) -> np.ndarray:
        """The greatest accumulators below thresholds at some places, int64."""
        return np.asarray(self.thresholds[places] - 1 if self.below is None else self.below[places])

    @property
    def live(self) -> np.ndarray:
        """Whether the level of a channel depends on its accumulator, bool [C]: most have their first or last threshold
        in the range."""
        ends = self.thresholds[[0, -1]]
        live = np.asarray(((ends > self.low) & (ends <= self.high)).any(0))
        if live.all():
            return live
        return np.asarray(((self.thresholds > self.low) & (self.thresholds <= self.high)).any(0))

    @property
    def levels(self) -> np.ndarray:
        """The levels that have a threshold, int64 [L]."""
        return np.arange(self.thresholds.shape[0]) + (self.bottom + 1)

    @property
    def size(self) -> int:
        """The number of levels and the magnitude of the greatest one: that of all numbers on a line and its offset."""
        levels = self.levels
        return levels.size + int(np.abs(levels[[0, -1]]).max())

    @property
    def steps(self) -> Steps:
        """Both sides of all thresholds."""
        return Steps.of(self)

    def room(self, slope: np.ndarray) -> np.ndarray:
        """The offset of lines of a slope [C]: at least the first, and less than the second, float64 [2, C]; infinite
        where there is no bound."""
        lower, upper = self._gaps(slope)
        return np.stack([lower.max(0), upper.min(0) + slope])

    def nearest(self, slope: np.ndarray, times: int, size: float, middle: int = 0) -> Nearest:
        """The steps that decide about lines of a slope [C]: where these are met all are, however products and sums are
        rounded. Those of levels from the place `middle` on decide by themselves, and so do those before it.

        The others are farther from the lines by `times` the rounding in float32 of a number of such a size, and of
        where the line is at 0. That has to be twice what the roundings of a form add up to, and how far the slope of
        its lines leads from this.
        """
        parts = [some for some in (slice(middle), slice(middle, None)) if self.levels[some].size]
        gaps, levels = np.empty((2, slope.size)), self.levels
        sides: tuple[list[_Side], list[_Side]] = [], []
        for block in blocks(slope.size):
            climb = self.of_channels(block)
            lower, upper = climb._gaps(slope[block])
            near = np.empty((2, *lower.shape), bool)
            for some in parts:
                ends = lower[some].max(0), upper[some].min(0)
                slack = [np.where(np.isinf(v), np.nan, times * _ROUNDED * (size + np.abs(v))) for v in ends]
                np.greater_equal(lower[some], ends[0] - slack[0], out=near[0, some])
                np.less_equal(upper[some], ends[1] + slack[1], out=near[1, some])
            gaps[:, block] = lower.min(0), upper.max(0)
            for upward, (side, each) in enumerate(zip(sides, near, strict=True)):
                rows, columns = np.divmod(np.flatnonzero(each), block.size)
                order = np.argsort(columns, kind="stable")
                rows, columns = rows[order], columns[order]
                if upward:
                    x = np.minimum(climb.beneath(rows, columns), climb.high[columns])
                else:
                    x = np.maximum(climb.thresholds[rows, columns], climb.low[columns])
                count = np.bincount(columns, minlength=block.size)
                side.append(_Side(levels[rows].astype(np.float64), x.astype(np.float64), count))
        reached, missed = (_Side(*map(np.concatenate, zip(*side, strict=True))) for side in sides)
        return Nearest(levels, reached, missed, gaps)

    def _gaps(self, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The distance of levels above a line through 0, at thresholds and one accumulator after what is below these:
        float64 [L, C] each; infinite where there is no such accumulator."""
        levels = self.levels[:, None].astype(np.float64)
        thresholds = self.thresholds.astype(np.float64)
        ends = [thresholds] if self.below is None else [thresholds, self.below + 1.0]
        sides = [_distances(levels, slope, x) for x in ends]
        cut = np.nonzero((self.thresholds[0] <= self.low) | (self.thresholds[-1] > self.high))[0]
        if cut.size:
            lower, upper = sides[0], sides[-1].copy()
            low, high = self.low[cut].astype(np.float64), self.high[cut] + 1.0
            reached, missed = (v.take(cut, 1) for v in (thresholds, ends[-1]))  # by rows, as `levels` are
            gaps = _distances(levels, slope[cut], np.maximum(reached, low))
            np.putmask(gaps, reached >= high, -np.inf)
            lower[:, cut] = gaps
            gaps = _distances(levels, slope[cut], np.minimum(missed, high))
            np.putmask(gaps, reached <= low, np.inf)
            upper[:, cut] = gaps
            return lower, upper
        return sides[0], sides[-1]

    def exact_part(self, least: np.ndarray) -> Climb:
        """The climbs from `least` [C] on, in channels whose accumulators below that are on the first level, however
        they are rounded."""
        return self._replace(low=np.where(self.thresholds[0] > least, np.maximum(self.low, least), self.low))


def _distances(levels: np.ndarray, slope: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The distance of levels above a line through 0 at x, float64."""
    gaps = x * -slope
    gaps += levels
    return gaps


def _as_slice(some: np.ndarray) -> np.ndarray | slice:
    """Channels that follow each other as a slice, which copies nothing."""
    if some.size and some[-1] - some[0] == some.size - 1 and (np.diff(some) == 1).all():
        return slice(int(some[0]), int(some[-1]) + 1)
    return some


def climbs_of(s: Scaling[Factor]) -> Iterator[Climb]:
    """The climbs of a scaling: of all channels alike, if they have one factor; then of each."""
    thresholds, slope, bounds = s.thresholds(), s.factor.slope, s.accumulator
    low, high, _ = np.broadcast_arrays(*bounds, slope)
    alike = [Bounds.of(*bounds.range)] if slope.size == 1 < low.size else []
    for each in (*alike, Bounds(low, high)):
        rows = [np.broadcast_to(v, (*v.shape[:-1], each.low.size)) for v in (thresholds, slope)]
        yield Climb(rows[0], rows[1], *each, s.levels.low)


class _Side(NamedTuple):
    """Accumulators and their levels, float64 [N] each, channel by channel, and how many each channel has, [C]."""

    level: np.ndarray
    x: np.ndarray
    counts: np.ndarray

    def padded(self, some: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Levels and accumulators of some channels in so many rows [K, 1], NaN where one has fewer."""
        places = (np.cumsum(self.counts) - self.counts)[some] + rows
        none = rows >= self.counts[some]
        level, x = (v.take(places, mode="clip") if v.size else np.zeros(places.shape) for v in self[:2])
        level[none] = x[none] = np.nan
        return level, x


class Nearest(NamedTuple):
    """The steps of a climb that decide about lines.

    levels: all of them, int64. reached, missed: those that decide. gaps: the distance of levels above a line through 0,
    the least at thresholds and the greatest one accumulator after what is below these, float64 [2, C]; infinite where
    there is no such accumulator.
    """

    levels: np.ndarray
    reached: _Side
    missed: _Side
    gaps: np.ndarray

    def groups(self) -> Iterator[np.ndarray]:
        """Channels that have about as many steps."""
        counts, least = np.maximum(self.reached.counts, self.missed.counts), -1
        for most in (*_TOGETHER, counts.max(initial=0)):
            some = np.nonzero((least < counts) & (counts <= most))[0]
            least = most
            if some.size:
                yield some

    def steps(self, some: np.ndarray) -> Steps:
        """The steps of some channels, NaN where one has fewer than another."""
        sides = self.reached, self.missed
        count = max(int(side.counts[some].max(initial=1)) for side in sides)
        reached, missed = (side.padded(some, np.arange(count)[:, None]) for side in sides)
        return Steps(np.stack([reached[0], missed[0]]), reached[1], missed[1], self.levels)


class Steps(NamedTuple):
    """Requirements on f: at least `level` from `reached` on and less at `missed`, float64 [L, C]. NaN where there is no
    such accumulator. `level`: of both, float64 [2, L, 1], or [2, L, C] of steps that are `nearest`; `levels`: all of
    them, int64."""

    level: np.ndarray
    reached: np.ndarray
    missed: np.ndarray
    levels: np.ndarray

    @classmethod
    def of(cls, climb: Climb) -> Steps:
        """Both sides of all thresholds."""
        thresholds, _, low, high, bottom, below = climb
        levels = np.arange(thresholds.shape[0]) + (bottom + 1)
        level = np.broadcast_to(levels[:, None].astype(np.float64), (2, levels.size, 1))
        if (thresholds[0] > low).all() and (thresholds[-1] <= high).all():
            reached = thresholds.astype(np.float64)
            return cls(level, reached, reached - 1 if below is None else below.astype(np.float64), levels)
        reached = np.where(thresholds <= high, np.maximum(thresholds, low), np.nan)
        return cls(level, reached, np.where(thresholds > low, np.minimum(climb.beneath(), high), np.nan), levels)

    def of_channels(self, some: np.ndarray) -> Steps:
        level = self.level if self.level.shape[1:] != self.reached.shape else self.level[..., some]
        return Steps(level, self.reached[:, some], self.missed[:, some], self.levels)

    @property
    def places(self) -> np.ndarray:
        """The place of each level among all, int64 [2, L, 1 or C]; 0 where there is none."""
        return np.where(np.isnan(self.level), 0, self.level - self.levels[0]).astype(np.int64)

    def room(self, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bounds that each threshold sets to the offset of a line, in levels, [L, C] each: at least the first, and
        less than the second; infinite where there is no bound."""
        sides = []
        for x, level, free in ((self.reached, self.level[0], -np.inf), (self.missed, self.level[1], np.inf)):
            offset = x * -slope
            offset += level
            if np.isnan(x[[0, -1]]).any():
                offset[np.isnan(offset)] = free
            sides.append(offset)
        return sides[0], sides[1]

    def left(self, a: np.ndarray, m: np.ndarray, rounding: SumRounding) -> tuple[np.ndarray, np.ndarray]:
        """The interval that all thresholds leave to c of (x - a) m + c, of a gain of 1: at least the first and less
        than the second, float64 [C]."""
        bounds = whole_bounds(int(self.levels[0]), self.levels.size).take(self.places)
        at_least, below = np.full(m.shape, -np.inf), np.full(m.shape, np.inf)
        for reached, missed in zip(*(line_products(x, a, m, rounding) for x in self[1:3]), strict=True):
            at_least = np.maximum(at_least, np.fmax.reduce(bounds[0] - reached, 0))
            below = np.minimum(below, np.fmin.reduce(bounds[1] - missed, 0))
        return at_least, below

    def split(self, at_least: np.ndarray, below: np.ndarray, *, odd: bool) -> tuple[np.ndarray, np.ndarray]:
        """The bounds for each sign of accumulators, [L, S, C]; S is 1 for lines that are not odd."""
        if not odd:
            return at_least[:, None], below[:, None]
        sides: list[np.ndarray] = []
        for x, values, free in ((self.reached, at_least, -np.inf), (self.missed, below, np.inf)):
            sides.append(np.stack([np.where(x > 0, values, free), np.where(x < 0, values, free)], 1))
        return sides[0], sides[1]

    def meets_thresholds(self, reached: np.ndarray, missed: np.ndarray) -> np.ndarray:
        """Whether the results of both are on the right side of every threshold, bool [C]."""
        with np.errstate(invalid="ignore"):
            return np.asarray(~((reached < self.level[0]) | (missed >= self.level[1])).any(0))


def line_products(x: np.ndarray, a: np.ndarray, m: np.ndarray, rounding: SumRounding) -> Iterator[np.ndarray]:
    """(x - a) m in float32, rounded; for "either" rounding then as it is, too, in float64."""
    less = (x - a).astype(np.float32)
    yield less * m
    if rounding == "either":
        yield less.astype(np.float64) * m


# Lines that tables climb along.


def table_climb(entries: np.ndarray, numbers: np.ndarray) -> Climb | None:
    """The climb of a table along a line, by levels from 0 on. `entries` int64 [N], by the `numbers` int64 [N], which
    climb. None if there is no such line, or if it has more levels than are looked at."""
    least, most = int(entries[0]), int(entries[-1])
    if not least < most <= least + _TABLE_LEVELS or (np.diff(entries) < 0).any():
        return None
    thresholds = numbers[np.searchsorted(entries, np.arange(least + 1, most + 1))].astype(np.int64)
    slope = line_slope(thresholds)
    return Climb(thresholds[:, None], np.asarray([slope]), numbers[:1], numbers[-1:]) if slope else None


def line_slope(thresholds: np.ndarray, below: np.ndarray | None = None) -> float | None:
    """Levels per unit of a line that climbs at T(1) ... T(L) int64 [L], in the middle of what they allow: for any two,
    it gains less than j - i levels from T(i) to what is below T(j). Lines may differ on both sides of zero. None if
    there is no such line."""
    beneath = thresholds - 1 if below is None else below
    least, most = 0.0, np.inf
    ends = _slopes(thresholds, beneath, np.arange(thresholds.size))
    if not ends[0] < ends[1]:
        for side in (thresholds > 0, thresholds <= 0):
            ends = _slopes(thresholds[side], beneath[side], np.arange(thresholds.size)[side])
            least, most = max(least, ends[0]), min(most, ends[1])
        ends = least, most
    if not ends[0] < ends[1]:
        return None
    return (ends[0] + ends[1]) / 2 if np.isfinite(ends[1]) else ends[0] * 2 or 1.0


def _slopes(reached: np.ndarray, missed: np.ndarray, level: np.ndarray) -> tuple[float, float]:
    """The bounds of what lines with these steps gain per unit; twice the same if no line has them."""
    run, rise = missed - reached[:, None], level - level[:, None]
    if ((run == 0) & (rise <= 0)).any():
        return 0.0, 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(run < 0, rise / run, 0).max(initial=0)
        most = np.where(run > 0, rise / run, np.inf).min(initial=np.inf)
    return float(least), float(most)


# Some channels at a time.


def blocks(channels: int) -> Iterator[np.ndarray]:
    """The indices of channels, of so many at a time that their thresholds stay in the cache."""
    return (np.arange(at, min(at + _BLOCK, channels)) for at in range(0, channels, _BLOCK))
