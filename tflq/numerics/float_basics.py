"""Float32 arithmetic: exact sums, x m + c as kernels round it, and thresholds of QUANTIZE."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

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
FARTHEST: Final = EXACT << 4
"""Sums below it in magnitude may not be exact, but their distances from a threshold are."""

_MOST_RUNS: Final = 32


def signed_sums(filters: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the positive and of the negative weights, whole numbers in float32, over axes: float64. Those of one
    number are that, in float32."""
    parts = np.maximum(filters, 0), np.minimum(filters, 0)
    if all(filters.shape[axis] == 1 for axis in axes):
        return parts[0].squeeze(axes), parts[1].squeeze(axes)
    return parts[0].sum(axes, dtype=np.float64), parts[1].sum(axes, dtype=np.float64)


class ProductBounds:
    """The least and the most that inputs add to partial sums of outputs: weights by sign, whole numbers [O, I] or
    [1, I] (`signed_sums`), times the ends of the inputs below and above 0."""

    __slots__ = ("above", "below", "negative", "positive", "sums")

    def __init__(
        self,
        positive: np.ndarray,
        negative: np.ndarray,
        low: int,
        high: int,
        sums: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """For inputs in [low, high]. `sums`: those of all weights of an output by sign, if they are known."""
        self.positive: Final = positive
        self.negative: Final = negative
        self.below: Final = min(low, 0)
        self.above: Final = max(high, 0)
        self.sums: Final = sums or (positive.sum(1, dtype=np.float64), negative.sum(1, dtype=np.float64))

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest partial sum of all inputs, float64 [O]."""
        return self._of(*self.sums)

    def _of(self, positive: np.ndarray, negative: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        below, above = self.below, self.above
        return positive * below + negative * above, positive * above + negative * below

    def runs(self, bias: np.ndarray | float = 0.0) -> list[slice] | None:
        """The fewest runs of inputs whose partial sums are all exact; the first run has the bias [O], too. None if
        there are too many."""
        least, most = self.ends
        outputs, inputs = self.positive.shape
        least, most = least + np.minimum(bias, 0), most + np.maximum(bias, 0)
        if inputs and max(-least.min(initial=0), most.max(initial=0)) < EXACT:
            return [slice(0, inputs)]
        first = np.asarray(bias, np.float64)
        rows = np.zeros((max(outputs, first.size), 1))
        least, most = (
            np.concatenate([rows, np.cumsum(v, 1) + rows], 1)
            for v in self._of(*(v.astype(np.float64) for v in (self.positive, self.negative)))
        )
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


_NEAR: Final = 4
"""Steps of float32 from an estimate of a scale to the scale itself, at most."""


def scale_of_thresholds(array: np.ndarray) -> tuple[float, int] | None:
    """Scale and first level of float32 numbers, if they are the `quantize_thresholds` of a level and those behind it;
    else None."""
    if array.size < 2 or not np.isfinite(array).all():
        return None
    wide = array.astype(np.float64)
    step = (wide[-1] - wide[0]) / (array.size - 1)
    if step <= 0 or abs(wide[0] / step) >= 1 << 22:
        return None
    first = round(wide[0] / step + 0.5)
    levels = first + np.arange(array.size)
    end = -1 if abs(levels[-1]) > abs(first) else 0
    near = float_steps(np.float32(wide[end] / (levels[end] - 0.5)).reshape(1))
    for scale in from_steps(near + np.arange(-_NEAR, _NEAR + 1)):
        if scale > 0 and np.array_equal(quantize_thresholds(scale, levels), array):
            return float(scale), first
    return None


# Where a sum of float32 numbers, rounded, reaches a level.


_LITTLE: Final = 2.0**-47  # less than any difference of sums and bounds


def level_bounds(levels: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """The least real sum whose product by a gain reaches a level: float64 [G, L + 2] for whole numbers [L] and float32
    gains [G], then a bound that all meet, and one that none meets. Ties of rounding go to the even number: S itself, or
    the number below it, and then the bound is a little above the tie."""
    edge = np.where(levels == 0, 0.0, (levels + before(levels).astype(np.float64)) / 2)
    factor = gains.astype(np.float64)[:, None]
    least = (edge / factor).astype(np.float32)
    least = np.where(least * factor < edge, np.nextafter(least, np.float32(np.inf)), least)
    bound = (least.astype(np.float64) + before(least)) / 2
    bound += (least.view(np.int32) & 1) * (np.abs(bound).max() * _LITTLE)
    return np.concatenate([bound, np.broadcast_to([-np.inf, np.inf], (gains.size, 2))], 1)


@lru_cache(maxsize=64)
def whole_bounds(first: int, count: int) -> np.ndarray:
    """`level_bounds` of so many levels from the first one on, with a gain of 1: float64 [L + 2]."""
    bounds = level_bounds(np.arange(first, first + count), np.ones(1, np.float32))[0]
    bounds.flags.writeable = False
    return bounds


def before(x: np.ndarray) -> np.ndarray:
    """The next smaller float32 numbers."""
    return np.nextafter(x.astype(np.float32), np.float32(-np.inf))
