"""Thresholds of a function that climbs, its levels and where: all that a search for a form in float32 needs.

They are those of a scaling, of a table that climbs along a line, or of a table of two that climbs with their product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from tflq.numerics.requantize.scaling import Bounds, Factor, Scaling

_BLOCK: Final = 128  # channels whose thresholds stay in the cache
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
        one = as_slice(some)
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

    def exact_part(self, least: np.ndarray) -> Climb:
        """The climbs from `least` [C] on, in channels whose accumulators below that are on the first level, however
        they are rounded."""
        return self._replace(low=np.where(self.thresholds[0] > least, np.maximum(self.low, least), self.low))


def as_slice(some: np.ndarray) -> np.ndarray | slice:
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
    """Requirements on f: at least one of the `levels` int64 [L] from `reached` on and less at `missed`, float64 [L, C].
    NaN where there is no such accumulator."""

    levels: np.ndarray
    reached: np.ndarray
    missed: np.ndarray

    @classmethod
    def of(cls, climb: Climb) -> Steps:
        """Both sides of all thresholds."""
        thresholds, _, low, high, _, below = climb
        if (thresholds[0] > low).all() and (thresholds[-1] <= high).all():
            reached = thresholds.astype(np.float64)
            return cls(climb.levels, reached, reached - 1 if below is None else below.astype(np.float64))
        reached = np.where(thresholds <= high, np.maximum(thresholds, low), np.nan)
        missed = np.where(thresholds > low, np.minimum(climb.beneath(), high), np.nan)
        return cls(climb.levels, reached, missed)

    def meets_thresholds(self, reached: np.ndarray, missed: np.ndarray) -> np.ndarray:
        """Whether the results of both are on the right side of every threshold, bool [C]."""
        level = self.levels[:, None]
        with np.errstate(invalid="ignore"):
            return np.asarray(~((reached < level) | (missed >= level)).any(0))


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


def blocks(channels: int) -> Iterator[slice]:
    """The channels, of so many at a time that their thresholds stay in the cache."""
    return (slice(at, at + _BLOCK) for at in range(0, channels, _BLOCK))
