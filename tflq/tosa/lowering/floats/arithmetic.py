"""Float arithmetic of two operands that TOSA lacks: quotients, remainders, signs; fused activations.

TOSA's only division is RECIPROCAL. A quotient is a * (1 / b), 1.5 units in the last place at most from the real one.
FLOOR_DIV and FLOOR_MOD must be right where a / b is near a whole number, so they look at the remainder, computed
without rounding. Kernels: div.cc, floor_div.cc, floor_mod.cc, sign.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.activation import Floor, Tanh
from tflq.dialects.tosa.arithmetic import Abs
from tflq.errors import Refused
from tflq.ir.core import Op, Value
from tflq.tosa.lowering.context import Tosa
from tflq.tosa.lowering.floats.quotient import reciprocal, remainder, scalar

__all__ = [
    "float_activation",
    "float_div",
    "float_floor_div",
    "float_floor_mod",
    "float_sign",
    "need_float",
]

_ACTIVATIONS = {"RELU": (0.0, np.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}


def need_float(t: Tosa, operator: Op | str) -> None:
    """Refused, naming the operator, unless the target computes in float."""
    t.need("pro_fp", f"{operator if isinstance(operator, str) else operator.short_name.upper()} in float")


def float_activation(t: Tosa, x: Value, name: str) -> Value:
    """A fused activation."""
    if name == "NONE":
        return x
    need_float(t, name)
    if name == "TANH":
        return t.emit(Tanh, [x])
    if name not in _ACTIVATIONS:
        raise Refused(f"the activation {name} has no form in float")
    return t.clamp(x, *_ACTIVATIONS[name])


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
    q, rest = _nearest_quotient(t, a, b)
    return t.sub(q, t.select(t.greater(scalar(t, 0, q), rest), scalar(t, 1, q), scalar(t, 0, q)))


def float_floor_mod(t: Tosa, a: Value, b: Value) -> Value:
    """a - ⌊a / b⌋ b, rounded once, while ⌊a / b⌋ is below 2^22 in magnitude, and a and b below 2^100."""
    need_float(t, "FLOOR_MOD")
    a, b, flipped = _positive_divisor(t, a, b)
    _, rest = _nearest_quotient(t, a, b)
    rest = t.select(t.greater(scalar(t, 0, rest), rest), t.add(rest, b), rest)
    return t.select(flipped, t.sub(scalar(t, 0, rest), rest), rest)


def _positive_divisor(t: Tosa, a: Value, b: Value) -> tuple[Value, Value, Value]:
    """a and b with both signs turned where b is negative, and where that is."""
    a, b = t.aligned(a, b)
    zero = scalar(t, 0, b)
    flipped = t.greater(zero, b)
    return t.select(flipped, t.sub(zero, a), a), t.emit(Abs, [b]), flipped


def _nearest_quotient(t: Tosa, a: Value, b: Value) -> tuple[Value, Value]:
    """The whole number nearest to a / b, or next to that where two are about as near, and the remainder, exact.

    So it is the floor if the remainder is not negative, else one more.
    """
    q = t.mul(a, reciprocal(t, b))
    q = t.emit(Floor, [t.add(q, scalar(t, 0.5, q))])
    return q, remainder(t, a, q, b)
