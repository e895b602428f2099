"""Activations, CLAMP and softmax.

CLAMP is on int8 (int16 by the extension) and floats. Of floats:

    elu            exp(x) - 1 below 0, an absolute error of 2^-24 where it vanishes
    gelu           x / 2 (1 + erf(x / sqrt 2)), or with tanh; an absolute error of |x| 2^-24 where the bracket vanishes
    softmax        exp(beta (x - max)) / sum
    log_softmax    (x - max) - log(sum of exp(x - max))

Sources: kernels/activations.cc, gelu.h, hard_swish.h, elu.h, internal/reference/softmax.h, log_softmax.h.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.activation import (
    Elu,
    Gelu,
    HardSwish,
    LeakyRelu,
    Logistic,
    LogSoftmax,
    Prelu,
    Relu,
    Relu0To1,
    Relu6,
    ReluN1To1,
    Softmax,
)
from tflq.dialects.tfl.activation import Tanh as TflTanh
from tflq.dialects.tosa.activation import Clamp, Erf, Exp, Log, Sigmoid, Tanh
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import i8, i16, i32
from tflq.tosa.lowering.floats.arithmetic import float_activation
from tflq.tosa.lowering.floats.operators import floating
from tflq.tosa.lowering.floats.quotient import reciprocal, scalar
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.rescale.integers import limited
from tflq.tosa.lowering.wide import narrow

__all__ = ["last_dim"]


@lowering(Clamp)
def clamp(op: Clamp, t: Tosa) -> Value:
    operand, low, high = op.input, op.min_val, op.max_val
    if operand.type.storage.is_float:
        return t.clamp(t.value(operand), low, high)
    x, offset = narrow(operand, t), t.offset(operand)
    if x.type.storage == i8 or (x.type.storage == i16 and t.target.has("int16")):
        return t.clamp(x, low - offset, high - offset)
    return t.cast(limited(t.cast(x, i32), t, low, high), x.type.storage)


@floating(Logistic, TflTanh)
def same(op: Logistic | TflTanh, t: Tosa, x: Value) -> Value:
    return t.emit(Tanh if isinstance(op, TflTanh) else Sigmoid, [x])


@floating(Relu, Relu6, ReluN1To1)
def relu(op: Relu | Relu6 | ReluN1To1, t: Tosa, x: Value) -> Value:
    return float_activation(t, x, op.short_name.upper())


@floating(Relu0To1)
def relu_0_to_1(op: Relu0To1, t: Tosa, x: Value) -> Value:
    return t.clamp(x, 0, 1)


@floating(LeakyRelu)
def leaky_relu(op: LeakyRelu, t: Tosa, x: Value) -> Value:
    scaled = t.mul(x, scalar(t, op.alpha, x))
    return t.select(t.greater(x, scalar(t, 0, x)), x, scaled)


@floating(Prelu)
def prelu(op: Prelu, t: Tosa, x: Value, alpha: Value) -> Value:
    return t.select(t.greater_equal(x, scalar(t, 0, x)), x, t.mul(x, alpha))


@floating(Elu)
def elu(op: Elu, t: Tosa, x: Value) -> Value:
    below = t.sub(t.emit(Exp, [x]), scalar(t, 1, x))
    return t.select(t.greater(scalar(t, 0, x), x), below, x)


@floating(HardSwish)
def hard_swish(op: HardSwish, t: Tosa, x: Value) -> Value:
    gate = t.clamp(t.add(x, scalar(t, 3, x)), 0, 6)
    return t.mul(t.mul(x, gate), scalar(t, 1 / 6, x))


@floating(Gelu)
def gelu(op: Gelu, t: Tosa, x: Value) -> Value:
    if op.approximate:
        cube = t.mul(t.mul(x, x), x)
        inner = t.add(x, t.mul(cube, scalar(t, 0.044715, x)))
        gate = t.emit(Tanh, [t.mul(inner, scalar(t, np.sqrt(2 / np.pi), x))])
    else:
        gate = t.emit(Erf, [t.mul(x, scalar(t, np.sqrt(0.5), x))])
    return t.mul(t.mul(x, scalar(t, 0.5, x)), t.add(gate, scalar(t, 1, x)))


@floating(Softmax)
def softmax(op: Softmax, t: Tosa, x: Value) -> Value:
    centred, beta = _centred(t, x), op.beta
    if beta != 1:
        centred = t.mul(centred, scalar(t, beta, x))
    powers = t.emit(Exp, [centred])
    return t.mul(powers, reciprocal(t, t.reduce("sum", powers, last_dim(x))))


@floating(LogSoftmax)
def log_softmax(op: LogSoftmax, t: Tosa, x: Value) -> Value:
    centred = _centred(t, x)
    return t.sub(centred, t.emit(Log, [t.reduce("sum", t.emit(Exp, [centred]), last_dim(x))]))


def last_dim(x: Value) -> int:
    return len(x.type.shape or ()) - 1


def _centred(t: Tosa, x: Value) -> Value:
    """x less the greatest of its row."""
    if not x.type.shape:
        raise Refused(f"{x.type} has no last dim")
    return t.sub(x, t.reduce("max", x, last_dim(x)))
