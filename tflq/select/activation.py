"""Functions of floats: builtins of the same name, or short formulas of them; clamps.

ERF has no builtin: a polynomial where |x| < 1, 1 - exp(polynomial) beyond (`numerics/erf.py`). CEIL is not among the
reference kernels: it is FLOOR of the negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.tfl import unary as tfl
from tflq.dialects.tfl.activation import Logistic, Tanh
from tflq.dialects.tfl.arithmetic import Div
from tflq.dialects.tfl.comparison import SelectV2
from tflq.dialects.tosa import activation as tosa
from tflq.ir.core import Op, Value
from tflq.numerics.erf import LIMIT, inner, outer
from tflq.select.floats import limited
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


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
    return k.emit(_UNARY[type(op)], [x])


@lowering(tosa.Ceil)
def ceil(op: tosa.Ceil, k: Kernels) -> Value:
    x = k.value(op.input)
    below = k.emit(tfl.Floor, [k.emit(tfl.Neg, [x])], x.type)
    return k.emit(tfl.Neg, [below], x.type)


@lowering(tosa.Reciprocal)
def reciprocal(op: tosa.Reciprocal, k: Kernels) -> Value:
    x = k.value(op.input1)
    return k.emit(Div, [k.constant(1, x.type.storage), x], x.type, fused_activation_function="NONE")


@lowering(tosa.Erf)
def erf(op: tosa.Erf, k: Kernels) -> Value:
    """Both formulas everywhere, each on the values it is meant for."""
    x = k.value(op.input)
    storage = x.type.storage
    magnitude = k.emit(tfl.Abs, [x])
    one = k.constant(1, storage)
    near, far = k.minimum(magnitude, one), k.minimum(k.maximum(magnitude, one), k.constant(LIMIT, storage))
    below = k.add(near, k.mul(near, _polynomial(k, k.mul(near, near), inner())))
    tail = k.emit(tfl.Exp, [_polynomial(k, far, outer())], x.type)
    value = k.emit(SelectV2, [k.greater(one, magnitude), below, k.sub(one, tail)])
    return k.mul(value, k.emit(tfl.Sign, [x]))


def _polynomial(k: Kernels, x: Value, coefficients: np.ndarray) -> Value:
    """Horner's scheme; the constant term is the first."""
    *rest, value = (k.constant(c, x.type.storage) for c in coefficients)
    total = k.add(k.mul(x, value), rest.pop())
    while rest:
        total = k.add(k.mul(total, x), rest.pop())
    return total


@lowering(tosa.Clamp)
def clamp(op: tosa.Clamp, k: Kernels) -> Value:
    """MAXIMUM, MINIMUM, each only where it can bite."""
    x, storage = k.value(op.input), op.result.type.storage
    low, high = op.min_val, op.max_val
    if storage.is_float:
        return limited(k, x, low, high)
    if low > storage.minimum:
        x = k.maximum(x, k.constant(np.asarray(low), storage))
    if high < storage.maximum:
        x = k.minimum(x, k.constant(np.asarray(high), storage))
    return x
