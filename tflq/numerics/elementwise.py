"""Parameters of ADD, SUB and MUL, of divisions, and of comparisons.

Every real multiplier here is a quotient in float32 or of doubles, as the kernels have it. Where a kernel aborts or
refuses a model, a ValueError says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tflq.numerics.activation import NEWTON_OFFSET, NEWTON_ONE, NEWTON_SLOPE, NEWTON_STEPS
from tflq.numerics.fixed_point import (
    Multiplier,
    checked_log2,
    divide_by_pot,
    float_ratio,
    multiply,
    quantize_multiplier,
    quotient,
    saturating_rounding_doubling_high_mul,
)
from tflq.numerics.unary import RealFunction, store, values_of

# ADD, SUB, MUL and SQUARED_DIFFERENCE.
#
# ADD and SUB shift both operands left (8-bit by 20, int16 by 15), scale them to twice the larger input scale, add, and
# scale the sum to the result; the multipliers are quotients of doubles, of twice the scale and of the shifted scale,
# which are in float32. The kernels abort at multipliers of the operands that are not between 0 and 1, so at a scale of
# 0 or infinity. int16 with power-of-two scales and `pot_scale_int16` shifts one operand right instead.
# Sources: kernels/add.cc, kernels/sub.cc, kernels/mul.cc (Prepare), kernels/internal/quantization_util.cc
# (CheckedLog2).


class Addition:
    """ADD's and SUB's parameters: the shift of both operands, their multipliers, and that of the sum."""

    __slots__ = ("first", "left_shift", "second", "sum")

    def __init__(self, left_shift: int, first: Multiplier, second: Multiplier, sum: Multiplier) -> None:
        self.left_shift: Final = left_shift
        self.first: Final = first
        self.second: Final = second
        self.sum: Final = sum


def addition(scale1: float, scale2: float, output_scale: float, bits: int, *, subtract: bool = False) -> Addition:
    """Parameters for float32 scales and a storage type of `bits`. ValueError says why the kernel refuses the scales.

    ADD takes a multiplier of the sum below one only; SUB also one above, but not one itself.
    """
    left_shift = 15 if bits == 16 else 20
    twice = _twice(scale1, scale2)
    real = quotient(twice, _shifted(output_scale, left_shift))
    above = subtract and real > 1.0
    total = quantize_multiplier(real) if above else _below_one(real, "the sum")
    return Addition(left_shift, *_of_operands(scale1, scale2, twice), total)


def squared_difference(scale1: float, scale2: float, output_scale: float) -> Addition:
    """Parameters of SQUARED_DIFFERENCE, which shifts by 7 and squares before the last multiplier.

    ValueError if that is not below one. Source: kernels/squared_difference.cc.
    """
    twice = _twice(scale1, scale2)
    total = _below_one(quotient(twice * twice, _shifted(output_scale, 14)), "the square")
    return Addition(7, *_of_operands(scale1, scale2, twice), total)


def _twice(scale1: float, scale2: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(2) * np.float32(max(scale1, scale2)))


def _shifted(scale: float, bits: int) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(1 << bits) * np.float32(scale))


def _of_operands(scale1: float, scale2: float, twice: float) -> tuple[Multiplier, Multiplier]:
    first, second = quotient(scale1, twice), quotient(scale2, twice)
    return _below_one(first, "the first operand"), _below_one(second, "the second operand")


def _below_one(real: float, what: str) -> Multiplier:
    """QuantizeMultiplierSmallerThanOneExp. ValueError where it aborts."""
    multiplier = quantize_multiplier(real)
    if not 0.0 < real < 1.0 or multiplier.shift > 0:
        raise ValueError(f"the multiplier of {what} is {real!r}, not above 0 and below 1")
    return multiplier


def multiplication(scale1: float, scale2: float, output_scale: float) -> Multiplier:
    """MUL's multiplier: input1 * input2 / output, in float32."""
    return quantize_multiplier(float_ratio(scale1, output_scale, scale2))


def power_of_two_shifts(scale1: float, scale2: float, output_scale: float) -> tuple[int, int] | None:
    """Right shifts of the two operands of an int16 ADD or SUB, None if some scale is not a power of two.

    ValueError unless one operand has the result's scale and the other a smaller or equal one.
    """
    first, second, output = checked_log2(scale1), checked_log2(scale2), checked_log2(output_scale)
    if first is None or second is None or output is None:
        return None
    shifts = output - first, output - second
    if min(shifts) < 0 or 0 not in shifts:
        raise ValueError("of power-of-two scales, one operand's must be the result's and the other's no larger")
    return shifts


# DIV: the kernel's fixed-point quotient.
#
# x / y is x shifted left to 31 bits, times the reciprocal of y shifted the same way (Newton steps as in SOFTMAX), times
# input1 / (input2 * output) with the shifts taken back. A small dividend and a large divisor need a right shift of
# more than 31, and a large multiplier one of less than 0, which C++ leaves undefined (`divide_by_pot`): those
# quotients are far off. The kernel stops at a divisor of 0. Sources: kernels/div.cc (Prepare),
# kernels/internal/reference/div.h, kernels/internal/common.h (GetReciprocal).


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
    """Whether a quotient of values of so many bits can need a shift of less than 0 or more than 31."""
    least, most = 30 - bits - multiplier.shift, 31 + bits - multiplier.shift
    return least < 0 or most > 31


def _bits(x: np.ndarray) -> np.ndarray:
    """Bits of integers from 0 up, to the highest that is set."""
    return np.frexp(x.astype(np.float64))[1]


def _leading_sign_bits(x: np.ndarray) -> np.ndarray:
    """Bits below the sign that equal it."""
    return 31 - _bits(np.where(x < 0, -1 - x, x))


def reciprocals(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 / |y| in Q0.31, for |y| shifted left to 31 bits, and the exponent that this leaves; 0 counts as 1."""
    y = np.maximum(np.abs(y), 1)
    bits = _bits(y)
    half = y << (31 - bits)
    mul = saturating_rounding_doubling_high_mul
    r = mul(half, NEWTON_SLOPE).astype(np.int64) + NEWTON_OFFSET
    for _ in range(NEWTON_STEPS):
        r = r + (mul(r, NEWTON_ONE - mul(half, r).astype(np.int64)).astype(np.int64) << 2)
    return np.minimum(r << 1, (1 << 31) - 1).astype(np.int32), bits - 1


def division_multiplier(dividend_scale: float, divisor_scale: float, output_scale: float) -> Multiplier:
    """The multiplier of the quotient."""
    with np.errstate(over="ignore"):
        product = float(np.float32(divisor_scale) * np.float32(output_scale))
    return quantize_multiplier(float_ratio(dividend_scale, product))


# FLOOR_DIV and FLOOR_MOD in the float kernels' arithmetic, also of what 8-bit integers stand for.
#
# Sources: floor_div.h, floor_mod.h and quantize.h in kernels/internal/reference. The kernels stop at y = 0.


def floor_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """floor(x / y) of floats, in their precision; infinite by 0, and 0 for 0 / 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.floor(x / y)
    return np.nan_to_num(quotient, nan=0.0, posinf=np.inf, neginf=-np.inf)


def floor_remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The remainder of floor(x / y) of floats; 0 by 0."""
    with np.errstate(invalid="ignore"):
        left = np.fmod(x, y)
    return np.nan_to_num(np.where((left != 0) & ((left < 0) != (y < 0)), left + y, left), nan=0.0)


def floor_quotients(dtype: np.dtype, *parameters: tuple[float, int]) -> np.ndarray:
    """[256, 256] of an 8-bit `dtype`, smallest first: the stored floor(x / y). `parameters`: scale and zero point of
    dividend, divisor and result."""
    return _table_in_float32(floor_quotient, dtype, *parameters)


def floor_remainders(dtype: np.dtype, *parameters: tuple[float, int]) -> np.ndarray:
    """[256, 256] of an 8-bit `dtype`, smallest first: the stored remainder of floor(x / y). `parameters`: as of
    `floor_quotients`."""
    return _table_in_float32(floor_remainder, dtype, *parameters)


def _table_in_float32(
    function: RealFunction,
    dtype: np.dtype,
    first: tuple[float, int],
    second: tuple[float, int],
    result: tuple[float, int],
) -> np.ndarray:
    x, y = (values_of(dtype, *p).astype(np.float32) for p in (first, second))
    with np.errstate(all="ignore"):
        counts = function(x[:, None], y[None]) / np.float32(result[0])
    return store(counts.astype(np.float64), result[1], dtype)


# Comparisons: the kernels compare (x - zero_point) << 8, times the scale, as int32.
#
#     scale = 0    the kernels abort
#     scale < 1    MultiplyByQuantizedMultiplierSmallerThanOneExp: rounded twice, half up, then half away from zero
#     scale = 1    the kernels abort
#     scale > 1    -1 below zero, else 1
#     infinite     0
#
# Above 1 the second rounding divides by a power of two of a negative exponent, a shift that C++ leaves undefined. What
# runs is the shift to the sign, plus one from 0 up, as long as the shift modulo 32 leaves only the sign. From there on
# (`unsettled`) the kernels' vector and scalar code differ, and interpreters differ in which one runs. Sources:
# kernels/comparisons.cc (QuantizeMultiplier, ComparisonQuantized), kernels/internal/reference/comparisons.h
# (ComparisonWithScaling), kernels/internal/common.h, gemmlowp's RoundingDivideByPOT.

COMPARISONS: Final[dict[str, Callable[..., Any]]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}
"""Comparisons of two arrays, by StableHLO's name of the direction."""

LEFT_SHIFT = 8


def comparison_multiplier(scale: float) -> Multiplier:
    """The multiplier of a scale; a shift above 0 stands for the sign alone. ValueError if the kernel aborts."""
    if scale in (0.0, 1.0):
        raise ValueError(f"it aborts at a scale of {scale:g}")
    return quantize_multiplier(scale)


def unsettled(scale: float, bits: int) -> bool:
    """Whether interpreters differ at a scale, for a storage type of `bits`."""
    return 1.0 < scale < math.inf and bits + LEFT_SHIFT > 32 - math.frexp(scale)[1]


def compared(x: np.ndarray, scale: float) -> np.ndarray:
    """The kernel's operands of the comparison, of stored integers less their zero point. ValueError as
    `comparison_multiplier`."""
    multiplier = comparison_multiplier(scale)
    if multiplier.shift > 0:
        return np.where(x < 0, -1, 1).astype(np.int32)
    return multiply((x.astype(np.int64) << LEFT_SHIFT).astype(np.int32), multiplier.mantissa, multiplier.shift)


def compared_one_by_one(x: np.ndarray, scale: float) -> np.ndarray:
    """`compared` by scalar code, which differs where it is `unsettled`. int64."""
    multiplier = comparison_multiplier(scale)
    if multiplier.shift <= 0:
        return compared(x, scale).astype(np.int64)
    high = multiply((x.astype(np.int64) << LEFT_SHIFT).astype(np.int32), multiplier.mantissa, 0)
    return divide_by_pot(high.astype(np.int64), -multiplier.shift)
