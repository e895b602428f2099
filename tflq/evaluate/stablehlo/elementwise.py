"""Ops that compute each element of the result of those at its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tflq.dialects.stablehlo.arithmetic import (
    Add,
    And,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Or,
    Power,
    Remainder,
    Subtract,
    Xor,
)
from tflq.dialects.stablehlo.casts import Convert, UniformDequantize, UniformQuantize
from tflq.dialects.stablehlo.comparison import Clamp, Compare, Select
from tflq.dialects.stablehlo.control import OptimizationBarrier
from tflq.dialects.stablehlo.unary import (
    Abs,
    Ceil,
    Cosine,
    Exponential,
    Floor,
    Log,
    Logistic,
    Negate,
    Not,
    RoundNearestAfz,
    RoundNearestEven,
    Rsqrt,
    Sign,
    Sine,
    Sqrt,
    Tanh,
)
from tflq.evaluate.registry import evaluator
from tflq.evaluate.stablehlo.numbers import dequantized, from_units, in_units, quantized, real, same_scale, stored
from tflq.ir.core import Op
from tflq.ir.types import TensorType, i1
from tflq.numerics.comparison import COMPARISONS
from tflq.numerics.rounding import half_away, saturated

__all__ = ["ELEMENTWISE"]


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of integers the quotient without its fraction; x / 0 is -1."""
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    safe = np.where(b == 0, 1, b)
    quotient = np.sign(a) * np.sign(safe) * (np.abs(a) // np.abs(safe)) if a.dtype.kind == "i" else a // safe
    return np.where(b == 0, np.asarray(-1).astype(a.dtype), quotient).astype(a.dtype)


def _remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """With the sign of the dividend; x % 0 is x."""
    if a.dtype.kind == "f":
        return np.asarray(np.fmod(a, b))
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of integers, of a negative exponent: 1 / a ** -b without its fraction."""
    if a.dtype.kind != "i":
        return np.asarray(np.power(a, b))
    whole = np.power(a, np.maximum(b, 0))
    odd = np.where(b % 2, -1, 1)
    inverse = np.where(a == 1, 1, np.where(a == -1, odd, np.where(a == 0, -1, 0)))
    return np.where(b < 0, inverse, whole).astype(a.dtype)


def _logistic(x: np.ndarray) -> np.ndarray:
    return np.asarray(x.dtype.type(1) / (x.dtype.type(1) + np.exp(-x)))


_FUNCTIONS: Final[dict[type[Op], Callable[..., Any]]] = {
    Add: np.add,
    Subtract: np.subtract,
    Multiply: np.multiply,
    Divide: _divide,
    Remainder: _remainder,
    Maximum: np.maximum,
    Minimum: np.minimum,
    Power: _power,
    And: np.bitwise_and,
    Or: np.bitwise_or,
    Xor: np.bitwise_xor,
    Abs: np.abs,
    Negate: np.negative,
    Not: np.invert,
    Sign: np.sign,
    Ceil: np.ceil,
    Floor: np.floor,
    RoundNearestEven: np.rint,
    RoundNearestAfz: half_away,
    Exponential: np.exp,
    Log: np.log,
    Logistic: _logistic,
    Sqrt: np.sqrt,
    Rsqrt: lambda x: x.dtype.type(1) / np.sqrt(x),
    Tanh: np.tanh,
    Cosine: np.cos,
    Sine: np.sin,
}
_OF_ONE_SCALE: Final = frozenset({Add, Subtract, Maximum, Minimum, Negate, Abs})
"""What can be computed in units of a scale."""

_BOOLEAN: Final[dict[type[Op], Callable[..., Any]]] = {
    Add: np.logical_or,
    Multiply: np.logical_and,
    Maximum: np.logical_or,
    Minimum: np.logical_and,
}

ELEMENTWISE: Final = frozenset({*_FUNCTIONS, UniformQuantize, UniformDequantize, Convert, Compare, Select, Clamp})
"""Ops whose result at a place depends on the operands at that place only: they compute on arrays of any one shape."""


@evaluator(*_FUNCTIONS)
def _mapped(op: Op, *arrays: np.ndarray) -> np.ndarray:
    types, made = [v.type for v in op.operands if v is not None], op.result.type
    function = _FUNCTIONS[type(op)]
    if made.element == i1 and type(op) in _BOOLEAN:
        function = _BOOLEAN[type(op)]
    if type(op) in _OF_ONE_SCALE and same_scale(*types, made):
        return from_units(made, function(*(in_units(t, a) for t, a in zip(types, arrays, strict=True))))
    with np.errstate(all="ignore"):
        return stored(made, function(*(real(t, a) for t, a in zip(types, arrays, strict=True))))


@evaluator(UniformQuantize)
def _uniform_quantize(op: UniformQuantize, x: np.ndarray) -> np.ndarray:
    given, made = op.input.type, op.result.type
    if same_scale(given, made):
        return from_units(made, in_units(given, x))
    return quantized(made, real(given, x))


@evaluator(UniformDequantize)
def _uniform_dequantize(op: UniformDequantize, x: np.ndarray) -> np.ndarray:
    return dequantized(op.input.type, x)


@evaluator(Convert)
def _convert(op: Convert, x: np.ndarray) -> np.ndarray:
    made: TensorType = op.result.type
    numbers = real(op.input.type, x)
    if made.element == i1:
        return np.asarray(numbers != 0)
    if numbers.dtype.kind != "f" or made.storage.is_float:
        return stored(made, numbers)
    return saturated(numbers, made.storage.minimum, made.storage.maximum)


@evaluator(Compare)
def _compare(op: Compare, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    kind = op.lhs.type
    if not kind.quantized:
        a, b = real(kind, a), real(kind, b)
    return np.asarray(COMPARISONS[op.direction](a, b))


@evaluator(Select)
def _select(op: Select, pred: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(pred, a, b)


@evaluator(Clamp)
def _clamp(op: Clamp, low: np.ndarray, x: np.ndarray, high: np.ndarray) -> np.ndarray:
    kind = op.input.type
    if kind.quantized:
        return np.minimum(np.maximum(x, low), high)
    return stored(kind, np.minimum(np.maximum(real(kind, x), real(kind, low)), real(kind, high)))


@evaluator(OptimizationBarrier)
def _barrier(op: OptimizationBarrier, *arrays: np.ndarray) -> list[np.ndarray]:
    return list(arrays)
