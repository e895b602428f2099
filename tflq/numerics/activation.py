"""Activation functions of the quantized kernels: clamp ranges, multipliers, HARD_SWISH.

A bounded activation is a clamp of stored values: each real bound f becomes `zero_point + round_half_away(f / scale)`,
the quotient in float32, within the storage type. Sources: kernels/kernel_util.cc (CalculateActivationRangeQuantized),
kernels/activations.cc (QuantizedReluX, LeakyReluPrepare, PreluPrepare, HardSwishPrepare),
kernels/internal/reference/hard_swish.h.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tflq.numerics.fixed_point import (
    Multiplier,
    quantize_multiplier,
    quantize_multipliers,
    round_half_away,
    rounding_divide_by_pot,
)

__all__ = [
    "BOUNDS",
    "Leaky",
    "activation_range",
    "float_ratio",
    "hard_swish_table",
    "integer_activation_range",
    "leaky_multipliers",
    "prelu_multipliers",
]

BOUNDS: dict[str, tuple[float | None, float | None]] = {
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}
"""Real bounds of the clamping activations. The quantized kernels disregard every other fused activation."""


def activation_range(activation: str, low: int, high: int, scale: float, zero_point: int) -> tuple[int, int]:
    """The stored values an activation clamps to, for a storage type of [low, high].

    ValueError if a bound is outside int32 at this scale, where the kernels refuse the model.
    """
    least, greatest = BOUNDS.get(activation, (None, None))
    if least is not None:
        low = max(low, zero_point + _stored(least, scale))
    if greatest is not None:
        high = min(high, zero_point + _stored(greatest, scale))
    return low, high


def _stored(real: float, scale: float) -> int:
    quotient = float(np.float32(real) / np.float32(scale))
    if abs(quotient) >= 2**31:
        raise ValueError(f"bound {real:g} is {quotient:.3g} steps of scale {scale:g}, more than int32 holds")
    return round_half_away(quotient)


def integer_activation_range(activation: str, low: int, high: int) -> tuple[int, int]:
    """The same for the int32 and int64 kernels, which know no scale: the bounds themselves."""
    least, greatest = BOUNDS.get(activation, (None, None))
    return low if least is None else int(least), high if greatest is None else int(greatest)


def float_ratio(numerator: float, denominator: float, *factors: float) -> float:
    """numerator * factors / denominator, each step in float32: a kernel's real multiplier."""
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
    """Multipliers input / output and |input * alpha / output|. ValueError if one is too large for a left shift."""
    identity = quantize_multiplier(float_ratio(input_scale, output_scale))
    mantissas, shifts = quantize_multipliers(np.asarray([float_ratio(input_scale, output_scale, alpha)]))
    return Leaky(identity, Multiplier(abs(int(mantissas[0])), int(shifts[0])), bool(mantissas[0] < 0))


def prelu_multipliers(input_scale: float, alpha_scale: float, output_scale: float) -> tuple[Multiplier, Multiplier]:
    """Multipliers input / output, and input * alpha / output. ValueError if one is too large for a left shift."""
    identity = quantize_multiplier(float_ratio(input_scale, output_scale))
    return identity, quantize_multiplier(float_ratio(input_scale, output_scale, alpha_scale))


def hard_swish_table(
    dtype: np.dtype, input_scale: float, input_zp: int, output_scale: float, output_zp: int
) -> np.ndarray:
    """HARD_SWISH of each value of an 8-bit `dtype`, smallest first. ValueError if the kernel refuses the scales.

    The kernel multiplies x on the output scale by a "reluish" factor, relu6(x + 3) / 6, in 16-bit fixed point
    (reference/hard_swish.h).
    """
    hires = np.float32(input_scale) * np.float32(1 / 128)
    to_output = quantize_multiplier(float_ratio(float(hires), output_scale))
    to_reluish = quantize_multiplier(float(hires / np.float32(np.float32(3.0) / np.float32(32768.0))))
    if to_output.shift > 0:
        raise ValueError(f"input scale / (128 * output scale) is {float(hires) / output_scale:.3g}, at least one")
    info = np.iinfo(dtype)
    x = (np.arange(info.min, info.max + 1) - input_zp) * 128
    preshift = _high_mul16(x, _to_16_bits(to_output))
    reluish = x
    if to_reluish.shift > 0:
        reluish = _saturate16(reluish << (to_reluish.shift - 1))
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
    """gemmlowp's RoundingDivideByPOT on int16: from an exponent of 16 on its mask is -1; it gives 1 or -1 for any x."""
    return rounding_divide_by_pot(x, exponent) if exponent < 16 else np.where(x < 0, -1, 1)


def _saturate16(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -(1 << 15), (1 << 15) - 1)
