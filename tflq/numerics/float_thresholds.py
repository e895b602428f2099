"""Float32 thresholds of QUANTIZE: T(n), the smallest x with round(float32(x / scale)) >= n.

The kernel divides in float32 and rounds half away from zero (kernels/internal/reference/quantize.h); other ways of
rounding have thresholds, too. It climbs with x, so n is the result of x exactly when T(n) <= x < T(n + 1), and
comparisons do what TOSA has no division for. T(n) is found by bisection on the order of float32 numbers, starting
some steps around (n - 1/2) scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tflq.numerics.fixed_point import Rounding, half_away, round_float

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
    """T(n) for float32 scales and whole levels n that broadcast to each other; infinite where none is smaller. All
    floats by an infinite scale are 0."""
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


# FLOOR_DIV and FLOOR_MOD of what 8-bit integers stand for: tables of all pairs, in the float kernels' arithmetic.
#
#     x = float32(q - zero_point) * scale          each operand
#     FLOOR_DIV = floor(x / y); infinite for y = 0, and 0 for 0 / 0
#     FLOOR_MOD = fmod(x, y), plus y where that has another sign than y; 0 for y = 0
#
# each then round_half_away(result / scale_out) + zero_point_out, clamped. Sources: floor_div.h, floor_mod.h and
# quantize.h in kernels/internal/reference. The kernels stop at y = 0.


Parameters: TypeAlias = tuple[float, int]
"""Scale and zero point."""


def floor_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """floor(x / y) of floats, in their precision; infinite by 0, and 0 for 0 / 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.floor(x / y)
    return np.nan_to_num(quotient, nan=0.0, posinf=np.inf, neginf=-np.inf)


def floor_remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What floor(x / y) leaves; 0 by 0."""
    with np.errstate(invalid="ignore"):
        left = np.fmod(x, y)
    return np.nan_to_num(np.where((left != 0) & ((left < 0) != (y < 0)), left + y, left), nan=0.0)


def floor_quotients(dtype: np.dtype, dividend: Parameters, divisor: Parameters, result: Parameters) -> np.ndarray:
    """[256, 256] of an 8-bit `dtype`, smallest first: the stored floor(x / y)."""
    return _stored(floor_quotient(_real(dtype, dividend)[:, None], _real(dtype, divisor)[None]), dtype, result)


def floor_remainders(dtype: np.dtype, dividend: Parameters, divisor: Parameters, result: Parameters) -> np.ndarray:
    """[256, 256] of an 8-bit `dtype`, smallest first: the stored remainder of floor(x / y)."""
    return _stored(floor_remainder(_real(dtype, dividend)[:, None], _real(dtype, divisor)[None]), dtype, result)


def _real(dtype: np.dtype, parameters: Parameters) -> np.ndarray:
    info, (scale, zero_point) = np.iinfo(dtype), parameters
    return (np.arange(info.min, info.max + 1) - zero_point).astype(np.float32) * np.float32(scale)


def _stored(real: np.ndarray, dtype: np.dtype, parameters: Parameters) -> np.ndarray:
    info, (scale, zero_point) = np.iinfo(dtype), parameters
    with np.errstate(over="ignore"):
        counts = (real / np.float32(scale)).astype(np.float64)
    return np.clip(half_away(counts) + zero_point, info.min, info.max).astype(dtype)
