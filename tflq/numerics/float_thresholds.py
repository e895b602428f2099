"""Float32 thresholds of QUANTIZE: T(n), the smallest x with round(float32(x / scale)) >= n.

The kernel divides in float32 and rounds half away from zero (kernels/internal/reference/quantize.h); other roundings
have thresholds, too. The result climbs with x, so it is n exactly when T(n) <= x < T(n + 1): comparisons replace the
division that TOSA lacks. T(n) is found by bisection on the order of float32 numbers, from some steps around
(n - 1/2) scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tflq.numerics.fixed_point import Rounding, round_float

if TYPE_CHECKING:
    import numpy.typing as npt

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
    assert not (reached(from_steps(np.maximum(low, -_INFINITY))) & below).any()
    assert reached(from_steps(high)).all()
    while (high - low > 1).any():
        middle = (low + high) >> 1
        up = reached(from_steps(middle))
        low, high = np.where(up, low, middle), np.where(up, middle, high)
    return from_steps(high)
