"""A double's product with an integer, rounded half away from zero, in 64-bit integers: two forms.

The wide one takes integers of more than 31 bits: round_half_away(double(x) * d) with a double d = M / 2^F, M of 53
bits. |x| is shifted left by as many bits as make F the same for all channels, and both are split into limbs of 29
bits, |x| 2^j = x1 2^29 + x0, M = m1 2^29 + m0:

    |x| M 2^j = x1 m1 2^58 + (x1 m0 + x0 m1) 2^29 + x0 m0
    |y| = floor((|x| M 2^j + h + 2^(F-1)) / 2^F)

The exact product is rounded by float64: less than half a last place below a tie n - 1/2 it becomes that tie. h is
that half, 2^(F + e - 53) where 2^e is the greatest power of two below the tie, e = -2 for the first; n - 1 is the
product's integer part (a product further from a tie has the same result with any such h).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tflq.numerics.requantize.forms import Form, Ops, X
from tflq.numerics.requantize.numpy_ops import NUMPY
from tflq.numerics.requantize.staircase import float_thresholds

_I31 = (1 << 31) - 1
LIMB = 29
"""Bits of a limb."""
PART = 9
"""Bits of the integer part that index a table of `WideProduct`."""
_MASK = (1 << LIMB) - 1
_MANTISSA = 53
_SHIFTED = 1 << 58  # of |x| shifted to the left
_LEAST_SHIFT = 8


class WideProduct(NamedTuple):
    """The bits to shift |x| by, the limbs of M, the range that x is clamped to first, int64 [C] each; F - 58."""

    left: np.ndarray
    high: np.ndarray
    low: np.ndarray
    first: np.ndarray
    last: np.ndarray
    shift: int

    @classmethod
    def fit(cls, scale: np.ndarray, lows: int, highs: int, least: int, most: int) -> WideProduct | None:
        """The product by positive scales float64[C] for x in [least, most], saturated to [lows, highs].

        [lows, highs] is of 16 bits at most. None if 64 bits do not hold the product.
        """
        enough = np.ceil((max(-lows, highs) + 1) / scale)
        first, last = (np.clip(end, -enough, enough).astype(np.int64) for end in (float(least), float(most)))
        reach = np.maximum(np.abs(first), np.abs(last)).astype(np.float64)
        fraction, exponent = np.frexp(scale)
        still = reach * scale < 0.25  # nothing but 0
        places = np.where(still, 0, _MANTISSA - exponent)
        top = max(int(places.max()), 2 * LIMB + _LEAST_SHIFT)
        left = np.where(still, 0, top - places)
        if (np.where(still, 0, reach) * 2.0**left >= _SHIFTED).any() or (reach >= 2.0**_MANTISSA).any():
            return None
        mantissa = np.where(still, 0, fraction * 2.0**_MANTISSA).astype(np.int64)
        return cls(left, mantissa >> LIMB, mantissa & _MASK, first, last, top - 2 * LIMB)

    @property
    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """h of integer parts below 2^PART, and what the bits above add to the last of these: int64 [2^PART] each."""
        part = np.arange(1 << PART)
        exponent = np.frexp(part)[1].astype(np.int64) - 1
        unit = self.shift + 2 * LIMB - _MANTISSA
        lower = np.int64(1) << (unit + np.where(part == 0, -2, exponent))
        upper = np.where(part == 0, 0, (np.int64(1) << (unit + exponent + PART)) - lower[-1])
        return lower, upper

    def of(self, x: np.ndarray) -> np.ndarray:
        """The product with int64 x [..., C], rounded."""
        x = np.clip(x, self.first, self.last)
        magnitude = np.abs(x) << self.left
        upper, lower = magnitude >> LIMB, magnitude & _MASK
        between = upper * self.low + lower * self.high
        whole = (upper * self.high + (between >> LIMB)) >> self.shift
        halves = self.halves
        h = halves[0][np.minimum(whole, (1 << PART) - 1)] + halves[1][whole >> PART]
        between += (lower * self.low + h) >> LIMB
        return np.sign(x) * ((upper * self.high + (between >> LIMB) + (1 << (self.shift - 1))) >> self.shift)


# The long one, for integers within 31 bits.
#
# round_half_away(double(x) * d) with a double d = M / 2^F, whose 53 bits stay whole where F allows it. The product has
# up to 85 bits, so M is split in two limbs, M = high * 2^32 + low:
#
#     floor((x M + c) / 2^F + 1/2) = floor((x high + floor((x low + c) / 2^32) + 2^(k-1)) / 2^k)     k = F - 32
#
# c decides ties, and products that float64 rounds up to a tie: it is d >= 0 for x > 0 and -d for x < 0.
# `LongProduct.fit` takes the smallest that gives the double's result on both sides of every threshold.

_THRESHOLDS_TOGETHER = 1 << 19  # thresholds looked at together: 4 MiB an array


class LongProduct(Form):
    """floor((x high + floor((x low + sign(x) c) / 2^32) + 2^(k-1)) / 2^k): the double's result on both sides of every
    threshold. x, in int64, is between `first` and `last`."""

    def __init__(
        self, high: np.ndarray, low: np.ndarray, shift: int, correction: int, first: np.ndarray, last: np.ndarray
    ) -> None:
        self.high, self.low, self.first, self.last = high, low, first, last  # int64 [C] each
        self.shift, self.correction = shift, correction  # k, c

    @classmethod
    def fit(cls, scale: np.ndarray, lows: int, highs: int, least: int, most: int) -> LongProduct | None:
        """The product by positive scales float64[C] for x in [least, most], saturated to [lows, highs].

        None if 64 bits do not hold it.
        """
        levels = np.arange(lows + 1, highs + 1)
        ends = float_thresholds(levels[[0, -1]], scale)
        # a range beyond all thresholds, on either side, is clamped to the nearest of these
        first = np.minimum(np.maximum(ends[0] - 1, least), ends[1])
        last = np.maximum(np.minimum(ends[1], most), ends[0] - 1)
        first, last = _narrowed(first, scale), _narrowed(last, scale)
        reach = int(max(np.abs(first).max(), np.abs(last).max()))
        smallest, largest = math.frexp(float(scale.min()))[1], math.frexp(float(scale.max()))[1]
        result_bits = int(max(-lows, highs) + float(scale.max()) + 2).bit_length()
        fraction = min(max(64, 53 - smallest), 94 - result_bits, 62 - largest)
        if reach >= 1 << 31 or fraction < 34:
            return None
        whole = [int(math.ldexp(float(d), 53)) for d in np.frexp(scale)[0]]
        places = fraction - 53 + np.frexp(scale)[1]
        mantissa = [m << int(p) if p >= 0 else m >> -int(p) for m, p in zip(whole, places, strict=True)]
        high = np.asarray([m >> 32 for m in mantissa], np.int64)
        low = np.asarray([m & 0xFFFFFFFF for m in mantissa], np.int64)
        # the double's last place near the largest results is 2^(result_bits - 53): no tie is missed by more
        sizes = range(max(fraction - 46, 0), fraction - 53 + result_bits + 1)
        for correction in (0, 1, reach, *(1 << size for size in sizes)):
            fit = cls(high, low, fraction - 32, correction, first, last)
            if correction < 1 << 60 and _climbs(fit, scale, levels):
                return fit
        return None

    def apply(self, x: X, ops: Ops[X]) -> X:
        below = ops.mul(x, ops.row(self.low))
        if self.correction:
            below = ops.add(below, ops.mul(ops.sign(x), ops.row(np.asarray(self.correction))))
        below = ops.high_word(below)
        total = ops.add(ops.mul(x, ops.row(self.high)), below)
        return ops.right_shift(ops.add(total, ops.row(np.asarray(1 << (self.shift - 1)))), self.shift)

    def of_channels(self, some: slice) -> LongProduct:
        """The product of some channels."""
        high, low, first, last = (v[some] for v in (self.high, self.low, self.first, self.last))
        return LongProduct(high, low, self.shift, self.correction, first, last)


def _narrowed(end: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """An end of the range brought within 31 bits, in the channels where that gives the same result."""
    nearer = np.clip(end, -_I31, _I31)
    same = np.floor(np.abs(end) * scale + 0.5) == np.floor(np.abs(nearer) * scale + 0.5)
    return np.where(same, nearer, end)


def _climbs(fit: LongProduct, scale: np.ndarray, levels: np.ndarray) -> bool:
    """Whether the product passes each level where the double does, on the whole range."""
    step = max(1, _THRESHOLDS_TOGETHER // levels.size)
    for at in range(0, scale.size, step):
        part = fit.of_channels(slice(at, at + step))
        thresholds = float_thresholds(levels, scale[at : at + step])
        after, before = (np.clip(x, part.first, part.last) for x in (thresholds, thresholds - 1))
        passed = (part.apply(after, NUMPY) >= levels[:, None]) | (thresholds > part.last)
        not_yet = (part.apply(before, NUMPY) < levels[:, None]) | (thresholds - 1 < part.first)
        if not (passed & not_yet).all():
            return False
    return True
