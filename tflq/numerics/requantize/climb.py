"""Thresholds of a function that climbs, its levels and where: all that a search for a form in float32 needs.

They are those of a scaling, of a table that climbs along a line, or of a table of two that climbs with their product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from tflq.numerics.float_basics import level_bounds
from tflq.numerics.requantize.scaling import Bounds, Factor, Scaling

_BLOCK: Final = 128  # channels whose thresholds stay in the cache
_ROUNDED: Final = 2.0**-24  # of a number in float32
FEW: Final = 8
"""Channels of which all thresholds are looked at as fast as the nearest ones are chosen."""
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

    @property
    def beneath(self) -> np.ndarray:
        """The greatest accumulators below each threshold: int64 [L, C]."""
        return self.thresholds - 1 if self.below is None else self.below

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
    def steps(self) -> Steps:
        """Both sides of all thresholds."""
        return Steps.of(self)

    def exact_part(self, least: np.ndarray) -> Climb:
        """The climbs from `least` [C] on, in channels whose accumulators below that are on the first level, however
        they are rounded."""
        return self._replace(low=np.where(self.thresholds[0] > least, np.maximum(self.low, least), self.low))


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
        return cls(level, reached, np.where(thresholds > low, np.minimum(climb.beneath, high), np.nan), levels)

    @classmethod
    def joined(cls, parts: Sequence[Steps]) -> Steps:
        """The steps of groups of channels: nearest ones, if there are several groups."""
        if len(parts) == 1:
            return parts[0]
        count = max(part.reached.shape[0] for part in parts)
        sides = []
        for arrays in zip(*(part[:3] for part in parts), strict=True):
            rows = [
                np.pad(v, [(0, 0)] * (v.ndim - 2) + [(0, count - v.shape[-2]), (0, 0)], constant_values=np.nan)
                for v in arrays
            ]
            sides.append(np.concatenate(rows, -1))
        level, reached, missed = sides
        return cls(level, reached, missed, parts[0].levels)

    def of_channels(self, some: np.ndarray) -> Steps:
        level = self.level if self.level.shape[1:] != self.reached.shape else self.level[..., some]
        return Steps(level, self.reached[:, some], self.missed[:, some], self.levels)

    def of_levels(self, some: slice) -> Steps:
        """The steps of some levels."""
        return Steps(self.level[:, some], self.reached[some], self.missed[some], self.levels)

    def nearest(self, at_least: np.ndarray, below: np.ndarray, times: int) -> Steps:
        """The steps that decide about lines of a slope, from the room that it leaves, [L, C] or by sign [L, S, C]:
        where these are met all are, however products and sums are rounded.

        The others are farther from the lines by `times` the rounding in float32 of the levels and of their number.
        That has to be twice what the roundings of a form add up to, and how far the slope of its lines leads from this.
        """
        ends = at_least.max(0), below.min(0)
        least = times * _ROUNDED * (self.levels.size + float(np.abs(self.levels[[0, -1]]).max()))
        slack = [np.where(np.isinf(end), np.nan, least + times * _ROUNDED * np.abs(end)) for end in ends]
        near = at_least >= ends[0] - slack[0], below <= ends[1] + slack[1]
        chosen = [_columns(v if v.ndim == self.reached.ndim else v.any(1)) for v in near]
        count = max(1, *(int(place.max(initial=-1)) + 1 for _, _, place in chosen))
        level = np.full((2, count, at_least.shape[-1]), np.nan)
        sides = level.copy()
        for side, (rows, columns, place) in enumerate(chosen):
            level[side, place, columns] = self.level[side][rows, 0]
            sides[side, place, columns] = (self.reached, self.missed)[side][rows, columns]
        return Steps(level, sides[0], sides[1], self.levels)

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

    def left(self, a: np.ndarray, m: np.ndarray, *, fused: bool) -> tuple[np.ndarray, np.ndarray]:
        """The interval that all thresholds leave to c of (x - a) m + c, of a gain of 1: at least the first and less
        than the second, float64 [C]. `fused`: of the product before it is rounded."""
        bounds = level_bounds(self.levels, np.ones(1, np.float32))[0].take(self.places)
        sides = []
        for x, bound, free in ((self.reached, bounds[0], -np.inf), (self.missed, bounds[1], np.inf)):
            room = bound - line_products(x, a, m, fused=fused)
            room[np.isnan(room)] = free
            sides.append(room)
        return sides[0].max(0), sides[1].min(0)

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


def _columns(near: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows and columns of what is near, bool [L, C], column by column, and the place of each in its column."""
    rows, columns = np.divmod(np.flatnonzero(near), near.shape[1])
    order = np.argsort(columns, kind="stable")
    rows, columns = rows[order], columns[order]
    counts = np.bincount(columns, minlength=near.shape[1])
    return rows, columns, np.arange(rows.size) - (np.cumsum(counts) - counts)[columns]


def line_products(x: np.ndarray, a: np.ndarray, m: np.ndarray, *, fused: bool) -> np.ndarray:
    """(x - a) m, rounded to float32 or, `fused`, as it is."""
    less = (x - a).astype(np.float32)
    return less.astype(np.float64) * m if fused else less * m


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
