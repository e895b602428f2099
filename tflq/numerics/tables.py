"""Lookup tables of unary functions, filled as the kernels fill them: in float32, with the C library's functions.

    8-bit    table[q] = clamp(round(f(scale_in * (q - zero_in)) * (1 / scale_out)) + zero_out), halves away from zero;
             beyond int32, uint8 has 0 (`x86.as_int32`, then clamped); where f is not a number, both have 0
    int16    513 entries of f at steps of 128, interpolated; each lowered by half the error of its step's middle
    sigmoid  256 entries at steps of 1/24, for the int16 LOGISTIC and TANH

The C library's float32 functions are accurate to about half a unit in the last place, as is a double rounded to that.
Sources: kernels/internal/common.h (LUTPopulate, sigmoid_table_uint16), kernels/activations.cc (SigmoidPrepare,
TanhPrepare).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tflq.numerics.elementwise import checked_log2
from tflq.numerics.rounding import half_away
from tflq.numerics.x86 import as_int32, wrapped

__all__ = [
    "FloatFunction",
    "logistic",
    "sigmoid_16bit_table",
    "sigmoid_input_scaling",
    "sigmoid_table",
    "table_8bit",
    "table_16bit",
    "tanh",
]

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
        here, middle, after = (
            function(low + i * step),
            function(low + i * step + step / f(2)),
            function(low + (i + f(1)) * step),
        )
        sample = half_away(here * inverse)
        error = half_away((after * inverse + sample) / f(2)) - half_away(middle * inverse)
        entries = np.append(sample - half_away(error / f(2)), half_away(function(np.asarray([high], f)) * inverse))
    return np.clip(np.where(np.isnan(entries), 0, entries), -32768, 32767).astype(
        np.int16
    )  # NaN: its conversion's low half


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

    Scales 2^-12 * 2^e with e in `exact_exponents` are exact. A scale so small that no multiplier is left is taken for
    one of them, of a shift that leaves int32; a multiplier that int32 does not hold is -2^31.
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
