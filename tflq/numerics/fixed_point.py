"""Fixed-point multiplication by a real number, as TFLite's kernels do it.

A real multiplier is stored as `M * 2^(shift - 31)` with `2^30 <= |M| < 2^31` (`quantize_multiplier`).
Applying it to an int32 rounds twice (the default build of the kernels):

    v   = floor((x * 2^max(shift, 0) * M + 2^30) / 2^31)           saturating rounding doubling high multiply
    out = (v + 2^(e - 1) - [v < 0]) >> e        e = max(-shift, 0)  rounding divide by a power of two, half away

Every double has a `Multiplier`: infinities and NaN count as 0 (an infinity converted to int64 leaves nothing in the
low 32 bits). From 2^31 on the left shift is 32 or more, which C++ leaves undefined.

TOSA's RESCALE with DOUBLE_ROUND gives the same for a total right shift of `31 - shift`: for x < 0 and e > 0 both
are floor((x*M + 2^(30+e) - 2^30) / 2^(31+e)), for x >= 0 floor((x*M + 2^(30+e) + 2^30) / 2^(31+e)).
An int64 accumulator (16x8 convolutions) is multiplied by the multiplier reduced to 16 bits and rounds once, half up.

Sources: kernels/internal/quantization_util.cc (QuantizeMultiplier), kernels/internal/common.cc
(MultiplyByQuantizedMultiplier), TOSA 1.0 specification, RESCALE.

What C++ leaves undefined is here what compiled kernels do on x86-64: shift counts are taken modulo the register's size,
a float that int32 does not hold becomes -2^31, and sums and products in int32 keep their low 32 bits. BUILTIN_REF of
ai-edge-litert 2.1.6 and 2.3.0 and of tensorflow-cpu 2.20 and 2.21 agree on it (docs/exceptions.md; measured for
multipliers from 2^-40 to 2^127).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


# Rounding to integers.
#
#     half_away     to nearest, halves away from zero      half_up       to nearest, halves up
#     half_even     to nearest, halves to even             toward_zero   the integer part
#
# With h the half bit and "sticky" the bits below it, each is floor plus one where
#
#     half_up  h      half_away  h and (sticky or not negative)      half_even  h and (sticky or odd)
#     toward_zero  negative and (h or sticky)

Rounding: TypeAlias = Literal["half_away", "half_up", "half_even", "toward_zero"]
ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)

LIMB = 15
"""Bits of a limb: the product of RESCALE has up to 63 bits, and in five limbs int32 holds every step."""


def limbs(multiplier: npt.ArrayLike) -> list[np.ndarray]:
    """Three limbs of int32s, the lowest first; the last one is signed."""
    m = np.asarray(multiplier, np.int64)
    mask = (1 << LIMB) - 1
    return [m & mask, m >> LIMB & mask, m >> 2 * LIMB]


def rescale_rounded(x: np.ndarray, multiplier: npt.ArrayLike, shift: npt.ArrayLike, rounding: Rounding) -> np.ndarray:
    """int64 x * multiplier / 2^shift of int32 values and multipliers (or 48-bit ones and 16-bit multipliers), rounded
    once; shift from 1 to 62."""
    s = np.asarray(shift, np.int64)
    product = x.astype(np.int64) * np.asarray(multiplier, np.int64)
    whole = product >> s
    half = product >> (s - 1) & 1
    sticky = (product & ((np.int64(1) << (s - 1)) - 1)) != 0
    negative = product < 0
    up = {
        "half_up": half,
        "half_away": half & (sticky | ~negative),
        "half_even": half & (sticky | (whole & 1)),
        "toward_zero": negative & (half | sticky),
    }[rounding]
    return whole + up


def round_float(x: np.ndarray, rounding: Rounding) -> np.ndarray:
    """Floats rounded to integers, in their precision."""
    if rounding == "toward_zero":
        return np.trunc(x)
    if rounding == "half_away":
        return half_away(x)
    even = np.rint(x)
    if rounding == "half_even":
        return even
    with np.errstate(invalid="ignore"):
        up = x - even == 0.5  # the difference is exact
    return even + np.where(up, x.dtype.type(1), 0)


def half_away(x: np.ndarray) -> np.ndarray:
    """Floats rounded to nearest, half away from zero, in their precision. Zeros keep their sign."""
    whole = np.trunc(x)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def truncated_quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The quotient of integers of one type, rounded toward zero; by 0 it is not defined."""
    with np.errstate(all="ignore"):
        return (a - np.fmod(a, b)) // b


def saturated(x: npt.ArrayLike, low: int, high: int) -> np.ndarray:
    """Floats without their fractions, within bounds of up to 64 bits: int64, or uint64 if `high` is beyond that. NaN
    is 0."""
    whole = np.trunc(np.asarray(x, np.float64))
    wide: type[np.int64 | np.uint64] = np.int64 if high < 1 << 63 else np.uint64
    above = whole >= float(high + 1)
    inside = np.where((whole >= low) & ~above, whole, 0).astype(wide)
    return np.where(above, wide(high), np.where(whole < low, wide(low), inside))


# What x86-64 does where C++ leaves it undefined.

LANES = 4
"""Elements that a loop over int32 handles at once; the rest at its end is handled one by one."""


def left_shift(shift: npt.ArrayLike) -> np.ndarray:
    """The bits by which an int32 is shifted left: modulo 32, and 0 for right shifts."""
    return np.maximum(np.asarray(shift, np.int64), 0) & 31


def divide_by_pot(x: np.ndarray, exponent: npt.ArrayLike) -> np.ndarray:
    """RoundingDivideByPOT of integers within int32 by any exponent, element by element; the dtype stays.

    From 0 to 31 it is `rounding_divide_by_pot`. Beyond that the shift counts modulo 32, and the mask of the remainder
    modulo 64: from 32 to 63 all of x is remainder, which adds one from 0 up.
    """
    e = np.asarray(exponent, np.int64) & 63
    bits = e & 31
    masked = (x.astype(np.int64) >> bits) + (x >= 0)
    return np.where(e & 32, masked, rounding_divide_by_pot(x, bits)).astype(x.dtype)


def as_int32(x: npt.ArrayLike) -> np.ndarray:
    """Floats cast to int32, as int64."""
    values = np.asarray(x, np.float64)
    fits = (values > -(2.0**31) - 1) & (values < 2.0**31)
    return np.where(fits, np.trunc(np.where(fits, values, 0)), -(2.0**31)).astype(np.int64)


def wrapped(x: npt.ArrayLike) -> np.ndarray:
    """The low 32 bits of int64s, signed, as int64."""
    return np.asarray(x, np.int64).astype(np.int32).astype(np.int64)


# Multipliers, and the kernels' multiplication by them.


class Multiplier(NamedTuple):
    """A real multiplier `mantissa * 2^(shift - 31)`; `shift` is positive to the left."""

    mantissa: int
    shift: int


def round_half_away(x: float) -> int:
    """std::round of a finite double."""
    return math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1) if abs(x) < 2**52 else int(x)


def quantize_multiplier(real: float) -> Multiplier:
    """The `Multiplier` nearest to a double, as the kernels make it: 0 if it needs a right shift above 31, and for
    infinities and NaN."""
    fraction, shift = math.frexp(real if math.isfinite(real) else 0)
    fixed = round_half_away(fraction * 2.0**31)
    if fixed == 1 << 31:
        fixed, shift = 1 << 30, shift + 1
    return Multiplier(fixed, shift) if fixed and shift >= -31 else Multiplier(0, 0)


def quantize_multipliers(reals: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """`quantize_multiplier` of an array: int32 mantissas and int32 left shifts. Source: QuantizeMultiplier."""
    reals = np.asarray(reals, np.float64)
    if reals.size == 1:  # numpy takes twenty times as long
        mantissa, left = quantize_multiplier(reals.item())
        return np.full(reals.shape, mantissa, np.int32), np.full(reals.shape, left, np.int32)
    finite = np.isfinite(reals)
    fraction, shift = np.frexp(reals if finite.all() else np.where(finite, reals, 0))
    scaled = fraction * 2.0**31
    fixed = (scaled + np.copysign(0.5, scaled)).astype(np.int64)  # exact: |scaled| < 2^52
    carry = fixed == 1 << 31  # -2^31 stays: int32 holds it
    if carry.any():
        fixed, shift = fixed >> carry, shift + carry
    if not fixed.all() or (shift < -31).any():
        vanishing = (shift < -31) | (fixed == 0)
        fixed, shift = np.where(vanishing, 0, fixed), np.where(vanishing, 0, shift)
    return fixed.astype(np.int32), shift.astype(np.int32)


def quotient(numerator: float, denominator: float) -> float:
    """A quotient of doubles; by 0 it is infinite or NaN."""
    if denominator:
        return float(numerator) / float(denominator)
    with np.errstate(all="ignore"):
        return float(np.float64(numerator) / np.float64(denominator))


def float_ratio(numerator: float, denominator: float, *factors: float) -> float:
    """numerator * factors / denominator, each step in float32: a kernel's real multiplier."""
    with np.errstate(all="ignore"):
        product = np.float32(numerator)
        for factor in factors:
            product = np.float32(product * np.float32(factor))
        return float(product / np.float32(denominator))


def checked_log2(scale: float) -> int | None:
    """The exponent of a scale whose log2, in float32, is within a thousandth of an integer; else None."""
    if not 0 < scale < np.inf:
        return None
    f = np.float32
    log2 = float(f(math.log(f(scale))) * (f(1) / f(math.log(2))))
    exponent = round_half_away(log2)
    return exponent if abs(log2 - exponent) < 1e-3 else None


def ratio_multiplier(input_scale: float, output_scale: float) -> Multiplier:
    """input / output of float32 scales, in double: of QUANTIZE between integers and of SUM.

    Sources: kernels/quantize.cc (Prepare), kernels/reduce.cc (PrepareMeanOrSum).
    """
    return quantize_multiplier(quotient(input_scale, output_scale))


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
    left, right = left_shift(shift), np.maximum(-shift, 0)
    shifted = (x.astype(np.int64) << left).astype(np.int32)
    return divide_by_pot(saturating_rounding_doubling_high_mul(shifted, mantissa), right)


def reduce_to_16_bits(mantissa: npt.ArrayLike) -> np.ndarray:
    """The 16-bit mantissa an int64 accumulator is multiplied by: (M + 2^15) >> 16, saturated to 2^15 - 1."""
    wide = np.asarray(mantissa, np.int64)
    return np.where(wide < 0x7FFF0000, (wide + (1 << 15)) >> 16, 0x7FFF)


def rescale(x: np.ndarray, multiplier: npt.ArrayLike, shift: npt.ArrayLike, *, double_round: bool = True) -> np.ndarray:
    """TOSA's apply_scale of an integer array: int64 result of (x * multiplier + round) >> shift, shift in 2..62.

    Of 48-bit values, which have a 16-bit multiplier, it rounds once.
    """
    wide = np.asarray(x, np.int64)
    m: Any = np.asarray(multiplier, np.int64)
    s: Any = np.asarray(shift, np.int64)
    if wide.ndim and m.size == s.size == 1:
        m, s = m.item(), s.item()  # with which numpy takes half of the time, where elements are few
    twice = (s > 31) & double_round
    out = wide * m
    out += np.int64(1) << (s - 1)
    if np.any(twice):
        second = (wide & -(1 << 31)) + (1 << 30)  # int32 values have the bits of the sign from 2^31 on
        out += second if np.all(twice) else np.where(twice, second, 0)
    out >>= s
    return out


# Scaling where the arithmetic leaves its types.
#
#     int32     x * 2^left wraps; what is then scaled by M / 2^31 wraps where the zero point is added
#     int64     the low 32 bits of (x * m + 2^((t - 1) mod 64)) >> (t mod 64), t = 15 - left, m the multiplier reduced
#               to 16 bits; product and sum wrap
#     float64   a quotient that int32 does not hold is -2^31, which wraps where the zero point is added
#
# Sources: kernels/internal/common.cc (MultiplyByQuantizedMultiplier), internal/reference/integer_ops/fully_connected.h.

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
    """Whether int32 sums of [low, high], shifted left, can leave int32: bool [C] or [1], operands int [C]."""
    if left.max(initial=0) <= 0 and low.min(initial=0) >= -_I31 and high.max(initial=0) < _I31:
        return np.zeros(1, bool)
    far = (left > 31) & ((low != 0) | (high != 0))
    places = np.clip(left, 0, 31).astype(np.int64)
    beyond = (low.astype(np.int64) << places < -_I31) | (high.astype(np.int64) << places >= _I31)
    return (mantissa != 0) & (far | beyond)


def leaves_float(scale: npt.ArrayLike, zero_point: int) -> np.ndarray:
    """The least magnitude of a sum, int64 [C], at which round_half_away(double(x) * scale) + zero_point leaves
    int32. It is on the side where the kernel then gives the other end: above 0 for a zero point from 0 up, else
    below 0.

    2^63 - 1 where no sum does; 0 for a scale that is infinite or NaN, with which all do.
    """
    d = np.atleast_1d(np.asarray(scale, np.float64))
    bound = _I31 - zero_point - 0.5 if zero_point >= 0 else _I31 + zero_point + 0.5
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        near = bound / d  # up to roundings, which are less than 2^-50 of it
        ends = np.stack([near * (1 - 2.0**-50) - 2, near * (1 + 2.0**-50) + 2])
        whole = np.where((ends > 0) & (ends < _I63), ends, 0).astype(np.int64)
        low, high = np.where(ends >= _I63, _I63 - 1, whole)
        while (low < high).any():
            middle = low + ((high - low) >> 1)
            inside = middle.astype(np.float64) * d < bound
            low, high = np.where(inside, np.minimum(middle, high - 1) + 1, low), np.where(inside, high, middle)
    return high


# The same real value under other parameters.


def requantize_table(dtype: np.dtype, scale_in: float, zero_in: int, scale_out: float, zero_out: int) -> np.ndarray:
    """CONCATENATION's requantized value of each of the 256 values of an 8-bit `dtype`, smallest first.

        stored = clamp(round_half_away(float32(q) * s + bias) + zero_point_out)
        s = scale_in * (1 / scale_out), bias = -zero_point_in * s

    all in float32, then int32. Source: kernels/internal/reference/concatenation.h (ConcatenationWithScaling).
    """
    info = np.iinfo(dtype)
    f = np.float32
    with np.errstate(all="ignore"):
        scale = f(scale_in) * (f(1) / f(scale_out))
        bias = f(-zero_in) * scale
        real = np.arange(info.min, info.max + 1).astype(f) * scale + bias
        rounded = half_away(real)
    return np.clip(wrapped(as_int32(rounded) + zero_out), info.min, info.max).astype(dtype)


def rescaled_table(dtype: np.dtype, scale_in: float, zero_in: int, scale_out: float, zero_out: int) -> np.ndarray:
    """The stored value of the same real value for each value of an 8- or 16-bit `dtype`, smallest first. It is
    rounded half away from zero and clamped."""
    info = np.iinfo(dtype)
    ratio = quotient(scale_in, scale_out)
    steps = np.arange(info.min, info.max + 1) - zero_in
    with np.errstate(invalid="ignore"):
        real = np.where((steps == 0) | (ratio != ratio), 0.0, steps * ratio)
    rounded = np.sign(real) * np.floor(np.abs(real) + 0.5)
    return np.clip(rounded + zero_out, info.min, info.max).astype(dtype)


def rescaled_value(stored: int, scale_in: float, zero_in: int, scale_out: float, zero_out: int) -> int:
    """The stored value of the same real value under other parameters, rounded half away from zero, not clamped."""
    counts = quotient((stored - zero_in) * scale_in, scale_out)
    if counts != counts:
        return zero_out
    return (round_half_away(counts) if abs(counts) < 2.0**53 else int(np.sign(counts)) << 53) + zero_out
