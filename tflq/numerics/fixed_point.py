"""Fixed-point multiplication by a real number, as TFLite's kernels do it.

A real multiplier is stored as `M * 2^(shift - 31)` with `2^30 <= |M| < 2^31` (`quantize_multiplier`).
Applying it to an int32 rounds twice (the default build of the kernels):

    v   = floor((x * 2^max(shift, 0) * M + 2^30) / 2^31)           saturating rounding doubling high multiply
    out = (v + 2^(e - 1) - [v < 0]) >> e        e = max(-shift, 0)  rounding divide by a power of two, half away

Any double has a `Multiplier`: 0, infinities and what is not a number are multiplied by as 0 (the conversion of an
infinity to int64 leaves nothing in the low 32 bits). From 2^31 on the left shift is 32 and more, undefined in C++
(`left_shift`).

TOSA's RESCALE with DOUBLE_ROUND is the same number for a total right shift of `31 - shift`: for x < 0 and e > 0 both
are floor((x*M + 2^(30+e) - 2^30) / 2^(31+e)), for x >= 0 floor((x*M + 2^(30+e) + 2^30) / 2^(31+e)).
An int64 accumulator (16x8 convolutions) is multiplied by the multiplier reduced to 16 bits and rounds once, half up.

Sources: kernels/internal/quantization_util.cc (QuantizeMultiplier), kernels/internal/common.cc
(MultiplyByQuantizedMultiplier), TOSA 1.0 specification, RESCALE.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tflq.numerics.x86 import divide_by_pot, left_shift

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "Multiplier",
    "left_shift",
    "multiply",
    "multiply_int64",
    "quantize_multiplier",
    "quantize_multipliers",
    "quotient",
    "reduce_to_16_bits",
    "require_defined",
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
    """The `Multiplier` of a double, as the kernels make it: the nearest; 0 if it needs a right shift above 31,
    and for what is infinite or not a number."""
    fraction, shift = math.frexp(real if math.isfinite(real) else 0)
    fixed = round_half_away(fraction * 2.0**31)
    if fixed == 1 << 31:
        fixed, shift = 1 << 30, shift + 1
    return Multiplier(fixed, shift) if fixed and shift >= -31 else Multiplier(0, 0)


def quantize_multipliers(reals: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """`quantize_multiplier` of an array: int32 mantissas and int32 left shifts. Source: QuantizeMultiplier."""
    reals = np.asarray(reals, np.float64)
    fraction, exponent = np.frexp(np.where(np.isfinite(reals), reals, 0))
    scaled = fraction * 2.0**31
    fixed = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled).astype(np.int64)  # exact: |scaled| < 2^52
    carry = fixed == 1 << 31  # of a negative multiplier -2^31 is kept: int32 holds it
    fixed = fixed >> carry
    shift = exponent + carry
    vanishing = (shift < -31) | (fixed == 0)
    if vanishing.any():
        fixed, shift = np.where(vanishing, 0, fixed), np.where(vanishing, 0, shift)
    return fixed.astype(np.int32), shift.astype(np.int32)


def require_defined(shifts: npt.ArrayLike) -> None:
    """ValueError if a left shift is more than an int32 has bits below its sign."""
    most = int(np.max(shifts, initial=0))
    if most > 30:
        raise ValueError(f"a multiplier of 2^{most - 1} or more needs a left shift of {most}, more than int32 holds")


def quotient(numerator: float, denominator: float) -> float:
    """A quotient of doubles, also by 0."""
    if denominator:
        return float(numerator) / float(denominator)
    with np.errstate(all="ignore"):
        return float(np.float64(numerator) / np.float64(denominator))


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
    """MultiplyByQuantizedMultiplier of an int32 array; mantissa and shift broadcast to it. The left shift wraps; shifts
    of more than 31 are as `tflq.numerics.x86` has them."""
    shift = np.asarray(shift, np.int64)
    left, right = left_shift(shift), np.maximum(-shift, 0)
    shifted = (x.astype(np.int64) << left).astype(np.int32)
    return divide_by_pot(saturating_rounding_doubling_high_mul(shifted, mantissa), right)


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
    wide = np.asarray(x, np.int64)
    m, s = np.asarray(multiplier, np.int64), np.asarray(shift, np.int64)
    twice = (s > 31) & (double_round and scale32)
    out = wide * m
    out += (np.int64(1) << (s - 1)) + np.where(twice, 1 << 30, 0)
    if twice.any():
        below = wide >> 63  # from the sign: 2^31 less below zero
        below <<= 31
        out += below if twice.all() else np.where(twice, below, 0)
    out >>= s
    return out


def round_half_away(x: float) -> int:
    """std::round of a finite double."""
    return math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1) if abs(x) < 2**52 else int(x)
