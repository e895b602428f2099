"""Parameters of activations, of ADD, SUB and MUL, and of comparisons.

Every real multiplier here is a quotient in float32 or of doubles, as the kernels have it. Where a kernel aborts or
refuses a model, a ValueError says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tflq.light import NamedTuple, dataclass
from tflq.numerics.fixed_point import (
    Multiplier,
    divide_by_pot,
    multiply,
    quantize_multiplier,
    quotient,
    round_half_away,
    rounding_divide_by_pot,
    wrapped,
)

# Activation functions: clamp ranges, multipliers, HARD_SWISH.
#
# A bounded activation is a clamp of stored values: each real bound f becomes `zero_point + round_half_away(f /
# scale)`, the quotient in float32, within the storage type. Sources: kernels/kernel_util.cc
# (CalculateActivationRangeQuantized), kernels/activations.cc (QuantizedReluX, LeakyReluPrepare, PreluPrepare,
# HardSwishPrepare), kernels/internal/reference/hard_swish.h.

BOUNDS: dict[str, tuple[float | None, float | None]] = {
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}
"""Real bounds of the clamping activations. The quantized kernels ignore every other fused activation."""


def activation_range(activation: str, low: int, high: int, scale: float, zero_point: int) -> tuple[int, int]:
    """The stored values a fused activation clamps to, for a storage type of [low, high].

    ValueError if a bound is outside int32 at this scale, where the kernels refuse the model.
    """
    least, greatest = (_steps(bound, scale) for bound in BOUNDS.get(activation, (None, None)))
    for steps in (least, greatest):
        if steps is not None and not abs(steps) <= 2.0**31:
            raise ValueError(f"a bound of {activation} is {steps:.3g} steps of scale {scale:g}, more than int32 holds")
    return _clamping(least, greatest, low, high, zero_point)


def relu_range(activation: str, low: int, high: int, scale: float, zero_point: int) -> tuple[int, int]:
    """The same for RELU and its kin as operators of their own, which take any bound: `as_int32` of it."""
    least, greatest = (_steps(bound, scale) for bound in BOUNDS[activation])
    return _clamping(least, greatest, low, high, zero_point)


def real_range(activation: str, low: int, high: int, scale: float, zero_point: int) -> tuple[int, int]:
    """The same for the real bounds: one beyond the type does not clamp."""
    ends = [low, high]
    for place, bound in enumerate(BOUNDS.get(activation, (None, None))):
        if bound is not None:
            steps = _steps(bound, scale) or 0.0
            counts = 0.0 if steps != steps else min(max(steps, -(2.0**32)), 2.0**32)
            ends[place] = min(max(zero_point + int(counts), low), high)
    return ends[0], ends[1]


def bounds_undefined(activation: str, scale: float) -> bool:
    """Whether int32 does not hold a bound at this scale: its conversion is undefined in C++."""
    counts = [_steps(bound, scale) for bound in BOUNDS.get(activation, (None, None))]
    return any(steps is not None and not -(2.0**31) <= steps < 2.0**31 for steps in counts)


def _steps(bound: float | None, scale: float) -> float | None:
    """A bound in steps of the scale: the quotient in float32, rounded half away from zero."""
    if bound is None:
        return None
    with np.errstate(all="ignore"):
        steps = float(np.float32(bound) / np.float32(scale))
    return float(round_half_away(steps)) if abs(steps) < 2.0**52 else steps


def _clamping(least: float | None, greatest: float | None, low: int, high: int, zero_point: int) -> tuple[int, int]:
    """The type's range within the bounds. Where the greatest bound is below the least, it is that bound alone, as the
    type stores it."""
    start = low if least is None else max(low, _offset(least, zero_point))
    end = high if greatest is None else min(high, _offset(greatest, zero_point))
    if start <= end:
        return start, end
    stored = low + (end - low) % (high - low + 1)
    return stored, stored


def _offset(steps: float, zero_point: int) -> int:
    held = abs(steps) < 2.0**31  # else the conversion gives the least integer
    moved = (int(steps) if held else -(1 << 31)) + zero_point
    return moved if -(1 << 31) <= moved < 1 << 31 else int(wrapped(moved))


def integer_activation_range(activation: str, low: int, high: int) -> tuple[int, int]:
    """The same for the int32 and int64 kernels, which have no scale: the bounds themselves."""
    least, greatest = BOUNDS.get(activation, (None, None))
    return low if least is None else int(least), high if greatest is None else int(greatest)


def float_ratio(numerator: float, denominator: float, *factors: float) -> float:
    """numerator * factors / denominator, each step in float32: a kernel's real multiplier."""
    with np.errstate(all="ignore"):
        product = np.float32(numerator)
        for factor in factors:
            product = np.float32(product * np.float32(factor))
        return float(product / np.float32(denominator))


class Leaky(NamedTuple):
    """LEAKY_RELU's multipliers: from the zero point up, below it, and whether the result below is negated."""

    identity: Multiplier
    alpha: Multiplier
    negated: bool


def leaky_multipliers(input_scale: float, output_scale: float, alpha: float) -> Leaky:
    """Multipliers input / output and |input * alpha / output|."""
    identity = quantize_multiplier(float_ratio(input_scale, output_scale))
    mantissa, shift = quantize_multiplier(float_ratio(input_scale, output_scale, alpha))
    return Leaky(identity, Multiplier(abs(mantissa), shift), mantissa < 0)


def prelu_multipliers(input_scale: float, alpha_scale: float, output_scale: float) -> tuple[Multiplier, Multiplier]:
    """Multipliers input / output, and input * alpha / output."""
    identity = quantize_multiplier(float_ratio(input_scale, output_scale))
    return identity, quantize_multiplier(float_ratio(input_scale, output_scale, alpha_scale))


def hard_swish_shift(input_scale: float) -> int:
    """The left shift of the multiplier that makes x the "reluish" factor. From 33 on the result depends on whether the
    kernel's loop is vectorized: then everything is shifted out."""
    return _to_reluish(np.float32(input_scale) * np.float32(1 / 128)).shift


def _to_reluish(hires: np.float32) -> Multiplier:
    return quantize_multiplier(float_ratio(float(hires), float(np.float32(3.0) / np.float32(32768.0))))


def hard_swish_table(
    dtype: np.dtype, input_scale: float, input_zp: int, output_scale: float, output_zp: int, *, vectorized: bool = False
) -> np.ndarray:
    """HARD_SWISH of each value of an 8-bit `dtype`, smallest first. ValueError if the kernel refuses the scales.

    The kernel multiplies x on the output scale by a "reluish" factor, relu6(x + 3) / 6, in 16-bit fixed point
    (reference/hard_swish.h).
    """
    hires = np.float32(input_scale) * np.float32(1 / 128)
    ratio = float_ratio(float(hires), output_scale)
    to_output, to_reluish = quantize_multiplier(ratio), _to_reluish(hires)
    if to_output.shift > 0:
        raise ValueError(f"input scale / (128 * output scale) is {ratio:.3g}, at least one")
    info = np.iinfo(dtype)
    x = (np.arange(info.min, info.max + 1) - input_zp) * 128
    preshift = _high_mul16(x, _to_16_bits(to_output))
    reluish = x
    if to_reluish.shift > 0:
        left = to_reluish.shift - 1
        reluish = _saturate16(reluish * (0 if vectorized and left > 31 else wrapped(1 << (left & 31))))
    reluish = _high_mul16(reluish, _to_16_bits(to_reluish))
    if to_reluish.shift > 0:
        reluish = _saturate16(reluish << 1)
    if to_reluish.shift < 0:
        reluish = _divide_by_pot16(reluish, -to_reluish.shift)
    factor = (reluish + (1 << 15)) >> 1
    product = factor * preshift
    truncated = np.sign(product) * (np.abs(product) >> 15)
    return np.clip(_divide_by_pot16(truncated, -to_output.shift) + output_zp, info.min, info.max).astype(dtype)


def _to_16_bits(multiplier: Multiplier) -> int:
    """DownScaleInt32ToInt16Multiplier: rounded to the upper 16 bits, saturated."""
    return min((multiplier.mantissa + (1 << 15)) >> 16, (1 << 15) - 1)


def _high_mul16(a: np.ndarray, b: int) -> np.ndarray:
    """round(a * b / 2^15), half up, of 16-bit values."""
    return (a * b + (1 << 14)) >> 15


def _divide_by_pot16(x: np.ndarray, exponent: int) -> np.ndarray:
    """gemmlowp's RoundingDivideByPOT on int16: from an exponent of 16 on its mask is -1 and all results are ±1."""
    return rounding_divide_by_pot(x, exponent) if exponent < 16 else np.where(x < 0, -1, 1)


def _saturate16(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -(1 << 15), (1 << 15) - 1)


# ADD, SUB, MUL and SQUARED_DIFFERENCE.
#
# ADD and SUB shift both operands left (8-bit by 20, int16 by 15), scale them to twice the larger input scale, add, and
# scale the sum to the result; the multipliers are quotients of doubles, of twice the scale and of the shifted scale,
# which are in float32. The kernels abort at multipliers of the operands that are not between 0 and 1, so at a scale of
# 0 or infinity. int16 with power-of-two scales and `pot_scale_int16` shifts one operand right instead.
# Sources: kernels/add.cc, kernels/sub.cc, kernels/mul.cc (Prepare), kernels/internal/quantization_util.cc
# (CheckedLog2).


@dataclass(frozen=True, slots=True)
class Addition:
    """ADD's and SUB's parameters: the shift of both operands, their multipliers, and that of the sum."""

    left_shift: int
    first: Multiplier
    second: Multiplier
    sum: Multiplier


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
    """The same for SQUARED_DIFFERENCE, which shifts by 7 and squares before the last multiplier.

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


def checked_log2(scale: float) -> int | None:
    """The exponent of a scale whose log2, in float32, is within a thousandth of an integer; else None."""
    if not 0 < scale < np.inf:
        return None
    f = np.float32
    log2 = float(f(math.log(f(scale))) * (f(1) / f(math.log(2))))
    exponent = round_half_away(log2)
    return exponent if abs(log2 - exponent) < 1e-3 else None


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
    """What the kernel compares, of stored integers less their zero point. ValueError as `comparison_multiplier`."""
    multiplier = comparison_multiplier(scale)
    if multiplier.shift > 0:
        return np.where(x < 0, -1, 1).astype(np.int32)
    return multiply((x.astype(np.int64) << LEFT_SHIFT).astype(np.int32), multiplier.mantissa, multiplier.shift)


def compared_one_by_one(x: np.ndarray, scale: float) -> np.ndarray:
    """The same by scalar code, which differs where it is `unsettled`. int64."""
    multiplier = comparison_multiplier(scale)
    if multiplier.shift <= 0:
        return compared(x, scale).astype(np.int64)
    high = multiply((x.astype(np.int64) << LEFT_SHIFT).astype(np.int32), multiplier.mantissa, 0)
    return divide_by_pot(high.astype(np.int64), -multiplier.shift)
