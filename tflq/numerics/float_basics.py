"""Basics of the other `float_` files: exact sums in float32, x m + c as kernels round it, thresholds of QUANTIZE,
and the constants that roundings leave to a line.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from tflq.numerics.fixed_point import Rounding, round_float

if TYPE_CHECKING:
    import numpy.typing as npt


# Sums of products of integers are exact in any order while no partial sum reaches 2^24.
#
# A partial sum has some of the products and not the others. For inputs in [low, high] let the positive weights add up
# to p, and the negative ones to n. Then
#
#     min(low, 0) p + max(high, 0) n  <=  any partial sum  <=  max(high, 0) p + min(low, 0) n
#
# and a bias is in it or not. Inputs of one sign reach about half as far as their magnitudes suggest.


EXACT: Final = 1 << 24
"""Integers below it in magnitude are exact in float32."""

_MOST_RUNS: Final = 32


class ProductBounds(NamedTuple):
    """The least and the most that each input adds to partial sums of each output, float64 [O, I] each."""

    least: np.ndarray
    most: np.ndarray

    @classmethod
    def of(cls, positive: np.ndarray, negative: np.ndarray, low: int, high: int) -> ProductBounds:
        """From sums of weights by sign [O, I], or [1, I] for all outputs, and for inputs in [low, high]."""
        below, above = min(low, 0), max(high, 0)
        return cls(positive * below + negative * above, positive * above + negative * below)

    def runs(self, bias: np.ndarray | float = 0.0) -> list[slice] | None:
        """The fewest runs of inputs whose partial sums are all exact; the first run has the bias [O], too. None if
        there are too many."""
        ends = self.least.sum(1) + np.minimum(bias, 0), self.most.sum(1) + np.maximum(bias, 0)
        if self.least.shape[1] and max(-ends[0].min(initial=0), ends[1].max(initial=0)) < EXACT:
            return [slice(0, self.least.shape[1])]
        first, (outputs, inputs) = np.asarray(bias, np.float64), self.least.shape
        rows = np.zeros((max(outputs, first.size), 1))
        least, most = (np.concatenate([rows, np.cumsum(v, 1) + rows], 1) for v in self)
        for count in range(1, min(inputs, _MOST_RUNS) + 1):
            edges = [inputs * i // count for i in range(count + 1)]
            below, above = np.diff(least[:, edges], axis=1), np.diff(most[:, edges], axis=1)
            below[:, 0] += np.minimum(first, 0)
            above[:, 0] += np.maximum(first, 0)
            if max(-below.min(initial=0), above.max(initial=0)) < EXACT:
                return [slice(a, b) for a, b in itertools.pairwise(edges)]
        return None


# x m + c as kernels compute it: rounded after the product and after the sum, or once, as fused; or with the constant
# put before the product.
#
# Two kernels, MUL and ADD, round twice. A runtime that makes one kernel of them may round once instead (a fused
# multiply-add), and which of both it does is not said. Another one computes (x + c / m) m. So a number is proven for
# each of them (`SumRounding`), or no product by a constant meets a sum with one.


SumRounding: TypeAlias = Literal["separate", "either", "any"]
"""The roundings for which a formula is proven: MUL and ADD rounded one after the other; that as well as both rounded
once; or these, and the constant before the product."""


def multiply_add(x: np.ndarray, m: np.ndarray | np.floating, c: np.ndarray, *, fused: bool = False) -> np.ndarray:
    """x m + c of float32 numbers that broadcast: float32, rounded twice or, `fused`, once."""
    if not fused:
        total = x * m
        return np.asarray(total + c)
    product = x.astype(np.float64) * m  # exact
    return sum_once(product, c.astype(np.float64))


def in_any_order(x: np.ndarray, m: np.floating, c: np.floating) -> tuple[np.ndarray, ...]:
    """x m + c of float32 numbers in each way in which a runtime may compute it, m not 0."""
    constant = np.full(1, c)
    return multiply_add(x, m, constant), multiply_add(x, m, constant, fused=True), (x + c / m) * m


def sum_once(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b of float64 numbers, rounded once to float32.

    The float64 sum is rounded to odd: where it is not exact, of both float64 numbers beside the sum it is that with an
    odd significand. Rounding that to float32 is rounding the sum itself. Source: Boldo, Melquiond, Emulation of FMA and
    correctly rounded sums, 2008.
    """
    total = a + b
    back = total - a
    error = (a - (total - back)) + (b - back)  # what rounding took off, exactly
    wrong = (error != 0) & (total.view(np.int64) & 1 == 0)
    beside = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where(wrong, beside, total).astype(np.float32)


# Thresholds of QUANTIZE: T(n), the smallest x with round(float32(x / scale)) >= n.
#
# The kernel divides in float32 and rounds half away from zero (kernels/internal/reference/quantize.h); other roundings
# have thresholds, too. The result climbs with x, so it is n exactly when T(n) <= x < T(n + 1): comparisons replace the
# division that TOSA lacks. T(n) is found by bisection on the order of float32 numbers, from some steps around
# (n - 1/2) scale.


_STEPS = 8
_INFINITY = 0x7F800000


def float_steps(x: npt.ArrayLike) -> np.ndarray:
    """The place of float32 numbers in their order, int64: 0 for both zeros, one more for the next number."""
    bits = np.asarray(x, np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def from_steps(steps: npt.ArrayLike) -> np.ndarray:
    """The float32 numbers at places in their order."""
    s = np.asarray(steps, np.int64)
    return np.where(s < 0, -s | 0x80000000, s).astype(np.uint32).view(np.float32)


def quantize_thresholds(scales: npt.ArrayLike, levels: npt.ArrayLike, rounding: Rounding = "half_away") -> np.ndarray:
    """T(n) for float32 scales and whole levels n that broadcast to each other; infinite where no finite x reaches n.
    Divided by an infinite scale, all floats are 0."""
    s, n = np.broadcast_arrays(np.asarray(scales, np.float32), np.asarray(levels, np.float64))
    if (endless := np.isinf(s)).any():
        ends = np.where(n <= 0, -np.inf, np.inf).astype(np.float32)
        return np.where(endless, ends, quantize_thresholds(np.where(endless, np.float32(1), s), n, rounding))

    def reached(x: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", under="ignore"):
            return round_float((x / s).astype(np.float64), rounding) >= n

    edge = n - (n <= 0) if rounding == "toward_zero" else n - 0.5
    with np.errstate(over="ignore", under="ignore"):
        near = float_steps((edge * s.astype(np.float64)).astype(np.float32))
    low, high = np.maximum(near - _STEPS, -_INFINITY - 1), np.minimum(near + _STEPS, _INFINITY)
    below = low >= -_INFINITY
    if (reached(from_steps(np.maximum(low, -_INFINITY))) & below).any() or not reached(from_steps(high)).all():
        raise AssertionError("the search for a threshold begins beside it")
    while (high - low > 1).any():
        middle = (low + high) >> 1
        up = reached(from_steps(middle))
        low, high = np.where(up, low, middle), np.where(up, middle, high)
    return from_steps(high)


# Lines of float32 numbers: which constants their roundings leave, exactly.
#
#     gain * ((x - a) * m + r)        three products and sums in float32, each rounded on its own
#
# reaches the level n where the sum reaches a float32 number S(n), the least one whose product by the gain rounds to n
# or more: where (x - a) * m, rounded, and r add up to the middle between S(n) and the float32 number below it. So for
# a gain, an m and an a each threshold bounds r: the least accumulator of a level from below, the greatest one before
# it from above. Between the greatest of the lower bounds and the least of the upper ones r is free.
#
# The hardest bounds are those of the thresholds that a line of real numbers passes most closely
# (`HardestThresholds`). A few of them stand for all during the search.
#
# A product and a sum that may be rounded once, too, bound r twice: by the product as it is, and rounded.


_TIGHT = 24  # of the thresholds of each side
_STEEPER = 2.0**-26
_LITTLE = 2.0**-47  # less than any difference of sums and bounds
_COLUMNS = 1024  # lines whose thresholds stay in the cache
_BLOCK = 128  # channels whose thresholds stay in the cache


@dataclass(frozen=True, slots=True)
class Steps:
    """Requirements on f: at least `level` ([L, 1]) from `reached` on and less at `missed`, float64 [L, C]. NaN
    where the range has no such accumulator."""

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

    def left(self, a: np.ndarray, m: np.ndarray, *, fused: bool) -> tuple[np.ndarray, np.ndarray]:
        """The interval that all thresholds leave to c of (x - a) m + c, of a gain of 1: at least the first and less
        than the second, float64 [C]. `fused`: of the product before it is rounded."""
        bounds = level_bounds(self.level[:, 0], np.ones(1, np.float32))[0, :-2, None]
        sides = []
        for x, free in ((self.reached, -np.inf), (self.missed, np.inf)):
            room = bounds - _products(x, a, m, fused=fused)
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
            return np.asarray(~((reached < self.level) | (missed >= self.level)).any(0))


class HardestThresholds(NamedTuple):
    """Thresholds of C lines: accumulators float64 [2, K, S, C], and the index of their level, int64. The first of
    the two must reach the level, the second must not. L and L + 1 stand for levels that all reach, and that none
    does."""

    x: np.ndarray
    n: np.ndarray

    @classmethod
    def of(cls, steps: Steps, slope: np.ndarray, *, odd: bool, most: int = _TIGHT) -> HardestThresholds:
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

    def columns(self, some: np.ndarray) -> HardestThresholds:
        return HardestThresholds(self.x.take(some, -1), self.n.take(some, -1))

    @property
    def width(self) -> int:
        """The number of thresholds of each side."""
        return self.x.shape[1]

    @classmethod
    def joined(cls, parts: list[HardestThresholds]) -> HardestThresholds:
        return cls(*(np.concatenate(v, -1) for v in zip(*parts, strict=True)))

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
        parts = []
        for at in range(0, m.shape[1], max(1, _COLUMNS // count)):
            some = slice(at, at + max(1, _COLUMNS // count))
            x = self.x[..., None, some]
            bound = bounds.ravel().take(self.n[..., None, some] + gain[:, some] * levels, mode="clip")
            room = bound - _products(x, a[:, some], m[:, some], fused=False)
            at_least, below = room[0].max(0), room[1].min(0)
            if rounding == "either":
                room = bound - _products(x, a[:, some], m[:, some], fused=True)
                at_least, below = np.maximum(at_least, room[0].max(0)), np.minimum(below, room[1].min(0))
            parts.append(Lines.widest(at_least, below, m[:, some].astype(np.float64)))
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
    return np.where(c >= below, _before(c), c)


def _two_sided(at_least: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """c and e, float32, with c + e, rounded, in the first of two intervals and c - e in the second. Meaningless
    where there are no such numbers."""
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


def _products(x: np.ndarray, a: np.ndarray, m: np.ndarray, *, fused: bool) -> np.ndarray:
    """(x - a) m, rounded to float32 or, `fused`, as it is."""
    less = (x - a).astype(np.float32)
    return less.astype(np.float64) * m if fused else less * m


def _before(x: np.ndarray) -> np.ndarray:
    return np.nextafter(x.astype(np.float32), np.float32(-np.inf))


# Some channels at a time.


def blocks(channels: int) -> Iterator[np.ndarray]:
    """The indices of channels, of so many at a time that their thresholds stay in the cache."""
    return (np.arange(at, min(at + _BLOCK, channels)) for at in range(0, channels, _BLOCK))


def exact_part(
    thresholds: np.ndarray, low: np.ndarray, high: np.ndarray, least: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """low [C], but `least` in channels whose accumulators below that are on the first level, however they are
    rounded. Second, whether thresholds int64 [L, C] are between that and high, bool [C]."""
    low = np.where(thresholds[0] > least, np.maximum(low, least), low)
    return low, live_channels(thresholds, low, high)


def live_channels(thresholds: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Whether the level of a channel depends on its accumulator, bool [C]."""
    return np.asarray(((thresholds > low) & (thresholds <= high)).any(0))


def proven(task: Any, fit: Any) -> np.ndarray:
    """Whether a formula with the constants `fit` does what a task asks, bool [C]; `of` gives channels of both."""
    result = np.zeros(task.slope.size, bool)
    for channels in blocks(result.size):
        some = task.of(channels)
        result[channels] = some.proves(fit.of(channels), some.steps)
    return result
