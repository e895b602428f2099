"""Float arithmetic of two operands that TOSA has not: quotients, remainders, signs; fused activations.

TOSA's only division is RECIPROCAL. A quotient is a * (1 / b), 1.5 units in the last place at most from the real one.
FLOOR_DIV and FLOOR_MOD must be right where a / b is near a whole number, so they look at the remainder, computed
without rounding. Kernels: div.cc, floor_div.cc, floor_mod.cc, sign.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.ir.core import Value
from tflq.tosa.context import Refused, Tosa
from tflq.tosa.float_quotient import reciprocal, remainder, scalar

__all__ = [
    "float_activation",
    "float_div",
    "float_floor_div",
    "float_floor_mod",
    "float_sign",
    "need_float",
]

_ACTIVATIONS = {"RELU": (0.0, np.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}


def need_float(t: Tosa, operator: str) -> None:
    """Refused, naming the operator, unless the target computes in float."""
    t.need("pro_fp", f"{operator} in float")


def float_activation(t: Tosa, x: Value, name: str) -> Value:
    """A fused activation."""
    if name == "NONE":
        return x
    need_float(t, name)
    if name == "TANH":
        return t.unary("tanh", x)
    if name not in _ACTIVATIONS:
        raise Refused(f"the activation {name} has no form in float")
    return t.limits(x, *_ACTIVATIONS[name])


def float_div(t: Tosa, a: Value, b: Value) -> Value:
    """a / b, as a * (1 / b); the reciprocal of a constant is a constant."""
    need_float(t, "DIV")
    return t.mul(a, reciprocal(t, b))


def float_sign(t: Tosa, x: Value) -> Value:
    """1, −1, or x itself where it is 0 or not a number."""
    need_float(t, "SIGN")
    zero = scalar(t, 0, x)
    negative = t.select(t.greater(zero, x), scalar(t, -1, x), x)
    return t.select(t.greater(x, zero), scalar(t, 1, x), negative)


def float_floor_div(t: Tosa, a: Value, b: Value) -> Value:
    """⌊a / b⌋: exact while it is below 2^22 in magnitude, and a and b below 2^100."""
    need_float(t, "FLOOR_DIV")
    a, b, _ = _positive_divisor(t, a, b)
    return _floor_quotient(t, a, b)


def float_floor_mod(t: Tosa, a: Value, b: Value) -> Value:
    """a - ⌊a / b⌋ b, rounded once, while ⌊a / b⌋ is below 2^22 in magnitude, and a and b below 2^100."""
    need_float(t, "FLOOR_MOD")
    a, b, flipped = _positive_divisor(t, a, b)
    rest = remainder(t, a, _floor_quotient(t, a, b), b)
    return t.select(flipped, t.sub(scalar(t, 0, rest), rest), rest)


def _positive_divisor(t: Tosa, a: Value, b: Value) -> tuple[Value, Value, Value]:
    """a and b with both signs turned where b is negative, and where that is."""
    a, b = t.aligned(a, b)
    zero = scalar(t, 0, b)
    flipped = t.greater(zero, b)
    return t.select(flipped, t.sub(zero, a), a), t.unary("abs", b), flipped


def _floor_quotient(t: Tosa, a: Value, b: Value) -> Value:
    """⌊a / b⌋ for b > 0: the floor of the approximate quotient, one off at most, and the remainder says which way."""
    q = t.unary("floor", t.mul(a, reciprocal(t, b)))
    rest = remainder(t, a, q, b)
    zero, one = scalar(t, 0, q), scalar(t, 1, q)
    q = t.sub(q, t.select(t.greater(zero, rest), one, zero))
    return t.add(q, t.select(t.greater_equal(rest, b), one, zero))
