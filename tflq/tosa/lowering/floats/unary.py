"""Float operators of one operand.

Sources: kernels/activations.cc, elementwise.cc, exp.cc, floor.cc, ceil.cc, round.h, gelu.h, hard_swish.h, elu.h. What
TOSA has under another name is one operator; the others:

    sqrt      1 / RSQRT, right for 0 and infinity
    round     half to even, from the distance to the floor: what CAST does with ties is the device's
    elu       exp(x) - 1 below 0, an absolute error of 2^-24 where it vanishes
    gelu      x / 2 (1 + erf(x / sqrt 2)), or with tanh; an absolute error of |x| 2^-24 where the bracket vanishes
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.activation import Erf, Exp, Floor, Rsqrt, Sigmoid, Tanh
from tflq.ir.core import Op, Value
from tflq.tosa.lowering.floats.arithmetic import float_activation
from tflq.tosa.lowering.floats.operators import floating
from tflq.tosa.lowering.floats.quotient import reciprocal, scalar
from tflq.tosa.lowering.registry import Tosa

__all__: list[str] = []

_SAME: Final[dict[type[Op], type[Operator]]] = {
    tfl.Ceil: Ceil,
    tfl.Cos: Cos,
    tfl.Exp: Exp,
    tfl.Floor: Floor,
    tfl.Log: Log,
    tfl.Rsqrt: Rsqrt,
    tfl.Sin: Sin,
}
"""TOSA's operator for each of TFLite's that it has."""


@floating(*(f"tfl.{name}" for name in _SAME))
def same(op: Op, t: Tosa, x: Value) -> Value:
    """TOSA's operator of the same name."""
    return t.unary(op.name.removeprefix("tfl."), x)


@floating("tfl.logistic")
def logistic(op: Op, t: Tosa, x: Value) -> Value:
    return t.unary(Sigmoid, x)


@floating(*_RANGES)
def relu(op: Op, t: Tosa, x: Value) -> Value:
    return float_activation(t, x, _RANGES[op.name])


@floating("tfl.relu_0_to_1")
def relu_0_to_1(op: Op, t: Tosa, x: Value) -> Value:
    return t.limits(x, 0, 1)


@floating("tfl.leaky_relu")
def leaky_relu(op: Op, t: Tosa, x: Value) -> Value:
    scaled = t.mul(x, scalar(t, op.attributes["alpha"], x))
    return t.select(t.greater(x, scalar(t, 0, x)), x, scaled)


@floating("tfl.prelu")
def prelu(op: Op, t: Tosa, x: Value, alpha: Value) -> Value:
    return t.select(t.greater_equal(x, scalar(t, 0, x)), x, t.mul(x, alpha))


@floating("tfl.square")
def square(op: Op, t: Tosa, x: Value) -> Value:
    return t.mul(x, x)


@floating("tfl.sqrt")
def sqrt(op: Op, t: Tosa, x: Value) -> Value:
    return reciprocal(t, t.unary(Rsqrt, x))


@floating("tfl.round")
def round_half_to_even(op: Op, t: Tosa, x: Value) -> Value:
    whole = t.unary(Floor, x)
    above = t.sub(x, whole)
    zero, half, one, two = (scalar(t, v, x) for v in (0, 0.5, 1, 2))
    odd = t.sub(whole, t.mul(t.unary(Floor, t.mul(whole, half)), two))
    nearest = t.select(t.greater(above, half), one, zero)
    return t.add(whole, t.select(t.equal(above, half), odd, nearest))


@floating("tfl.elu")
def elu(op: Op, t: Tosa, x: Value) -> Value:
    below = t.sub(t.unary(Exp, x), scalar(t, 1, x))
    return t.select(t.greater(scalar(t, 0, x), x), below, x)


@floating("tfl.hard_swish")
def hard_swish(op: Op, t: Tosa, x: Value) -> Value:
    gate = t.limits(t.add(x, scalar(t, 3, x)), 0, 6)
    return t.mul(t.mul(x, gate), scalar(t, 1 / 6, x))


@floating("tfl.gelu")
def gelu(op: Op, t: Tosa, x: Value) -> Value:
    if op.attributes.get("approximate", False):
        cube = t.mul(t.mul(x, x), x)
        inner = t.add(x, t.mul(cube, scalar(t, 0.044715, x)))
        gate = t.unary(Tanh, t.mul(inner, scalar(t, np.sqrt(2 / np.pi), x)))
    else:
        gate = t.unary(Erf, t.mul(x, scalar(t, np.sqrt(0.5), x)))
    return t.mul(t.mul(x, scalar(t, 0.5, x)), t.add(gate, scalar(t, 1, x)))
