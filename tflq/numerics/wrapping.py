"""What the kernels' rescaling gives where its arithmetic leaves its types.

    int32     x * 2^left wraps, left modulo 32; what is then scaled by M / 2^31 wraps where the zero point is added
    int64     the low 32 bits of (x * m + 2^((t - 1) mod 64)) >> (t mod 64), t = 15 - left, m the multiplier reduced to
              16 bits; product and sum wrap
    float64   (int32) of a quotient that int32 does not hold is -2^31, which wraps where the zero point is added

C++ leaves all of this undefined but for the low 32 bits. It is what x86-64 computes: shifts modulo the register's size,
conversions that do not fit the least integer. BUILTIN_REF of ai-edge-litert 2.1 and 2.3 and of TensorFlow 2.20 and 2.21
agree on it (measured, multipliers from 2^-40 to 2^127).
Sources: kernels/internal/common.cc (MultiplyByQuantizedMultiplier), internal/reference/integer_ops/fully_connected.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tflq.numerics.fixed_point import reduce_to_16_bits

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "leaves_float",
    "leaves_int32",
    "leaves_wide",
    "rescale_i64",
    "wide_multipliers",
]

_I31 = 1 << 31
_I63 = 1 << 63


def wide_multipliers(mantissa: npt.ArrayLike, left: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The 15-bit multipliers and the shifts, 0 to 63, by which int64 sums are scaled: int64 [C] each."""
    return np.atleast_1d(reduce_to_16_bits(mantissa)), (15 - np.atleast_1d(np.asarray(left, np.int64))) & 63


def rescale_i64(x: np.ndarray, multiplier: npt.ArrayLike, shift: npt.ArrayLike) -> np.ndarray:
    """int32 low words of (x * multiplier + 2^((shift - 1) mod 64)) >> shift, of int64 x; shift 0 to 63."""
    s = np.asarray(shift, np.int64)
    with np.errstate(over="ignore"):
        return ((x * np.asarray(multiplier, np.int64) + (np.int64(1) << ((s - 1) & 63))) >> s).astype(np.int32)


def leaves_wide(low: np.ndarray, high: np.ndarray, mantissa: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Whether scaled int64 sums of [low, high] can leave the kernel's types: bool [C], operands int [C]."""
    multiplier, _ = wide_multipliers(mantissa, left)
    rows = zip(*(v.tolist() for v in np.broadcast_arrays(low, high, multiplier, left)), strict=True)
    return np.asarray([_leaves_wide(*row) for row in rows], bool)


def _leaves_wide(low: int, high: int, multiplier: int, left: int) -> bool:
    if not multiplier or (low, high) == (0, 0):
        return False
    shift = 15 - left
    if shift < 0:
        return True
    half = 1 << shift >> 1  # with a shift of 0 the kernel's is 2^63, which the low word loses
    ends = low * multiplier + half, high * multiplier + half
    return ends[0] < -_I63 or ends[1] >= _I63 or ends[0] >> shift < -_I31 or ends[1] >> shift >= _I31


def leaves_int32(low: np.ndarray, high: np.ndarray, mantissa: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Whether int32 sums of [low, high], shifted to the left, can leave int32: bool [C] or [1], operands int [C]."""
    if left.max(initial=0) <= 0 and low.min(initial=0) >= -_I31 and high.max(initial=0) < _I31:
        return np.zeros(1, bool)
    far = (left > 31) & ((low != 0) | (high != 0))
    places = np.clip(left, 0, 31).astype(np.int64)
    beyond = (low.astype(np.int64) << places < -_I31) | (high.astype(np.int64) << places >= _I31)
    return (mantissa != 0) & (far | beyond)


def leaves_float(scale: npt.ArrayLike, zero_point: int) -> np.ndarray:
    """The least magnitude int64 [C] of sums from which round_half_away(double(x) * scale) + zero_point leaves int32 on
    the side where the kernel then gives the other end: of sums above 0 for a zero point from 0 up, else below 0.

    2^63 - 1 where there is none; 0 of a scale that is infinite or not a number, by which all sums leave it.
    """
    d = np.atleast_1d(np.asarray(scale, np.float64))
    bound = _I31 - zero_point - 0.5 if zero_point >= 0 else _I31 + zero_point + 0.5
    low, high = np.zeros(d.shape, np.int64), np.full(d.shape, _I63 - 1, np.int64)
    with np.errstate(invalid="ignore", over="ignore"):
        for _ in range(63):
            middle = low + ((high - low) >> 1)
            inside = middle.astype(np.float64) * d < bound
            low, high = np.where(inside, np.minimum(middle + 1, high), low), np.where(inside, high, middle)
    return high
