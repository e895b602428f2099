"""Functions of one number, as tables, in float32 or in fixed point, as the kernels compute them. And the real
functions of one number and of two, for operators that no kernel computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from tflq.numerics.fixed_point import (
    as_int32,
    checked_log2,
    half_away,
    multiply,
    quantize_multiplier,
    quotient,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
    wrapped,
)

if TYPE_CHECKING:
    import numpy.typing as npt

# Lookup tables of functions, filled as the kernels fill them: in float32, with the C library's functions.
#
#     8-bit    table[q] = clamp(round(f(scale_in * (q - zero_in)) * (1 / scale_out)) + zero_out), halves away from zero;
#              beyond int32, uint8 has 0 (`as_int32`, then clamped); where f is NaN, both have 0
#     int16    513 entries of f at steps of 128, interpolated; each lowered by half the error of its step's middle
#     sigmoid  256 entries at steps of 1/24, for the int16 LOGISTIC and TANH
#
# The C library's float32 functions are accurate to about half a unit in the last place, as is a double rounded to
# that. Sources: kernels/internal/common.h (LUTPopulate, sigmoid_table_uint16), kernels/activations.cc (SigmoidPrepare,
# TanhPrepare).


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
    """The stored form of real numbers in 8 bits."""

    dtype: np.dtype
    scale: float
    zero_point: int


def real_table_of_two(function: RealFunction, first: Stored, second: Stored, result: Stored) -> np.ndarray:
    """[256, 256]: the stored result of every pair of stored values, smallest first."""
    x, y = values_of(*first)[:, None], values_of(*second)[None]
    with np.errstate(all="ignore"):
        return store(function(x, y) / result.scale, result.zero_point, result.dtype)


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
        y = function(values_of(dtype, input_scale, input_zp)) / np.asarray(output_scale, np.float64)
    return store(y, output_zp, dtype if result is None else result)


def values_of(dtype: np.dtype, scale: npt.ArrayLike, zero_point: npt.ArrayLike) -> np.ndarray:
    """The real value of every value of an integer type, in double."""
    info = np.iinfo(dtype)
    whole = (np.arange(info.min, info.max + 1) - np.asarray(zero_point)).astype(np.float32)
    return (np.asarray(scale, np.float32) * whole).astype(np.float64)


def store(counts: np.ndarray, zero_point: npt.ArrayLike, dtype: np.dtype) -> np.ndarray:
    """Real numbers in steps of the scale, rounded half away from zero, plus the zero point, clamped."""
    bounded = np.clip(np.nan_to_num(counts, nan=0.0, posinf=np.inf, neginf=-np.inf), -(2.0**32), 2.0**32)
    rounded = np.sign(bounded) * np.floor(np.abs(bounded) + 0.5)
    info = np.iinfo(dtype)
    return np.clip(rounded + np.asarray(zero_point), info.min, info.max).astype(dtype)


# Functions of one number, in float32 or fixed point.
#
# Sources: kernels/exp.cc, kernels/elementwise.cc (LogLUTPrepare, GenericPrepare, SqrtEvalQuantized,
# RsqrtEvalQuantizedInt8), kernels/activations.cc (EluPrepare, GeluPrepare), kernels/internal/reference/gelu.h,
# kernels/internal/common.h (GetInvSqrtQuantizedMultiplierExp).


_f = np.float32

erf: FloatFunction = np.vectorize(math.erf, otypes=[np.float64])  # numpy has neither
erfc: FloatFunction = np.vectorize(math.erfc, otypes=[np.float64])


def _in_double(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """A function of a float32 array, computed in double and rounded."""
    return function(x.astype(np.float64)).astype(np.float32)


def exp(x: np.ndarray) -> np.ndarray:
    """exp of a float32 array."""
    return _in_double(np.exp, x)


def elu(x: np.ndarray) -> np.ndarray:
    """x, or expm1(x) below zero, of a float32 array."""
    return np.where(x < 0, _in_double(np.expm1, x), x)


def log(floor: float) -> FloatFunction:
    """log in float32, and `floor`, the least value of the result's type, at and below zero."""

    def function(x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, _in_double(np.log, np.where(x > 0, x, _f(1))), _f(floor))

    return function


def rsqrt(ceiling: float) -> FloatFunction:
    """1 / sqrt in float32, and `ceiling`, the greatest value of the result's type, at and below zero."""

    def function(x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, _f(1) / np.sqrt(np.where(x > 0, x, _f(1))), _f(ceiling))

    return function


def gelu(approximate: bool) -> FloatFunction:
    """x / 2 * erfc(-x / sqrt(2)), or its approximation by tanh, in float32."""
    return _gelu_by_tanh if approximate else _gelu_by_erfc


def _gelu_by_erfc(x: np.ndarray) -> np.ndarray:
    return _f(0.5) * x * erfc(x * _f(-math.sqrt(0.5))).astype(np.float32)


def _gelu_by_tanh(x: np.ndarray) -> np.ndarray:
    inner = _f(math.sqrt(2 / math.pi)) * (x + _f(0.044715) * x * x * x)
    return _f(0.5) * x * (_f(1) + _in_double(np.tanh, inner))


def sqrt_table(dtype: np.dtype, input_scale: float, input_zp: int, output_scale: float, output_zp: int) -> np.ndarray:
    """SQRT of every value of an integer type: trunc(sqrt(x) / scale_out) + zero_out in float32; the least if x < 0.

    The kernel stops at a negative x.
    """
    info = np.iinfo(dtype)
    with np.errstate(all="ignore"):
        x = _f(input_scale) * (np.arange(info.min, info.max + 1) - input_zp).astype(np.float32)
        root = np.sqrt(np.maximum(x, _f(0))) / _f(output_scale)
    stored = np.where(x < 0, info.min, wrapped(as_int32(root) + output_zp))
    return np.clip(stored, info.min, info.max).astype(dtype)


def rsqrt_table(input_scale: float, input_zp: int, output_scale: float, output_zp: int) -> np.ndarray:
    """RSQRT of every int8 by the kernel's Newton iteration. At zero, and below where the kernel stops, the greatest."""
    with np.errstate(all="ignore"):
        multiplier = quantize_multiplier(quotient(1.0, float(np.sqrt(_f(input_scale)) * _f(output_scale))))
    x = np.arange(-128, 128) - input_zp
    mantissa, shift = _inverse_square_root(np.maximum(x, 1))
    root = multiply(np.ones(256, np.int32), mantissa, shift + 20)
    scaled = multiply(root, multiplier.mantissa, multiplier.shift - 20)
    stored = wrapped(scaled.astype(np.int64) + output_zp)
    return np.where(x <= 0, 127, np.clip(stored, -128, 127)).astype(np.int8)


def _inverse_square_root(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 / sqrt of integers in 1..2^29, mantissa and left shift: five Newton steps in Q3.28, r = 3/2 r - x/2 r^3."""
    pairs = (31 - np.frexp(x.astype(np.float64))[1]) // 2 - 1
    half = rounding_divide_by_pot((x << (2 * pairs)) >> 1, 1)
    mul = saturating_rounding_doubling_high_mul
    r = np.full(x.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = _saturated(mul(mul(r, r), r).astype(np.int64) << 6)
        r = _saturated((mul(r, (1 << 28) + (1 << 27)).astype(np.int64) - mul(half, cube)) << 3)
    root = mul(r, 1518500250).astype(np.int64) << np.maximum(pairs - 11, 0)
    one = x == 1
    return np.where(one, (1 << 31) - 1, root), np.where(one, 0, np.minimum(pairs - 11, 0))


def _saturated(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -(1 << 31), (1 << 31) - 1)


REAL_FUNCTIONS: dict[str, FloatFunction] = {
    "ABS": np.abs,
    "CEIL": np.ceil,
    "COS": np.cos,
    "ELU": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "EXP": np.exp,
    "FLOOR": np.floor,
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "LOG": np.log,
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "NEG": np.negative,
    "ROUND": np.rint,
    "RSQRT": lambda x: 1 / np.sqrt(x),
    "SIGN": np.sign,
    "SIN": np.sin,
    "SQRT": np.sqrt,
    "SQUARE": np.square,
    "TANH": np.tanh,
}
"""The real functions of operators, by TFLite's name, in double; clamps are in `activation.BOUNDS`."""


# The error function in float32 by polynomials, for targets that have an exponential but no erf.
#
#     |x| < 1      erf(x) = x + x P(x^2)
#     |x| >= 1     erf(x) = sign(x) (1 - exp(Q(|x|)))        Q fits log(erfc), up to LIMIT, where erf is 1 in float32
#
# Coefficients are least-squares fits on Chebyshev nodes, made when first asked for.

LIMIT = 4.0
"""Where 1 - erf falls below half a unit in the last place."""


@cache
def inner() -> np.ndarray:
    """Coefficients of P, lowest power first: float32."""
    return _fit(lambda v: math.erf(v**0.5) / v**0.5 - 1, 0.0, 1.0, 6)


@cache
def outer() -> np.ndarray:
    """Coefficients of Q, lowest power first: float32."""
    return _fit(lambda v: math.log(math.erfc(v)), 1.0, LIMIT, 8)


def _fit(function: Callable[[float], float], low: float, high: float, degree: int) -> np.ndarray:
    nodes = np.cos((np.arange(400) + 0.5) * np.pi / 400) * (high - low) / 2 + (high + low) / 2
    values = np.asarray([function(float(v)) for v in nodes])
    fitted = np.polynomial.Chebyshev.fit(nodes, values, degree, domain=[low, high])
    return fitted.convert(kind=np.polynomial.Polynomial).coef.astype(np.float32)
