"""Arithmetic of floats, f32: TFLite's builtins, and what makes them compute what MLIR says of NaN and of zeros.

    rem        of |x| by |y| by FLOOR_MOD, exact, with the sign of x; NaN where y is 0, by which the kernel does not
               divide
    maximum    NaN where an operand is one; of 0 and -0 their sum, which is 0
    round      floor(|x|), 1 more if what is left, which is exact, is a half or more; with the sign of x
    roundeven  the same, but of a half only if the floor is odd
    trunc      floor(|x|) with the sign of x
    ceil       -floor(-x)

CEIL and ROUND are not used: the reference kernels do not have them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tflq.dialects.arith import floats as arith
from tflq.dialects.declare import Operator
from tflq.dialects.math import functions, rounding
from tflq.dialects.math.several import ClampF, PowF
from tflq.dialects.tfl import activation, unary
from tflq.dialects.tfl import arithmetic as tfl
from tflq.dialects.tfl.comparison import Equal, Greater, GreaterEqual, Less
from tflq.dialects.tosa.bits import LogicalAnd, LogicalOr
from tflq.ir.core import Op, Value
from tflq.ir.types import i1
from tflq.legalize.core.emitter import CoreEmitter
from tflq.legalize.core.registry import form

__all__: list[str] = []

_BUILTINS: Final[dict[type[Op], tuple[type[Operator], dict[str, Any]]]] = {
    arith.AddF: (tfl.Add, {"fused_activation_function": "NONE"}),
    arith.SubF: (tfl.Sub, {"fused_activation_function": "NONE"}),
    arith.MulF: (tfl.Mul, {"fused_activation_function": "NONE"}),
    arith.DivF: (tfl.Div, {"fused_activation_function": "NONE"}),
    arith.NegF: (unary.Neg, {}),
    rounding.AbsF: (unary.Abs, {}),
    rounding.Floor: (unary.Floor, {}),
    functions.Cos: (unary.Cos, {}),
    functions.Exp: (unary.Exp, {}),
    functions.Log: (unary.Log, {}),
    functions.Rsqrt: (unary.Rsqrt, {}),
    functions.Sin: (unary.Sin, {}),
    functions.Sqrt: (unary.Sqrt, {}),
    functions.Tanh: (activation.Tanh, {}),
    PowF: (tfl.Pow, {}),
}


@form(*_BUILTINS)
def _builtin(op: Op, b: CoreEmitter, *operands: Value) -> Value:
    kind, attributes = _BUILTINS[type(op)]
    return b.each(kind, *operands, **attributes)


def _add(b: CoreEmitter, x: Value, y: Value) -> Value:
    return b.each(tfl.Add, x, y, fused_activation_function="NONE")


def _sub(b: CoreEmitter, x: Value, y: Value) -> Value:
    return b.each(tfl.Sub, x, y, fused_activation_function="NONE")


@form(arith.RemF)
def _remainder(op: arith.RemF, b: CoreEmitter, x: Value, y: Value) -> Value:
    zero = b.number(0)
    by = b.each(unary.Abs, y)
    if not (y.is_constant and y.array.all()):
        by = b.choose(b.each(Equal, y, zero, to=i1), b.number(1), by)
    rest = b.each(tfl.FloorMod, b.each(unary.Abs, x), by)
    signed = _with_sign(b, x, rest)
    if y.is_constant and y.array.all():
        return signed
    return b.choose(b.each(Equal, y, zero, to=i1), b.number(np.nan), signed)


@form(arith.MaximumF, arith.MinimumF)
def _extreme(op: arith.MaximumF | arith.MinimumF, b: CoreEmitter, x: Value, y: Value) -> Value:
    return extreme(b, x, y, greater=isinstance(op, arith.MaximumF))


def extreme(b: CoreEmitter, x: Value, y: Value, *, greater: bool) -> Value:
    """The greater or the lesser of two floats."""
    made = b.each(tfl.Maximum if greater else tfl.Minimum, x, y)
    known = [v for v in (x, y) if v.is_constant]
    if not any(v.array.all() for v in known):  # both can be 0
        zero = b.number(0)
        both = b.each(LogicalAnd, b.each(Equal, x, zero, to=i1), b.each(Equal, y, zero, to=i1))
        total = _add(b, x, y) if greater else _of_least_zero(b, x, y)
        made = b.choose(both, total, made)
    for value in (x, y):
        if not (value.is_constant and not np.isnan(value.array).any()):
            made = b.choose(b.each(Equal, value, value, to=i1), made, value)
    return made


def _of_least_zero(b: CoreEmitter, x: Value, y: Value) -> Value:
    """-0 of zeros of which one is -0: the negative of the sum of their negatives."""
    return b.each(unary.Neg, _sub(b, b.each(unary.Neg, x), y))


@form(ClampF)
def _clamped(op: ClampF, b: CoreEmitter, x: Value, low: Value, high: Value) -> Value:
    return extreme(b, extreme(b, x, low, greater=True), high, greater=False)


def _with_sign(b: CoreEmitter, x: Value, size: Value) -> Value:
    """A number from 0 up with the sign of x; x itself where that is 0 or -0."""
    zero = b.number(0)
    signed = b.choose(b.each(Less, x, zero, to=i1), b.each(unary.Neg, size), size)
    return b.choose(b.each(Equal, x, zero, to=i1), x, signed)


@form(rounding.Trunc)
def _truncated(op: rounding.Trunc, b: CoreEmitter, x: Value) -> Value:
    return _with_sign(b, x, b.each(unary.Floor, b.each(unary.Abs, x)))


@form(rounding.Ceil)
def _ceiling(op: rounding.Ceil, b: CoreEmitter, x: Value) -> Value:
    return b.each(unary.Neg, b.each(unary.Floor, b.each(unary.Neg, x)))


@form(rounding.Round, rounding.RoundEven)
def _nearest(op: rounding.Round | rounding.RoundEven, b: CoreEmitter, x: Value) -> Value:
    size, half = b.each(unary.Abs, x), b.number(0.5)
    whole = b.each(unary.Floor, size)
    rest = _sub(b, size, whole)
    up = b.each(GreaterEqual, rest, half, to=i1)
    if isinstance(op, rounding.RoundEven):
        halved = b.each(tfl.Mul, whole, half, fused_activation_function="NONE")
        odd = b.each(Greater, _sub(b, halved, b.each(unary.Floor, halved)), b.number(0), to=i1)
        more = b.each(Greater, rest, half, to=i1)
        up = b.each(LogicalOr, more, b.each(LogicalAnd, up, odd))
    return _with_sign(b, x, b.choose(up, _add(b, whole, b.number(1)), whole))
