"""Float functions of one or two operands: builtins of the same name, or short formulas of them.

ERF has no builtin: a polynomial where |x| < 1, 1 - exp(polynomial) beyond (`numerics/erf.py`). CEIL and ROUND are not
among the reference kernels: CEIL is FLOOR of the negative, and half to even is what a float sum does where a unit in
the last place is 1: (|x| + 2^23) - 2^23.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.tfl import unary as tfl
from tflq.dialects.tfl.activation import Logistic, Relu, Relu6, Tanh
from tflq.dialects.tfl.arithmetic import Div
from tflq.dialects.tfl.unary import Abs, Neg, Sign
from tflq.dialects.tosa import activation as tosa
from tflq.dialects.tosa.arithmetic import Pow
from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType
from tflq.numerics.erf import LIMIT, inner, outer
from tflq.select.broadcasting import elementwise
from tflq.select.lowering import Kernels, lowering

__all__ = ["limited", "rectifier", "rounded", "rounded_small"]

_UNARY: Final[Mapping[type[Op], type[Operator]]] = {
    tosa.Cos: tfl.Cos,
    tosa.Exp: tfl.Exp,
    tosa.Floor: tfl.Floor,
    tosa.Log: tfl.Log,
    tosa.Rsqrt: tfl.Rsqrt,
    tosa.Sigmoid: Logistic,
    tosa.Sin: tfl.Sin,
    tosa.Tanh: Tanh,
}


@lowering(*_UNARY)
def unary(op: tosa.FloatFunction, k: Kernels) -> Value:
    x = k.value(op.input)
    return k.emit(_UNARY[type(op)], [x], x.type)


@lowering(tosa.Ceil)
def ceil(op: tosa.Ceil, k: Kernels) -> Value:
    x = k.value(op.input)
    below = k.emit(tfl.Floor, [k.emit(Neg, [x], x.type)], x.type)
    return k.emit(Neg, [below], x.type)


@lowering(tosa.Reciprocal)
def reciprocal(op: tosa.Reciprocal, k: Kernels) -> Value:
    x = k.value(op.input1)
    return k.emit(Div, [k.constant(1, x.type.storage), x], x.type, fused_activation_function="NONE")


@lowering(Pow)
def power(op: Pow, k: Kernels) -> Value:
    return elementwise(k, k.pow, k.value(op.input1), k.value(op.input2))


@lowering(tosa.Erf)
def erf(op: tosa.Erf, k: Kernels) -> Value:
    """Both formulas everywhere, each on the values it is meant for."""
    x = k.value(op.input)
    storage = x.type.storage
    magnitude = k.emit(Abs, [x], x.type)
    one = k.constant(1, storage)
    near, far = k.minimum(magnitude, one), k.minimum(k.maximum(magnitude, one), k.constant(LIMIT, storage))
    below = k.add(near, k.mul(near, _polynomial(k, k.mul(near, near), inner())))
    tail = k.emit(tfl.Exp, [_polynomial(k, far, outer())], x.type)
    value = k.select_v2(k.greater(one, magnitude), below, k.sub(one, tail))
    return k.mul(value, k.emit(Sign, [x], x.type))


def _polynomial(k: Kernels, x: Value, coefficients: np.ndarray) -> Value:
    """Horner's scheme; the constant term is the first."""
    *rest, value = (k.constant(c, x.type.storage) for c in coefficients)
    total = k.add(k.mul(x, value), rest.pop())
    while rest:
        total = k.add(k.mul(total, x), rest.pop())
    return total


def rounded(k: Kernels, x: Value) -> Value:
    """x, a float32, to the nearest whole number, half to even; what is beyond 2^23 is one."""
    unit = k.constant(1 << 23, x.type.storage)
    magnitude = k.emit(Abs, [x], x.type)
    inside = k.minimum(magnitude, unit)
    whole = k.add(k.sub(k.add(inside, unit), unit), k.sub(magnitude, inside))
    return k.mul(whole, k.emit(Sign, [x], x.type))


def rounded_small(k: Kernels, x: Value) -> Value:
    """The same of x below 2^22 in magnitude."""
    unit = k.constant(3 << 22, x.type.storage)
    return k.sub(k.add(x, unit), unit)


def rectifier(low: float, high: float, storage: ScalarType) -> str | None:
    """The activation that limits floats to [low, high]: RELU, RELU6, or none."""
    if low != 0:
        return None
    return {6.0: "RELU6", float(np.finfo(storage.dtype).max): "RELU", np.inf: "RELU"}.get(high)


def limited(k: Kernels, x: Value, low: float, high: float) -> Value:
    """x within [low, high], floats: RELU or RELU6 if that is it, else MAXIMUM and MINIMUM where they can bite."""
    name = rectifier(low, high, x.type.storage)
    if name is not None:
        return k.emit(Relu6 if name == "RELU6" else Relu, [x], x.type)
    largest = float(np.finfo(x.type.storage.dtype).max)
    if low > -largest:
        x = k.maximum(x, k.constant(low, x.type.storage))
    if high < largest:
        x = k.minimum(x, k.constant(high, x.type.storage))
    return x
