"""Functions of one number and of two, SOFTMAX and DIV: as tables, in float32 or in fixed point, as the kernels compute
them; and the real functions, for operators that no kernel computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tflq.light import NamedTuple
from tflq.numerics.elementwise import checked_log2, float_ratio
from tflq.numerics.fixed_point import (
    Multiplier,
    as_int32,
    divide_by_pot,
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
"""The real functions of operators, by TFLite's name, in double; clamps are in `elementwise.BOUNDS`."""


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
    """What scales int16 differences so that -65535 is -10. ValueError if it is too large for a left shift."""
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
    """What scales the quotient."""
    with np.errstate(over="ignore"):
        product = float(np.float32(divisor_scale) * np.float32(output_scale))
    return quantize_multiplier(float_ratio(dividend_scale, product))
