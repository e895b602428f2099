"""A double's product with integers of more than 31 bits, rounded half away from zero, in 64-bit integers.

round_half_away(double(x) * d) with a double d = M / 2^F, M of 53 bits. |x| is shifted to the left by as many bits as
make F the same for all channels, and both are split into limbs of 29 bits, |x| 2^j = x1 2^29 + x0, M = m1 2^29 + m0:

    |x| M 2^j = x1 m1 2^58 + (x1 m0 + x0 m1) 2^29 + x0 m0
    |y| = floor((|x| M 2^j + h + 2^(F-1)) / 2^F)

The product is exact, and float64 rounds it: what is less than half a last place below a tie n - 1/2 becomes it. h is
that half, 2^(F + e - 53) where 2^e is the greatest power of two below the tie, -2 for the first; n - 1 is the product's
integer part (a product that far from a tie has the same result with any such h).
"""

from __future__ import annotations

import numpy as np

from tflq.light import dataclass

__all__ = ["LIMB", "PART", "WideProduct", "fit_wide_product"]

LIMB = 29
"""Bits of a limb."""
PART = 9
"""Bits of the integer part that a table of `WideProduct` knows."""
_MASK = (1 << LIMB) - 1
_MANTISSA = 53
_SHIFTED = 1 << 58  # of |x| shifted to the left
_LEAST_SHIFT = 8


@dataclass(frozen=True, slots=True)
class WideProduct:
    """The bits to shift |x| by, the limbs of M, the range that x is clamped to first, int64 [C] each; F - 58."""

    left: np.ndarray
    high: np.ndarray
    low: np.ndarray
    first: np.ndarray
    last: np.ndarray
    shift: int

    @property
    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """h of integer parts below 2^PART, and what is added to the last of these for the bits above: int64 [2^PART]
        each."""
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


def fit_wide_product(scale: np.ndarray, lows: int, highs: int, least: int, most: int) -> WideProduct | None:
    """The product by positive scales float64[C] for x in [least, most], saturated to [lows, highs] of 16 bits at most.

    None if 64 bits do not hold it.
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
    return WideProduct(left, mantissa >> LIMB, mantissa & _MASK, first, last, top - 2 * LIMB)
