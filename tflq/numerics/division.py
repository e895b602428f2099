"""DIV of 8-bit values: the kernel's fixed-point quotient of every pair.

x / y is x shifted left to 31 bits, times the reciprocal of y shifted likewise (Newton steps as in SOFTMAX), times
input1 / (input2 * output) with the shifts taken back. A small dividend and a large divisor come to a right shift of
more than 31, which x86 takes modulo 32: those quotients are far off, and reproduced. The kernel stops at a zero.
Sources: kernels/div.cc (Prepare), kernels/internal/reference/div.h, kernels/internal/common.h (GetReciprocal).
"""

from __future__ import annotations

import numpy as np

from tflq.numerics.activation import float_ratio
from tflq.numerics.fixed_point import (
    multiply,
    quantize_multiplier,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)
from tflq.numerics.softmax import NEWTON_OFFSET, NEWTON_ONE, NEWTON_SLOPE, NEWTON_STEPS

__all__ = ["division_table"]


def division_table(
    dtype: np.dtype,
    scales: tuple[float, float, float],
    zero_points: tuple[int, int, int],
    bounds: tuple[int, int],
) -> np.ndarray:
    """[256, 256] of an 8-bit `dtype`: the stored quotient of each dividend and divisor, smallest first.

    `scales` and `zero_points` are those of dividend, divisor and result, `bounds` what the result is clamped to.
    ValueError if the multiplier is too large for a left shift.
    """
    info = np.iinfo(dtype)
    values = np.arange(info.min, info.max + 1, dtype=np.int64)
    product = float(np.float32(scales[1]) * np.float32(scales[2]))
    multiplier = quantize_multiplier(float_ratio(scales[0], product))
    y = (values - zero_points[1])[None]
    x = (values - zero_points[0])[:, None] * np.where(y < 0, -1, 1)
    reciprocal, shift = _reciprocal(np.maximum(np.abs(y), 1))
    headroom = _leading_sign_bits(x)
    quotient = multiply(x, np.broadcast_to(reciprocal, x.shape), headroom)
    total = multiplier.shift - shift - headroom
    shifted = multiply(quotient, multiplier.mantissa, np.maximum(total, 0))
    result = _shifted_right(shifted.astype(np.int64), np.maximum(-total, 0)) + zero_points[2]
    return np.clip(result, *bounds).astype(dtype)


def _shifted_right(x: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Rounding divide by a power of two; beyond 31, of one to the power modulo 32, plus one where x is not negative."""
    beyond = exponent > 31
    wrong = (x >> (exponent & 31)) + (x >= 0)
    return np.where(beyond, wrong, rounding_divide_by_pot(x, np.where(beyond, 0, exponent)))


def _bits(x: np.ndarray) -> np.ndarray:
    """Bits of non-negative integers up to the highest one set."""
    return np.frexp(x.astype(np.float64))[1]


def _leading_sign_bits(x: np.ndarray) -> np.ndarray:
    """Bits below the sign that equal it."""
    return 31 - _bits(np.where(x < 0, -1 - x, x))


def _reciprocal(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 / y in Q0.31 of y shifted left to 31 bits, and the exponent that leaves."""
    bits = _bits(y)
    half = y << (31 - bits)
    mul = saturating_rounding_doubling_high_mul
    r = mul(half, NEWTON_SLOPE).astype(np.int64) + NEWTON_OFFSET
    for _ in range(NEWTON_STEPS):
        r = r + (mul(r, NEWTON_ONE - mul(half, r).astype(np.int64)).astype(np.int64) << 2)
    return np.minimum(r << 1, (1 << 31) - 1), bits - 1
