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

from typing import Final, NamedTuple

import numpy as np

from tflq.numerics.float_basics import SumRounding, before
from tflq.numerics.requantize.gaps import Nearest

_TIGHT: Final = 24  # of the thresholds of each side
_FIRST: Final = 4  # of these, which tell lines that cannot be the widest
_MANY: Final = 1 << 14  # thresholds of all lines
_STEEPER: Final = 2.0**-26


class Lines(NamedTuple):
    """A line for each channel that leaves most room: its index, int64 [C]; whether it leaves any; and what is added to
    its products, float32 [C]: c, and before it e for positive accumulators and -e for negative ones."""

    best: np.ndarray
    any: np.ndarray
    c: np.ndarray
    e: np.ndarray


class HardestThresholds(NamedTuple):
    """Thresholds of C lines, the hardest ones first: accumulators float64 [2, S, K, C], and the place of their level,
    int64. The first of the two must reach the level, the second must not. L and L + 1, which are the last of a line,
    stand for levels that all reach, and that none does. S: for both signs of accumulators, or all of them."""

    x: np.ndarray
    n: np.ndarray
    levels: int

    @classmethod
    def of(cls, steps: Nearest, slope: np.ndarray, *, odd: bool, most: int = _TIGHT) -> HardestThresholds:
        """The thresholds of each side, `most` at most, that leave a line of a slope the least room. They are taken for
        a line that climbs a little more: rounding half away may leave the slope itself none."""
        signs, levels, channels = 1 + odd, steps.levels.size, steps.channels
        room = steps.offsets(slope * (1 + _STEEPER))
        room[: steps.reached] *= -1
        line = steps.channel + ((steps.x < 0) * odd + steps.missed * signs) * channels
        order = np.argsort(room, kind="stable")
        order = order[np.argsort(line[order].astype(np.min_scalar_type(4 * channels)), kind="stable")]
        if odd:
            order = order[steps.x[order] != 0]
        counts = np.bincount(line[order], minlength=2 * signs * channels)
        rank = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
        order, rank = order[rank < most], rank[rank < most]
        side, channel = np.divmod(line[order], channels)
        x = np.zeros((2 * signs, max(min(int(counts.max()), most), 1), channels))
        n = np.repeat([levels, levels + 1], x.size // 2).reshape(x.shape)
        x[side, rank, channel], n[side, rank, channel] = steps.x[order], steps.place[order]
        shape = (2, signs, *x.shape[1:])
        return cls(x.reshape(shape), n.reshape(shape), levels)

    def columns(self, some: np.ndarray) -> HardestThresholds:
        """The thresholds of some lines, without those that are free in all of them."""
        x, n = self.x[..., some], self.n[..., some]
        count = max(int((n < self.levels).sum(-2).max()), 1)
        return HardestThresholds(x[:, :, :count], n[:, :, :count], self.levels)

    def lines(
        self,
        a: np.ndarray,
        m: np.ndarray,
        bounds: np.ndarray,
        gain: np.ndarray | None = None,
        *,
        rounding: SumRounding = "separate",
    ) -> Lines:
        """The widest of B lines of each channel: a float64 and m float32 [B, C], and `level_bounds` with the index of
        each line's gain [B, C], if there are several.

        The first thresholds say how wide a line can be. Where lines are many, all thresholds are looked at for the line
        that may be the widest one of its channel, and then for those that may be wider.
        """
        first = (0 if gain is None else gain) * bounds.shape[-1]
        a, first = (np.broadcast_to(v, m.shape).ravel() for v in (a, first))
        columns, line = np.arange(m.shape[1]), np.arange(m.size)

        def intervals(some: np.ndarray, thresholds: HardestThresholds) -> tuple[np.ndarray, np.ndarray]:
            x, n = (v[..., some % columns.size] for v in thresholds[:2])
            return HardestThresholds(x, n, self.levels).intervals(
                a[some], m.ravel()[some], bounds, first[some], rounding
            )

        width, c, e = np.full(m.size, -np.inf), *np.zeros((2, m.size), np.float32)
        if m.size * self.x.shape[2] > _MANY:
            few = HardestThresholds(self.x[:, :, :_FIRST], self.n[:, :, :_FIRST], self.levels)
            at_least, below = intervals(line, few)
            most = (below - at_least).min(0)
            best = most.reshape(m.shape).argmax(0) * columns.size + columns
            width[best], c[best], e[best] = added(*intervals(best, self))
            most[best] = -np.inf
            line = np.flatnonzero((most > 0) & (most >= np.tile(width[best], len(m))))
        if line.size:
            width[line], c[line], e[line] = added(*intervals(line, self))
        best = width.reshape(m.shape).argmax(0)
        at = best * columns.size + columns
        return Lines(best, width[at] > -np.inf, c[at], e[at])

    def intervals(
        self, a: np.ndarray, m: np.ndarray, bounds: np.ndarray, first: np.ndarray, rounding: SumRounding
    ) -> tuple[np.ndarray, np.ndarray]:
        """The interval that thresholds leave to what is added to (x - a) m, of lines [C] whose bounds begin at the
        `first`: at least the first and less than the second, float64 [S, C]."""
        less = (self.x - a).astype(np.float32)
        bound = bounds.take(self.n + first, mode="clip")
        room = bound - less * m
        at_least, below = room[0].max(1), room[1].min(1)
        if rounding == "either":
            room = bound - less.astype(np.float64) * m
            at_least, below = np.maximum(at_least, room[0].max(1)), np.minimum(below, room[1].min(1))
        return closed(at_least, below, m)


def closed(at_least: np.ndarray, below: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intervals [S, ...] for what is added: one that lacks an end is as long as an accumulator; a side that lacks both
    is like the other."""
    none = np.isinf(at_least), np.isinf(below)
    if len(at_least) == 2:
        free = none[0] & none[1]
        at_least, below = (np.where(free, v[::-1], v) for v in (at_least, below))
        none = np.isinf(at_least), np.isinf(below)
    return np.where(none[0], below - m, at_least), np.where(none[1], at_least + m, below)


def added(at_least: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers in the intervals [S, P]: how wide these are, -inf where there is no such number; c and e."""
    if len(at_least) == 2:
        c, e = _two_sided(at_least, below)
        sums = np.stack([e + c, c - e])
    else:
        c = inside(at_least[0], below[0])
        e, sums = np.zeros_like(c), c[None]
    fits = ((at_least <= sums) & (sums < below)).all(0)
    return np.where(fits, (below - at_least).min(0), -np.inf), c, e


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
