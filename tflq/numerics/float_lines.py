"""Lines of float32 numbers: which constants their roundings leave, exactly; and two uses of it.

    gain * ((x - a) * m + r)        three products and sums in float32, each rounded on its own

reaches the level n where the sum reaches a float32 number S(n), the least one whose product by the gain rounds to n or
more: where (x - a) * m, rounded, and r add up to the middle between S(n) and the float32 number below it. So for a
gain, an m and an a each threshold bounds r: the least accumulator of a level from below, the greatest one before it
from above. Between the greatest of the lower bounds and the least of the upper ones r is free.

The hardest bounds are those of the thresholds that a line of real numbers passes most closely (`Tight`). A few of them
stand for all during the search.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tflq.light import dataclass
from tflq.numerics.exact_sums import EXACT
from tflq.numerics.float_thresholds import float_steps, from_steps

_TIGHT = 24  # of the thresholds of each side
_STEEPER = 2.0**-26
_LITTLE = 2.0**-47  # less than any difference of sums and bounds
_COLUMNS = 1024  # lines whose thresholds stay in the cache


@dataclass(frozen=True, slots=True)
class Steps:
    """What f must meet: at least `level` ([L, 1]) from `reached` on and less at `missed`, float64 [L, C]; NaN where the
    range has no such accumulator."""

    level: np.ndarray
    reached: np.ndarray
    missed: np.ndarray

    @classmethod
    def of(
        cls, thresholds: np.ndarray, below: np.ndarray | None, low: np.ndarray, high: np.ndarray, bottom: int
    ) -> Steps:
        """T(1) ... T(L) int64 [L, C] on [low, high] int64 [C], for levels from `bottom` + 1 on. `below`: the greatest
        accumulators below each threshold, if they are not one less."""
        level = np.arange(bottom + 1.0, bottom + 1.0 + thresholds.shape[0])[:, None]
        if (thresholds[0] > low).all() and (thresholds[-1] <= high).all():
            reached = thresholds.astype(np.float64)
            return cls(level, reached, reached - 1 if below is None else below.astype(np.float64))
        beneath = thresholds - 1 if below is None else below
        reached = np.where(thresholds <= high, np.maximum(thresholds, low), np.nan)
        return cls(level, reached, np.where(thresholds > low, np.minimum(beneath, high), np.nan))

    def of_channels(self, some: np.ndarray) -> Steps:
        return Steps(self.level, self.reached.take(some, 1), self.missed.take(some, 1))

    def room(self, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bounds that each threshold sets to the offset of a line, in levels, [L, C] each: at least the first, and
        less than the second; infinite where there is no bound."""
        sides = []
        for x, end, free in ((self.reached, -1, -np.inf), (self.missed, 0, np.inf)):
            offset = x * -slope
            offset += self.level
            if np.isnan(x[end]).any():
                offset[np.isnan(offset)] = free
            sides.append(offset)
        return sides[0], sides[1]

    def split(self, at_least: np.ndarray, below: np.ndarray, *, odd: bool) -> tuple[np.ndarray, np.ndarray]:
        """The same for each sign of accumulators, [L, S, C]; S is 1 for lines that are not odd."""
        if not odd:
            return at_least[:, None], below[:, None]
        sides: list[np.ndarray] = []
        for x, values, free in ((self.reached, at_least, -np.inf), (self.missed, below, np.inf)):
            sides.append(np.stack([np.where(x > 0, values, free), np.where(x < 0, values, free)], 1))
        return sides[0], sides[1]

    def met(self, reached: np.ndarray, missed: np.ndarray) -> np.ndarray:
        """Whether the results of both are on the right side of every threshold, bool [C]."""
        with np.errstate(invalid="ignore"):
            return np.asarray(~((reached < self.level) | (missed >= self.level)).any(0))


class Tight(NamedTuple):
    """Thresholds of C lines: accumulators float64 [2, K, S, C], and the index of their level, int64. The first of the
    two must reach it, the second must not; L and L + 1 stand for levels that all reach, and that none does."""

    x: np.ndarray
    n: np.ndarray

    @classmethod
    def of(cls, steps: Steps, slope: np.ndarray, *, odd: bool, most: int = _TIGHT) -> Tight:
        """The thresholds of each side, `most` at most, that leave a line of a slope the least room. They are taken for
        a line that climbs a little more: rounding half away may leave the slope itself none."""
        places: list[np.ndarray] = []
        accumulators: list[np.ndarray] = []
        sides = steps.split(*steps.room(slope * (1 + _STEEPER)), odd=odd)
        for x, room in zip((steps.reached, steps.missed), (-sides[0], sides[1]), strict=True):
            n = np.broadcast_to(np.arange(room.shape[0])[:, None, None], room.shape)
            if room.shape[0] > most:
                n = np.argpartition(room, most, axis=0)[:most]
            free = np.isinf(np.take_along_axis(room, n, 0))
            accumulators.append(np.where(free, 0.0, np.take_along_axis(x[:, None], n, 0)))
            places.append(np.where(free, room.shape[0] + len(places), n))
        return cls(np.stack(accumulators), np.stack(places))

    def columns(self, some: np.ndarray) -> Tight:
        return Tight(self.x.take(some, -1), self.n.take(some, -1))

    @property
    def width(self) -> int:
        """How many thresholds each side has."""
        return self.x.shape[1]

    @classmethod
    def joined(cls, parts: list[Tight]) -> Tight:
        return cls(*(np.concatenate(v, -1) for v in zip(*parts, strict=True)))

    def lines(self, a: np.ndarray, m: np.ndarray, bounds: np.ndarray, gain: np.ndarray) -> Lines:
        """The widest of B lines of each channel: a float64 [B or 1, C], m float32 [B, C], and `level_bounds` with the
        index of each line's gain [B, C]."""
        count, levels = m.shape[0], bounds.shape[1]
        parts = []
        for at in range(0, m.shape[1], max(1, _COLUMNS // count)):
            some = slice(at, at + max(1, _COLUMNS // count))
            product = (self.x[..., None, some] - a[:, some]).astype(np.float32)
            product = product * m[:, some]
            room = bounds.ravel().take(self.n[..., None, some] + gain[:, some] * levels, mode="clip")
            room -= product
            parts.append(Lines.widest(room[0].max(0), room[1].min(0), m[:, some].astype(np.float64)))
        return Lines(*(np.concatenate(v, -1) for v in zip(*parts, strict=True)))


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
            c = _inside(at_least[0], below[0])
            e, sums = np.zeros_like(c), c[None]
        fits = ((at_least <= sums) & (sums < below)).all(0)
        index = np.where(fits, (below - at_least).min(0), -np.inf).argmax(0)
        columns = np.arange(index.size)
        return cls(index, *(v[index, columns] for v in (fits, c, e)))


def _inside(at_least: np.ndarray, below: np.ndarray) -> np.ndarray:
    """A float32 number in each interval, near its middle; next to it if it holds none."""
    c = ((at_least + below) / 2).astype(np.float32)
    c = np.where(c < at_least, np.nextafter(c, np.float32(np.inf)), c)
    return np.where(c >= below, _before(c), c)


def _two_sided(at_least: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """c and e, float32, with c + e, rounded, in the first of two intervals and c - e in the second, if such numbers are
    found."""
    middle = ((at_least + below).sum(0) / 4).astype(np.float32)
    c, e, done = middle, np.zeros_like(middle), np.zeros(middle.shape, bool)
    for tried in (middle, _before(middle), np.nextafter(middle, np.float32(np.inf))):
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


def level_bounds(levels: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """The least real sum whose product by a gain reaches a level: float64 [G, L + 2] for whole numbers [L] and float32
    gains [G], then a bound that all meet, and one that none meets. Ties of rounding go to the even number: S itself, or
    the number below it, and then the bound is a little above the tie."""
    edge = np.where(levels == 0, 0.0, (levels + _before(levels).astype(np.float64)) / 2)
    factor = gains.astype(np.float64)[:, None]
    least = (edge / factor).astype(np.float32)
    least = np.where(least * factor < edge, np.nextafter(least, np.float32(np.inf)), least)
    bound = (least.astype(np.float64) + _before(least)) / 2
    bound += (least.view(np.int32) & 1) * (np.abs(bound).max() * _LITTLE)
    return np.concatenate([bound, np.broadcast_to([-np.inf, np.inf], (gains.size, 2))], 1)


def _before(x: np.ndarray) -> np.ndarray:
    return np.nextafter(x.astype(np.float32), np.float32(-np.inf))


# Requantization in float32 of sums that fall, with three kernels after the convolution.
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
# with c in the middle of what they leave (-u m is (x - h) m). Where thousands of accumulators share a level that is not
# enough.

_TRIED: Final = (4, 12, *[32] * 6)  # h of each wave
_STEPS: Final = np.asarray([0, 1, -1])[:, None]  # of m away from the real slope
_FURTHER: Final = 7  # how far h is from the one before
_LEFT: Final = (0.8, 0.25)  # the share of channels that is too many after the first waves, if more than a few
_FEW: Final = 12
_ROOM: Final = 0.9  # how much of a level h may use up
_BLOCK: Final = 128  # channels whose thresholds stay in the cache


class FallingRequantization(NamedTuple):
    """f(x) = floor(relu(c - relu(h - x) * m)): float32 [C] each; results are levels from 0 on."""

    h: np.ndarray
    m: np.ndarray
    c: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """f of integers [..., C], operation by operation in float32."""
        u = np.maximum(self.h.astype(np.float64) - x, 0).astype(np.float32)
        total = u * -self.m
        total += self.c
        np.maximum(total, np.float32(0), out=total)
        return np.floor(total, out=total)

    def of(self, channels: np.ndarray) -> FallingRequantization:
        """The requantization of some channels."""
        return FallingRequantization(*(v[channels] for v in self))


def falling_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, ...]:
    """`fit_falling` as arrays; empty without a proof."""
    return tuple(fit_falling(thresholds, slope, low, high) or ())


class _Task(NamedTuple):
    """Thresholds T(1) ... T(L) int64 [L, C] on [low, high], int64 [C], of lines that gain about `slope` float64 [C]
    levels per unit; where the last level is reached, and how many accumulators further h may be, int64 [C]."""

    thresholds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    slope: np.ndarray
    top: np.ndarray
    span: np.ndarray

    def of(self, channels: np.ndarray) -> _Task:
        return _Task(self.thresholds.take(channels, 1), *(v[channels] for v in self[1:]))

    @property
    def steps(self) -> Steps:
        return Steps.of(self.thresholds, None, self.low, self.high, 0)


def fit_falling(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray
) -> FallingRequantization | None:
    """The requantization with thresholds T(1) ... T(L) int64 [L, C] on accumulators in [low, high] int64 [C], with
    about `slope` float64 [C] levels per unit. None without a proof."""
    top = np.clip(thresholds[-1], low, high)
    span = np.clip(_ROOM / np.maximum(slope, 1 / EXACT), 1, sum(_TRIED) * _FURTHER).astype(np.int64)
    least = top + span - EXACT  # below it x is rounded, but on the first level anyway
    low = np.where(thresholds[0] > least, np.maximum(low, least), low)
    live = ((thresholds > low) & (thresholds <= high)).any(0)
    if (low < least)[live].any() or (np.abs(top) + span >= EXACT)[live].any():
        return None
    h, m = np.zeros(low.shape, np.float32), np.zeros(low.shape, np.float32)
    c = ((thresholds <= low).sum(0) + 0.5).astype(np.float32)
    fit, left = FallingRequantization(h, m, c), np.nonzero(live)[0]
    return fit if _search(_Task(thresholds, low, high, slope, top, span), fit, left) else None


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
        hits = hits[_proven(task.of(left[hits]), fit.of(hits))]
        _keep(result, left[hits], fit.of(hits))
        rest = np.delete(np.arange(left.size), hits)
        left, tight, order = left[rest], tight.columns(rest), order + tried
        if left.size > max(_LEFT[min(wave, 1)] * channels.size, _FEW):
            return False
    return not left.size


def _first(task: _Task, result: FallingRequantization, channels: np.ndarray) -> tuple[np.ndarray, Tight | None] | None:
    """Fills `result` where the line of the nearest m through the middle of all thresholds is proven. Answers the other
    channels and their tightest thresholds; None if a channel has no line, as where thresholds jump at zero."""
    lost, tight = [np.zeros(0, np.int64)], []
    for at in range(0, channels.size, _BLOCK):
        some = task.of(channels[at : at + _BLOCK])
        steps, m = some.steps, some.slope.astype(np.float32)
        slope = m.astype(np.float64)
        least, most = (reduce(v, 0) for reduce, v in zip((np.max, np.min), steps.room(slope), strict=True))
        if (least > most + len(steps.level) * 2.0**-22).any():
            return None
        most = np.minimum(most, steps.level[-1] + 1 - some.top * slope)
        c = ((least + most) / 2 + some.top * slope).astype(np.float32)
        fit = FallingRequantization(some.top.astype(np.float32), m, c)
        proven = _meets(fit, steps)
        _keep(result, channels[at : at + _BLOCK][proven], fit.of(proven))
        rest = np.nonzero(~proven)[0]
        if rest.size:
            lost.append(channels[at : at + _BLOCK][rest])
            tight.append(Tight.of(steps.of_channels(rest), some.slope[rest], odd=False))
    return np.concatenate(lost), Tight.joined(tight) if tight else None


def _keep(result: FallingRequantization, channels: np.ndarray, fit: FallingRequantization) -> None:
    for kept, new in zip(result, fit, strict=True):
        kept[channels] = new


def _tried(task: _Task, tight: Tight, order: np.ndarray) -> tuple[FallingRequantization, np.ndarray]:
    """The line of each channel that leaves most room on its tightest thresholds, among some h by their order [H, 1],
    and whether it leaves any."""
    h = task.top + order * _FURTHER % task.span
    near = from_steps(np.maximum(float_steps(task.slope.astype(np.float32)) + _STEPS, 0))
    h, m = np.tile(h, (len(near), 1)), np.repeat(near, len(order), 0)
    levels = task.thresholds.shape[0]
    bounds = level_bounds(np.arange(1, levels + 1), np.ones(1, np.float32))
    lines = tight.lines(h.astype(np.float64), m, bounds, np.zeros(m.shape, np.int64))
    columns = np.arange(task.slope.size)
    fit = FallingRequantization(h[lines.best, columns].astype(np.float32), m[lines.best, columns], lines.c)
    return fit, lines.any


def _proven(task: _Task, fit: FallingRequantization) -> np.ndarray:
    """Whether f meets every threshold and ends at the last level, bool [C]."""
    proven = np.zeros(task.slope.size, bool)
    for at in range(0, proven.size, _BLOCK):
        channels = np.arange(at, min(at + _BLOCK, proven.size))
        proven[channels] = _meets(fit.of(channels), task.of(channels).steps)
    return proven


def _meets(fit: FallingRequantization, steps: Steps) -> np.ndarray:
    return steps.met(fit(steps.reached), fit(steps.missed)) & (np.floor(fit.c) <= steps.level[-1, 0])
