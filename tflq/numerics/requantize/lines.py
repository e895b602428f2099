"""Lines of float32 numbers: which constants their roundings leave, exactly.

    gain * ((x - a) * m + r)        three products and sums in float32, each rounded on its own

reaches the level n where the sum reaches a float32 number S(n), the least one whose product by the gain rounds to n
or more: where (x - a) * m, rounded, and r add up to the middle between S(n) and the float32 number below it. So for
a gain, an m and an a each threshold bounds r: the least accumulator of a level from below, the greatest one before
it from above. Between the greatest of the lower bounds and the least of the upper ones r is free.

The hardest bounds are those of the thresholds that a line of real numbers passes most closely
(`HardestThresholds`). A few of them stand for all during the search.

A product and a sum that may be rounded once, too, bound r twice: by the product as it is, and rounded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tflq.numerics.float_basics import SumRounding, before
from tflq.numerics.requantize.climb import Steps, line_products

_TIGHT = 24  # of the thresholds of each side
_STEEPER = 2.0**-26
_COLUMNS = 1024  # lines whose thresholds stay in the cache


class HardestThresholds(NamedTuple):
    """Thresholds of C lines: accumulators float64 [2, K, S, C], and the index of their level among `levels`, int64.
    The first of the two must reach the level, the second must not. L and L + 1, which are the last of a line, stand for
    levels that all reach, and that none does."""

    x: np.ndarray
    n: np.ndarray
    levels: int

    @classmethod
    def of(cls, steps: Steps, slope: np.ndarray, *, odd: bool, most: int = _TIGHT) -> HardestThresholds:
        """The thresholds of each side, `most` at most, that leave a line of a slope the least room. They are taken for
        a line that climbs a little more: rounding half away may leave the slope itself none."""
        places: list[np.ndarray] = []
        accumulators: list[np.ndarray] = []
        sides = steps.split(*steps.room(slope * (1 + _STEEPER)), odd=odd)
        for x, place, room in zip((steps.reached, steps.missed), steps.places, (-sides[0], sides[1]), strict=True):
            x, place = (np.broadcast_to(v[:, None], room.shape) for v in (x, place))
            if room.shape[0] > most:
                n = np.argpartition(room, most, axis=0)[:most]
                x, place, room = (np.take_along_axis(v, n, 0) for v in (x, place, room))
            n = np.isinf(room).argsort(0, kind="stable")
            x, place, room = (np.take_along_axis(v, n, 0) for v in (x, place, room))
            free = np.isinf(room)
            accumulators.append(np.where(free, 0.0, x))
            places.append(np.where(free, steps.levels.size + len(places), place))
        return cls(np.stack(accumulators), np.stack(places), steps.levels.size)

    def columns(self, some: np.ndarray) -> HardestThresholds:
        """The thresholds of some lines, without those that are free in all of them."""
        x, n = self.x.take(some, -1), self.n.take(some, -1)
        bound = (n < self.levels).any((0, 2, 3))
        return HardestThresholds(x[:, bound], n[:, bound], self.levels)

    def lines(
        self,
        a: np.ndarray,
        m: np.ndarray,
        bounds: np.ndarray,
        gain: np.ndarray,
        *,
        rounding: SumRounding = "separate",
    ) -> Lines:
        """The widest of B lines of each channel: a float64 [B or 1, C], m float32 [B, C], and `level_bounds` with the
        index of each line's gain [B, C]."""
        count, levels = m.shape[0], bounds.shape[1]
        widths = (self.n < self.levels).sum(1).max((0, 1))
        order, parts = np.argsort(widths, kind="stable"), []
        for at in range(0, order.size, max(1, _COLUMNS // count)):
            some = order[at : at + max(1, _COLUMNS // count)]
            n, x = (v[:, : max(widths[some[-1]], 1), :, None, some] for v in (self.n, self.x))
            bound = bounds.ravel().take(n + gain[:, some] * levels if len(bounds) > 1 else n, mode="clip")
            rooms = [bound - products for products in line_products(x, a[:, some], m[:, some], rounding)]
            at_least = np.maximum.reduce([room[0].max(0) for room in rooms])
            below = np.minimum.reduce([room[1].min(0) for room in rooms])
            parts.append(Lines.widest(at_least, below, m[:, some].astype(np.float64)))
        back = np.argsort(order)
        return Lines(*(np.concatenate(v, -1)[back] for v in zip(*parts, strict=True)))


class Lines(NamedTuple):
    """The line of each channel that leaves most room: its index, int64 [C]; whether it leaves any; and what is added to
    its products, float32 [C]: c, and before it e for positive accumulators and -e for negative ones."""

    best: np.ndarray
    any: np.ndarray
    c: np.ndarray
    e: np.ndarray

    @classmethod
    def widest(cls, at_least: np.ndarray, below: np.ndarray, m: np.ndarray) -> Lines:
        """The widest of lines that leave the interval [at_least, below) for what is added, float64 [S, B, C]. An
        interval that lacks an end is as long as an accumulator; a side that lacks both is like the other."""
        if len(at_least) == 2:
            free = np.isinf(at_least) & np.isinf(below)
            at_least, below = (np.where(free, v[::-1], v) for v in (at_least, below))
        at_least, below = (
            np.where(np.isinf(v), other + way * m, v) for v, other, way in ((at_least, below, -1), (below, at_least, 1))
        )
        if len(at_least) == 2:
            c, e = _two_sided(at_least, below)
            sums = np.stack([e + c, c - e])
        else:
            c = inside(at_least[0], below[0])
            e, sums = np.zeros_like(c), c[None]
        fits = ((at_least <= sums) & (sums < below)).all(0)
        index = np.where(fits, (below - at_least).min(0), -np.inf).argmax(0)
        columns = np.arange(index.size)
        return cls(index, *(v[index, columns] for v in (fits, c, e)))


def inside(at_least: np.ndarray, below: np.ndarray) -> np.ndarray:
    """A float32 number in each interval, near its middle; next to it if it holds none."""
    c = ((at_least + below) / 2).astype(np.float32)
    c = np.where(c < at_least, np.nextafter(c, np.float32(np.inf)), c)
    return np.where(c >= below, before(c), c)


def _two_sided(at_least: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """c and e, float32, with c + e, rounded, in the first of two intervals and c - e in the second. Meaningless
    where there are no such numbers."""
    middle = ((at_least + below).sum(0) / 4).astype(np.float32)
    c, e, done = middle, np.zeros_like(middle), np.zeros(middle.shape, bool)
    for tried in (middle, before(middle), np.nextafter(middle, np.float32(np.inf))):
        least = np.maximum(at_least[0] - tried, tried - below[1])
        most = np.minimum(below[0] - tried, tried - at_least[1])
        half = np.maximum((least + most) / 2, 0).astype(np.float32)
        up, down = tried + half, tried - half
        fits = (at_least[0] <= up) & (up < below[0]) & (at_least[1] <= down) & (down < below[1])
        take = fits & ~done
        c, e, done = np.where(take, tried, c), np.where(take, half, e), done | fits
        if done.all():
            break
    return c, e
