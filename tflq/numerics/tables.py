"""Lookup tables of functions, filled as the kernels fill them: in float32, with the C library's functions.

    8-bit    table[q] = clamp(round(f(scale_in * (q - zero_in)) * (1 / scale_out)) + zero_out), halves away from zero;
             beyond int32, uint8 has 0 (`as_int32`, then clamped); where f is NaN, both have 0
    int16    513 entries of f at steps of 128, interpolated; each lowered by half the error of its step's middle
    sigmoid  256 entries at steps of 1/24, for the int16 LOGISTIC and TANH

The C library's float32 functions are accurate to about half a unit in the last place, as is a double rounded to that.
Sources: kernels/internal/common.h (LUTPopulate, sigmoid_table_uint16), kernels/activations.cc (SigmoidPrepare,
TanhPrepare).

At the end: tables of real functions, for operators that no kernel computes on stored integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tflq.light import NamedTuple
from tflq.numerics.elementwise import checked_log2
from tflq.numerics.fixed_point import as_int32, half_away, wrapped

if TYPE_CHECKING:
    import numpy.typing as npt


FloatFunction: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""A function of a floating point array, in its precision."""


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) of a float32 array, each step in float32."""
    one = np.float32(1)
    with np.errstate(over="ignore"):
        return one / (one + np.exp(-x.astype(np.float64)).astype(np.float32))


def tanh(x: np.ndarray) -> np.ndarray:
    """tanh of a float32 array."""
    return np.tanh(x.astype(np.float64)).astype(np.float32)


def table_8bit(
    function: FloatFunction, dtype: np.dtype, input_scale: float, input_zp: int, output_scale: float, output_zp: int
) -> np.ndarray:
    """The table of an 8-bit `dtype`, entry of the smallest value first."""
    info = np.iinfo(dtype)
    with np.errstate(all="ignore"):
        inverse = np.float32(1) / np.float32(output_scale)
        x = np.float32(input_scale) * (np.arange(info.min, info.max + 1) - input_zp).astype(np.float32)
        rescaled = half_away(function(x) * inverse) + np.float32(output_zp)
    if info.min:  # clamped as floats
        whole = np.where(np.isnan(rescaled), 0, np.clip(rescaled, info.min, info.max))
    else:
        whole = np.clip(as_int32(rescaled), 0, info.max)
    return whole.astype(dtype)


def table_16bit(
    function: FloatFunction,
    input_scale: float,
    input_zp: int,
    output_scale: float,
    output_zp: int,
    precision: type[np.floating] = np.float64,
) -> np.ndarray:
    """The 513 entries of an int16 table: the function at every 128th int16, the last one after the greatest."""
    f = precision
    i = np.arange(512).astype(f)
    with np.errstate(all="ignore"):
        low, high = f(input_scale) * f(-32768 - input_zp), f(input_scale) * f(32767 - input_zp)
        out_low, out_high = f(output_scale) * f(-32768 - output_zp), f(output_scale) * f(32767 - output_zp)
        inverse = f(65536) / (out_high - out_low)
        step = (high - low) / f(512)
        here, middle = function(low + i * step), function(low + i * step + step / f(2))
        after = function(low + (i + f(1)) * step)
        sample = half_away(here * inverse)
        error = half_away((after * inverse + sample) / f(2)) - half_away(middle * inverse)
        entries = np.append(sample - half_away(error / f(2)), half_away(function(np.asarray([high], f)) * inverse))
    entries = np.where(np.isnan(entries), 0, entries)  # the low half of what NaN converts to
    return np.clip(entries, -32768, 32767).astype(np.int16)


def sigmoid_table() -> np.ndarray:
    """65536 * sigmoid(k / 24), k in 0..255, plus half the error of interpolating a step's middle; ends at 65535."""
    k = np.arange(256)

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 65536 / (1 + np.exp(-x / 24))

    error = sigmoid(k + 0.5) - (sigmoid(k) + sigmoid(k + 1)) / 2
    entries = np.rint(sigmoid(k) + error / 2).astype(np.int32)
    entries[-1] = 65535
    return entries


def sigmoid_input_scaling(input_scale: float, exact_exponents: tuple[int, ...]) -> tuple[int, int]:
    """Multiplier and rounding right shift that bring an int16 to steps of 1 / (3 * 4096).

    Scales 2^-12 * 2^e with e in `exact_exponents` are exact. A scale so small that no multiplier is left counts as one
    of them, whose shift leaves int32; a multiplier that int32 does not hold is -2^31.
    """
    exponent = checked_log2(input_scale)
    if exponent is not None and exponent + 12 in exact_exponents:
        return 3 << (exponent + 12), 0
    multiplier, shift = input_scale * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and shift <= 30:
        multiplier, shift = multiplier * 2.0, shift + 1
    mantissa = int(as_int32(multiplier))
    return (mantissa, shift) if mantissa else (int(wrapped(3 << shift)), 0)


def sigmoid_16bit_table(multiplier: int, shift: int, *, hyperbolic: bool) -> np.ndarray:
    """int16 LOGISTIC, or TANH if `hyperbolic`, of every int16, smallest first, for any multiplier: int32 wraps."""
    half = 1 << (shift - 1) if shift else 0
    x = wrapped(np.arange(-32768, 32768) * np.int64(multiplier) + half) >> shift
    bits = 8 if hyperbolic else 9
    magnitude = np.abs(x)
    entry = np.minimum(magnitude >> bits, 255)
    entries = np.append(sigmoid_table(), 0).astype(np.int64)
    between = (entries[entry] << bits) + (magnitude & ((1 << bits) - 1)) * (entries[entry + 1] - entries[entry])
    y = np.where(entry == 255, (0xFFFF if hyperbolic else 0x7FFF << 1) << bits, between)
    if hyperbolic:
        whole = np.where(x >= 0, y - (1 << 23), -y + (1 << 23) - 1) + (1 << 7)
        return (whole >> 8).astype(np.int16)
    whole = np.where(x >= 0, y, (1 << 25) - y - 1) + (1 << 9)
    return (whole >> 10).astype(np.int16)


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted distinct elements of an array, and for each element (flattened) its index among them.

    `numpy.unique` with its inverse does the same, but its first call imports numpy.ma (20 ms).
    """
    flat = values.reshape(-1)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    first = np.ones(flat.shape, bool)
    first[1:] = ordered[1:] != ordered[:-1]
    inverse = np.empty(flat.shape, np.intp)
    inverse[order] = np.cumsum(first) - 1
    return ordered[first], inverse


# Real functions of one stored value, or of two of 8 bits, for operators that no kernel computes on them.
#
#     clamp(round_half_away(f(scale_1 * (q_1 - zero_1), scale_2 * (q_2 - zero_2)) / scale) + zero)
#
# The operands are rounded to float32, as DEQUANTIZE does. Where f has no value, the zero point.

RealFunction: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]

REAL_FUNCTIONS_OF_TWO: dict[str, RealFunction] = {
    "ATAN2": np.arctan2,
    "POW": np.power,
    "SQUARED_DIFFERENCE": lambda x, y: np.square(x - y),
}
"""By TFLite's name, in double."""


class Stored(NamedTuple):
    """How real numbers are stored in 8 bits."""

    dtype: np.dtype
    scale: float
    zero_point: int


def real_table_of_two(function: RealFunction, first: Stored, second: Stored, result: Stored) -> np.ndarray:
    """[256, 256]: the stored result of every pair of stored values, smallest first."""
    x, y = _values(*first)[:, None], _values(*second)[None]
    with np.errstate(all="ignore"):
        return _stored(function(x, y) / result.scale, result.zero_point, result.dtype)


def real_table(
    function: FloatFunction,
    dtype: np.dtype,
    input_scale: npt.ArrayLike,
    input_zp: npt.ArrayLike,
    output_scale: npt.ArrayLike,
    output_zp: npt.ArrayLike,
    result: np.dtype | None = None,
) -> np.ndarray:
    """The stored result, of the operand's dtype or another, of every value of an integer type, smallest first. Arrays
    of parameters, their last dim 1, give a table for each set."""
    with np.errstate(all="ignore"):
        y = function(_values(dtype, input_scale, input_zp)) / np.asarray(output_scale, np.float64)
    return _stored(y, output_zp, dtype if result is None else result)


def _values(dtype: np.dtype, scale: npt.ArrayLike, zero_point: npt.ArrayLike) -> np.ndarray:
    """What every value of an integer type stands for, in double."""
    info = np.iinfo(dtype)
    whole = (np.arange(info.min, info.max + 1) - np.asarray(zero_point)).astype(np.float32)
    return (np.asarray(scale, np.float32) * whole).astype(np.float64)


def _stored(counts: np.ndarray, zero_point: npt.ArrayLike, dtype: np.dtype) -> np.ndarray:
    """Real numbers in steps of the scale, rounded half away from zero, plus the zero point, clamped."""
    bounded = np.clip(np.nan_to_num(counts, nan=0.0, posinf=np.inf, neginf=-np.inf), -(2.0**32), 2.0**32)
    rounded = np.sign(bounded) * np.floor(np.abs(bounded) + 0.5)
    info = np.iinfo(dtype)
    return np.clip(rounded + np.asarray(zero_point), info.min, info.max).astype(dtype)


# FLOOR_DIV and FLOOR_MOD in the float kernels' arithmetic, also of what 8-bit integers stand for.
#
# Sources: floor_div.h, floor_mod.h and quantize.h in kernels/internal/reference. The kernels stop at y = 0.


def floor_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """floor(x / y) of floats, in their precision; infinite by 0, and 0 for 0 / 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.floor(x / y)
    return np.nan_to_num(quotient, nan=0.0, posinf=np.inf, neginf=-np.inf)


def floor_remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What floor(x / y) leaves; 0 by 0."""
    with np.errstate(invalid="ignore"):
        left = np.fmod(x, y)
    return np.nan_to_num(np.where((left != 0) & ((left < 0) != (y < 0)), left + y, left), nan=0.0)


def floor_quotients(dtype: np.dtype, *parameters: tuple[float, int]) -> np.ndarray:
    """[256, 256] of an 8-bit `dtype`, smallest first: the stored floor(x / y). `parameters`: scale and zero point of
    dividend, divisor and result."""
    return _table_in_float32(floor_quotient, dtype, *parameters)


def floor_remainders(dtype: np.dtype, *parameters: tuple[float, int]) -> np.ndarray:
    """The same of the remainder of floor(x / y)."""
    return _table_in_float32(floor_remainder, dtype, *parameters)


def _table_in_float32(
    function: RealFunction,
    dtype: np.dtype,
    first: tuple[float, int],
    second: tuple[float, int],
    result: tuple[float, int],
) -> np.ndarray:
    x, y = (_values(dtype, *p).astype(np.float32) for p in (first, second))
    with np.errstate(all="ignore"):
        counts = function(x[:, None], y[None]) / np.float32(result[0])
    return _stored(counts.astype(np.float64), result[1], dtype)
