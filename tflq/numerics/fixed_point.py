"""Fixed-point multiplication by a real number, as TFLite's kernels do it.

A positive real multiplier is stored as `M * 2^(shift - 31)` with `2^30 <= M < 2^31` (`quantize_multiplier`).
Applying it to an int32 rounds twice (the default build of the kernels):

    v   = floor((x * 2^max(shift, 0) * M + 2^30) / 2^31)           saturating rounding doubling high multiply
    out = (v + 2^(e - 1) - [v < 0]) >> e        e = max(-shift, 0)  rounding divide by a power of two, half away

TOSA's RESCALE with DOUBLE_ROUND is the same number for a total right shift of `31 - shift`: for x < 0 and e > 0 both
are floor((x*M + 2^(30+e) - 2^30) / 2^(31+e)), for x >= 0 floor((x*M + 2^(30+e) + 2^30) / 2^(31+e)).
An int64 accumulator (16x8 convolutions) is multiplied by the multiplier reduced to 16 bits and rounds once, half up.

Sources: kernels/internal/quantization_util.cc (QuantizeMultiplier), kernels/internal/common.cc
(MultiplyByQuantizedMultiplier), TOSA 1.0 specification, RESCALE.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "Multiplier",
    "multiply",
    "multiply_int64",
    "quantize_multiplier",
    "quantize_multipliers",
    "reduce_to_16_bits",
    "rescale",
    "round_half_away",
    "rounding_divide_by_pot",
    "saturating_rounding_doubling_high_mul",
]


class Multiplier(NamedTuple):
    """A real multiplier `mantissa * 2^(shift - 31)`; `shift` is positive to the left."""

    mantissa: int
    shift: int


def quantize_multiplier(real: float) -> Multiplier:
    """The nearest `Multiplier` of a non-negative double. ValueError if it is too large for a left shift in int32.

    A multiplier that would need a right shift of more than 31 is zero, as in the kernels.
    """
    mantissas, shifts = quantize_multipliers(np.asarray([real], np.float64))
    return Multiplier(int(mantissas[0]), int(shifts[0]))


def quantize_multipliers(reals: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """`quantize_multiplier` of an array: int32 mantissas and int32 left shifts. Source: QuantizeMultiplier."""
    reals = np.asarray(reals, np.float64)
    fraction, exponent = np.frexp(reals)
    scaled = fraction * 2.0**31
    fixed = (np.sign(scaled) * np.floor(np.abs(scaled) + 0.5)).astype(np.int64)  # exact: |scaled| < 2^52
    carry = np.abs(fixed) == 1 << 31
    fixed = np.where(carry, fixed // 2, fixed)
    shift = exponent.astype(np.int32) + carry
    vanishing = (shift < -31) | (reals == 0)
    fixed, shift = np.where(vanishing, 0, fixed), np.where(vanishing, 0, shift)
    if (shift > 30).any():
        raise ValueError(
            f"multiplier {float(reals.max())!r} needs a left shift of {int(shift.max())}, more than int32 holds"
        )
    return fixed.astype(np.int32), shift.astype(np.int32)


def saturating_rounding_doubling_high_mul(a: np.ndarray, b: npt.ArrayLike) -> np.ndarray:
    """round(a * b / 2^31) of int32 arrays, half up; the one overflow (INT_MIN squared) saturates."""
    product = a.astype(np.int64) * np.asarray(b, np.int64)
    return np.minimum((product + (1 << 30)) >> 31, (1 << 31) - 1).astype(np.int32)


def rounding_divide_by_pot(x: np.ndarray, exponent: npt.ArrayLike) -> np.ndarray:
    """round(x / 2^exponent) of an integer array, half away from zero; the dtype stays."""
    wide, e = x.astype(np.int64), np.asarray(exponent, np.int64)
    half = np.where(e > 0, np.int64(1) << np.maximum(e - 1, 0), 0)
    return ((wide + half - ((wide < 0) & (e > 0))) >> e).astype(x.dtype)


def multiply(x: np.ndarray, mantissa: npt.ArrayLike, shift: npt.ArrayLike) -> np.ndarray:
    """MultiplyByQuantizedMultiplier of an int32 array; mantissa and shift broadcast to it. The left shift wraps."""
    shift = np.asarray(shift, np.int64)
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    shifted = (x.astype(np.int64) << left).astype(np.int32)
    return rounding_divide_by_pot(saturating_rounding_doubling_high_mul(shifted, mantissa), right)


def reduce_to_16_bits(mantissa: npt.ArrayLike) -> np.ndarray:
    """The 16-bit mantissa an int64 accumulator is multiplied by: (M + 2^15) >> 16, saturated to 2^15 - 1."""
    wide = np.asarray(mantissa, np.int64)
    return np.where(wide < 0x7FFF0000, (wide + (1 << 15)) >> 16, 0x7FFF)


def multiply_int64(x: np.ndarray, mantissa: npt.ArrayLike, shift: npt.ArrayLike) -> np.ndarray:
    """MultiplyByQuantizedMultiplier of an int64 array within 48 bits: one rounding, half up, to int32."""
    total = 15 - np.asarray(shift, np.int64)
    return ((x * reduce_to_16_bits(mantissa) + (np.int64(1) << (total - 1))) >> total).astype(np.int32)


def rescale(
    x: np.ndarray, multiplier: npt.ArrayLike, shift: npt.ArrayLike, *, double_round: bool = True, scale32: bool = True
) -> np.ndarray:
    """TOSA's apply_scale of an integer array: int64 result of (x * multiplier + round) >> shift, shift in 2..62.

    `scale32`: 32-bit multiplier and int32 values; else a 16-bit multiplier and 48-bit values.
    """
    wide = x.astype(np.int64)
    m, s = np.asarray(multiplier, np.int64), np.asarray(shift, np.int64)
    out = wide * m
    out += np.int64(1) << (s - 1)
    if double_round and scale32 and (s > 31).any():
        wide >>= 63  # from the sign: 2^30, or -2^30 below zero
        wide <<= 31
        wide += 1 << 30
        out += wide if (s > 31).all() else np.where(s > 31, wide, 0)
    out >>= s
    return out


def round_half_away(x: float) -> int:
    """std::round of a finite double."""
    return math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1) if abs(x) < 2**52 else int(x)
