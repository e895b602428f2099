"""A double's product with an integer, rounded half away from zero, in 64-bit integers.

round_half_away(double(x) * d) with a double d = M / 2^F, its 53 bits kept whole where F allows it. The product has up
to 85 bits, so M is split in two limbs, M = high * 2^32 + low:

    floor((x M + c) / 2^F + 1/2) = floor((x high + floor((x low + c) / 2^32) + 2^(k-1)) / 2^k)     k = F - 32

c tells ties apart, and products that float64 rounds up to a tie: it is d >= 0 for x > 0 and -d for x < 0.
`fit_long_product` takes the smallest that gives the double's result on both sides of every threshold.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.light import dataclass
from tflq.numerics.staircase import float_thresholds

__all__ = ["LongProduct", "fit_long_product"]

_I31 = (1 << 31) - 1
_CHUNK = 1 << 19  # thresholds looked at together: 4 MiB an array


@dataclass(frozen=True, slots=True)
class LongProduct:
    """The limbs int64 [C], k, the correction by sign, and the range int64 [C] that x is clamped to first."""

    high: np.ndarray
    low: np.ndarray
    shift: int
    correction: int
    first: np.ndarray
    last: np.ndarray


def fit_long_product(scale: np.ndarray, lows: int, highs: int, least: int, most: int) -> LongProduct | None:
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
        fit = LongProduct(high, low, fraction - 32, correction, first, last)
        if correction < 1 << 60 and _climbs(fit, scale, levels):
            return fit
    return None


def _narrowed(end: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """An end of the range brought within 31 bits, for the channels where both give the same result."""
    nearer = np.clip(end, -_I31, _I31)
    same = np.floor(np.abs(end) * scale + 0.5) == np.floor(np.abs(nearer) * scale + 0.5)
    return np.where(same, nearer, end)


def _climbs(fit: LongProduct, scale: np.ndarray, levels: np.ndarray) -> bool:
    """Whether the product passes each level where the double does, on the whole range."""
    step = max(1, _CHUNK // levels.size)
    for at in range(0, scale.size, step):
        part = slice(at, at + step)
        thresholds = float_thresholds(levels, scale[part])
        after = np.clip(thresholds, fit.first[part], fit.last[part])
        before = np.clip(thresholds - 1, fit.first[part], fit.last[part])
        passed = (_quotient(fit, after, part) >= levels[:, None]) | (thresholds > fit.last[part])
        not_yet = (_quotient(fit, before, part) < levels[:, None]) | (thresholds - 1 < fit.first[part])
        if not (passed & not_yet).all():
            return False
    return True


def _quotient(fit: LongProduct, x: np.ndarray, part: slice) -> np.ndarray:
    """What the two limbs give."""
    below = (x * fit.low[part] + np.sign(x) * fit.correction) >> 32
    return (x * fit.high[part] + below + (1 << (fit.shift - 1))) >> fit.shift
