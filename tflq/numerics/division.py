"""DIV: the kernel's fixed-point quotient.

x / y is x shifted left to 31 bits, times the reciprocal of y shifted likewise (Newton steps as in SOFTMAX), times
input1 / (input2 * output) with the shifts taken back. A small dividend and a large divisor come to a right shift of
more than 31, and a large multiplier to one of less than 0, which C++ leaves undefined (`x86.divide_by_pot`): those
quotients are far off. The kernel stops at a zero.
Sources: kernels/div.cc (Prepare), kernels/internal/reference/div.h, kernels/internal/common.h (GetReciprocal).
"""

from __future__ import annotations

import numpy as np

from tflq.numerics.activation import float_ratio
from tflq.numerics.fixed_point import (
    Multiplier,
    multiply,
    quantize_multiplier,
    saturating_rounding_doubling_high_mul,
)
from tflq.numerics.softmax import NEWTON_OFFSET, NEWTON_ONE, NEWTON_SLOPE, NEWTON_STEPS
from tflq.numerics.x86 import divide_by_pot

__all__ = ["division_multiplier", "division_table", "reciprocals", "shifts_undefined"]


def division_table(
    dtype: np.dtype,
    scales: tuple[float, float, float],
    zero_points: tuple[int, int, int],
    bounds: tuple[int, int],
) -> np.ndarray:
    """[256, 256] of an 8-bit `dtype`: the stored quotient of each dividend and divisor, smallest first.

    `scales` and `zero_points` are those of dividend, divisor and result, `bounds` what the result is clamped to.
    """
    info = np.iinfo(dtype)
    values = np.arange(info.min, info.max + 1, dtype=np.int64)
    multiplier = division_multiplier(*scales)
    y = (values - zero_points[1])[None]
    x = (values - zero_points[0])[:, None] * np.where(y < 0, -1, 1)
    reciprocal, shift = reciprocals(y)
    headroom = _leading_sign_bits(x)
    quotient = multiply(x, np.broadcast_to(reciprocal, x.shape), headroom)
    total = multiplier.shift - shift - headroom
    scaled = saturating_rounding_doubling_high_mul(quotient, multiplier.mantissa).astype(np.int64)
    return np.clip(divide_by_pot(scaled, -total) + zero_points[2], *bounds).astype(dtype)


def shifts_undefined(multiplier: Multiplier, bits: int) -> bool:
    """Whether a quotient of values of so many bits comes to a shift of less than 0 or more than 31."""
    least, most = 30 - bits - multiplier.shift, 31 + bits - multiplier.shift
    return least < 0 or most > 31


def _bits(x: np.ndarray) -> np.ndarray:
    """Bits of non-negative integers up to the highest one set."""
    return np.frexp(x.astype(np.float64))[1]


def _leading_sign_bits(x: np.ndarray) -> np.ndarray:
    """Bits below the sign that equal it."""
    return 31 - _bits(np.where(x < 0, -1 - x, x))


def reciprocals(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 / |y| in Q0.31 of |y| shifted left to 31 bits, and the exponent that leaves; 0 counts as 1."""
    y = np.maximum(np.abs(y), 1)
    bits = _bits(y)
    half = y << (31 - bits)
    mul = saturating_rounding_doubling_high_mul
    r = mul(half, NEWTON_SLOPE).astype(np.int64) + NEWTON_OFFSET
    for _ in range(NEWTON_STEPS):
        r = r + (mul(r, NEWTON_ONE - mul(half, r).astype(np.int64)).astype(np.int64) << 2)
    return np.minimum(r << 1, (1 << 31) - 1).astype(np.int32), bits - 1


def division_multiplier(dividend_scale: float, divisor_scale: float, output_scale: float) -> Multiplier:
    """What scales the quotient."""
    with np.errstate(over="ignore"):
        product = float(np.float32(divisor_scale) * np.float32(output_scale))
    return quantize_multiplier(float_ratio(dividend_scale, product))
