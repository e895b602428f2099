"""Activations: clamps of stored values, multipliers, HARD_SWISH; SOFTMAX in fixed point, and the gates of recurrent
kernels.

Every real multiplier here is a quotient in float32, as the kernels have it. Where a kernel aborts or refuses a model, a
ValueError says why.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from tflq.numerics.fixed_point import (
    Multiplier,
    float_ratio,
    quantize_multiplier,
    round_half_away,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
    wrapped,
)
from tflq.numerics.unary import table_16bit

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
    """`activation_range` of RELU and its kin as operators of their own, which take any bound: `as_int32` of it."""
    least, greatest = (_steps(bound, scale) for bound in BOUNDS[activation])
    return _clamping(least, greatest, low, high, zero_point)


def real_range(activation: str, low: int, high: int, scale: float, zero_point: int) -> tuple[int, int]:
    """`activation_range` of the real bounds: one beyond the type does not clamp."""
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
    fits = abs(steps) < 2.0**31  # else the conversion gives the least integer
    moved = (int(steps) if fits else -(1 << 31)) + zero_point
    return moved if -(1 << 31) <= moved < 1 << 31 else int(wrapped(moved))


def integer_activation_range(activation: str, low: int, high: int) -> tuple[int, int]:
    """The clamp of the int32 and int64 kernels, which have no scale: the bounds themselves."""
    least, greatest = BOUNDS.get(activation, (None, None))
    return low if least is None else int(least), high if greatest is None else int(greatest)


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


# SOFTMAX in fixed point: the tables and constants of the reference kernels.
#
# 8 bits: for each difference d = x - max in -255..0, exp is computed once, in Q0.31, by the kernels' polynomial
# (`exponentials`), so it is a table of 256 entries; so is its contribution to the sum, in Q12.19. The reciprocal of the
# sum is three Newton steps from 48/17 - 32/17 * s, where s in [1/2, 1) is the sum shifted left to 31 bits: with r the
# reciprocal, in Q2.29,
#
#     r += 4 * (r * (1 - s * r))        every product round(a * b / 2^31)
#
# int16: two tables of 513 entries, interpolated: exp on [-10, 0] and 1 / (1 + x) on [0, 1].
#
# Sources: kernels/internal/reference/softmax.h, kernels/activations.cc (SoftmaxPrepare),
# kernels/internal/quantization_util.cc (PreprocessSoftmaxScaling, CalculateInputRadius), kernels/internal/common.h
# (GetReciprocal), gemmlowp fixedpoint/fixedpoint.h (exp_on_negative_values, one_over_one_plus_x_for_x_in_0_1).

ACCUMULATOR_BITS = 12
"""Integer bits of the sum of exponentials."""
NEWTON_OFFSET = 1515870810  # 48 / 17 in Q2.29
NEWTON_SLOPE = -1010580540  # -32 / 17 in Q2.29
NEWTON_ONE = 1 << 29
NEWTON_STEPS = 3

_INPUT_BITS = 5
_FRACTION_BITS = 31 - _INPUT_BITS
_EXP_OF_EIGHTH = 1895147668  # exp(-1/8) in Q0.31
_THIRD = 715827883
_EXP_OF_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)  # exp(-2^k), k = -2..4, in Q0.31


def exponentials(x: np.ndarray) -> np.ndarray:
    """exp of Q5.26 values up to 0 (int32), in Q0.31: a polynomial on [-1/4, 0), and one factor per bit above."""
    mul = saturating_rounding_doubling_high_mul
    quarter = np.int32(1 << (_FRACTION_BITS - 2))
    within = (x & (quarter - 1)) - quarter
    a = (within << _INPUT_BITS) + np.int32(1 << 28)
    square = mul(a, a)
    fourth = rounding_divide_by_pot(mul(square, square), 2)
    tail = rounding_divide_by_pot(mul(fourth + mul(square, a), _THIRD) + square, 1)
    eighth = np.asarray(_EXP_OF_EIGHTH, np.int32)
    result = eighth + mul(a + tail, eighth)
    remainder = within - x
    for k, factor in enumerate(_EXP_OF_POWERS, _FRACTION_BITS - 2):
        result = np.where(remainder & (1 << k), mul(result, factor), result)
    return np.where(x == 0, np.int32((1 << 31) - 1), result)


def difference_table(beta: float, input_scale: float) -> np.ndarray:
    """exp(beta * scale * d) in Q0.31 for d in -255..0; zero where the kernel leaves a difference out.

    ValueError if beta * scale is too small for the kernel.
    """
    rescaled, counted = _rescaled(beta, input_scale)
    return np.where(counted, exponentials(rescaled), 0).astype(np.int32)


def scaled_differences(beta: float, input_scale: float) -> np.ndarray:
    """beta * scale * d in Q5.26 for d in -255..0, at least -16, which also stands where the kernel leaves one out.

    ValueError as `difference_table`.
    """
    rescaled, counted = _rescaled(beta, input_scale)
    least = -(16 << _FRACTION_BITS)
    return np.where(counted, np.maximum(rescaled, least), least).astype(np.int32)


def _rescaled(beta: float, input_scale: float) -> tuple[np.ndarray, np.ndarray]:
    """beta * scale * d in Q5.26, int32, for d in -255..0, and whether the kernel counts that difference."""
    real = min(float(np.float32(beta)) * float(np.float32(input_scale)) * (1 << _FRACTION_BITS), 2.0**31 - 1.0)
    if real <= 1.0:
        raise ValueError(f"beta * input scale is {real / (1 << _FRACTION_BITS):.3g}, at most 2^-{_FRACTION_BITS}")
    fraction, left = math.frexp(real)
    mantissa = math.floor(fraction * 2.0**31 + 0.5)
    if mantissa == 1 << 31:
        mantissa, left = mantissa // 2, left + 1
    radius = math.floor(((1 << _INPUT_BITS) - 1) * 2.0 ** (31 - _INPUT_BITS) / 2.0**left)
    d = np.arange(-255, 1, dtype=np.int64)
    counted = d >= -radius
    return saturating_rounding_doubling_high_mul(np.where(counted, d, 0) << left, mantissa), counted


def multiplier_16bit(beta: float, input_scale: float) -> Multiplier:
    """The multiplier of int16 differences by which -65535 is -10. ValueError if it is too large for a left shift."""
    return quantize_multiplier(float(np.float32(input_scale) * np.float32(beta)) / (10.0 / 65535.0))


def exp_table_16bit() -> np.ndarray:
    """exp on [-10, 0], 513 entries in Q0.15."""
    return table_16bit(np.exp, 10.0 / 65535, 32767, 2.0 / 65535, 0)


def reciprocal_table_16bit() -> np.ndarray:
    """1 / (1 + x) on [0, 1], 513 entries in Q0.15."""
    return table_16bit(lambda x: 1.0 / (1.0 + x), 1.0 / 65535, -32768, 2.0 / 65535, 0)


# LOGISTIC and TANH of the recurrent kernels: gemmlowp's fixed point in 16 bits, as tables of every int16.
#
# The argument has a number of integer bits (Qk.(15-k)), the result has none (Q0.15). exp of a value x <= 0 is a
# polynomial on [-1/4, 0), times exp(-2^k) for each bit that x has above; 1 / (1 + e) and (1 - e) / (1 + e) are three
# Newton steps from 48/17 - 32/17 * (1 + e) / 2, in Q2.13. Sums wrap in 16 bits; products are round(a * b / 2^15). The
# constants are those of SOFTMAX, rounded to 16 bits.
#
# Sources: kernels/internal/reference/portable_tensor_utils.cc (PortableApplySigmoid, PortableApplyTanh), gemmlowp
# fixedpoint/fixedpoint.h (logistic, tanh and what they call, for int16).

LOGISTIC_BITS = 3
"""Integer bits of a gate before its activation."""
_ONE = 32767  # in Q0.15


def _in_16_bits(q31: int) -> int:
    return int(rounding_divide_by_pot(np.asarray(q31, np.int32), 16))


def _wrapped16(x: np.ndarray) -> np.ndarray:
    """int32 values modulo 2^16, signed."""
    return x.astype(np.int16).astype(np.int32)


def _product(a: np.ndarray, b: np.ndarray | int) -> np.ndarray:
    return np.minimum((a * b + (1 << 14)) >> 15, 32767)


def _saturated16(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -32768, 32767)


def _exponential(x: np.ndarray, bits: int) -> np.ndarray:
    """exp of x <= 0 with that many integer bits, in Q0.15."""
    fraction = 15 - bits
    quarter = 1 << (fraction - 2)
    within = (x & (quarter - 1)) - quarter
    a = (within << bits) + (1 << 12)
    square = _product(a, a)
    fourth = rounding_divide_by_pot(_product(square, square), 2)
    tail = rounding_divide_by_pot(_product(fourth + _product(square, a), _in_16_bits(_THIRD)) + square, 1)
    eighth = _in_16_bits(_EXP_OF_EIGHTH)
    result = _saturated16(eighth + _product(_wrapped16(a + tail), eighth))
    remainder = _wrapped16(within - x)
    for k, factor in zip(range(-2, bits), _EXP_OF_POWERS, strict=False):
        result = np.where(remainder & (1 << (fraction + k)), _product(result, _in_16_bits(factor)), result)
    if bits > 5:
        result = np.where(x < -(1 << (20 - bits)), 0, result)
    return np.where(x == 0, _ONE, result)


def _newton(e: np.ndarray) -> np.ndarray:
    """2 / (1 + e) for e in Q0.15, in Q2.13."""
    half = (e + _ONE + 1) >> 1
    x = _wrapped16(_in_16_bits(NEWTON_OFFSET) + _product(half, _in_16_bits(NEWTON_SLOPE)))
    for _ in range(NEWTON_STEPS):
        rest = _wrapped16((NEWTON_ONE >> 16) - _product(half, x))
        x = _wrapped16(x + _saturated16(_product(x, rest) << 2))
    return x


@cache
def logistic_table() -> np.ndarray:
    """1 / (1 + exp(-x)) in Q0.15 of every x in Q3.12, the least first."""
    x = np.arange(-32768, 32768, dtype=np.int32)
    positive = _saturated16(_newton(_exponential(-np.abs(x), LOGISTIC_BITS)) << 1)
    negative = _ONE - positive
    return np.where(x == 0, 1 << 14, np.where(x > 0, positive, negative)).astype(np.int16)


@cache
def tanh_table(bits: int) -> np.ndarray:
    """tanh(x) in Q0.15 of every x with that many integer bits, 0 to 6, the least first."""
    if not 0 <= bits <= 6:
        raise ValueError(f"TANH of {bits} integer bits: the kernels have 0 to 6")
    x = np.arange(-32768, 32768, dtype=np.int32)
    e = _exponential(-np.abs(x), bits + 1)
    magnitude = _saturated16(_wrapped16(_newton(e) - (NEWTON_ONE >> 16)) << 2)
    return np.where(x == 0, 0, np.where(x < 0, _wrapped16(-magnitude), magnitude)).astype(np.int16)
