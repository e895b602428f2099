"""Unary functions: in float32 or fixed point as the kernels compute them, and of real numbers where no kernel is.

Sources: kernels/exp.cc, kernels/elementwise.cc (LogLUTPrepare, GenericPrepare, SqrtEvalQuantized,
RsqrtEvalQuantizedInt8), kernels/activations.cc (EluPrepare, GeluPrepare), kernels/internal/reference/gelu.h,
kernels/internal/common.h (GetInvSqrtQuantizedMultiplierExp).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tflq.numerics.fixed_point import (
    multiply,
    quantize_multiplier,
    quotient,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)
from tflq.numerics.tables import FloatFunction
from tflq.numerics.x86 import as_int32, wrapped

__all__ = [
    "REAL_FUNCTIONS",
    "elu",
    "exp",
    "gelu",
    "log",
    "rsqrt",
    "rsqrt_table",
    "sqrt_table",
]

_f = np.float32


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
    argument = x * _f(-math.sqrt(0.5))
    erfc = np.asarray([math.erfc(v) for v in argument.tolist()], np.float32)  # a table's few entries; numpy has no erfc
    return _f(0.5) * x * erfc


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
    "RELU_0_TO_1": lambda x: np.clip(x, 0, 1),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "ROUND": np.rint,
    "RSQRT": lambda x: 1 / np.sqrt(x),
    "SIGN": np.sign,
    "SIN": np.sin,
    "SQRT": np.sqrt,
    "SQUARE": np.square,
    "TANH": np.tanh,
}
"""The real functions of operators, by TFLite's name, in double."""
