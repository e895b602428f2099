"""Arithmetic of floats, f32: TFLite's builtins, and what makes them compute what MLIR says of NaN and of zeros.

rem        of |x| by |y| by FLOOR_MOD, exact, with the sign of x; NaN where y is 0, by which the kernel does not
           divide
maximum    NaN where an operand is one; of 0 and -0 their sum, which is 0
round      floor(|x|), 1 more if what is left, which is exact, is a half or more; with the sign of x
trunc      the integer part, below 0 rounded up
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
from tflq.dialects.tfl.comparison import Equal, GreaterEqual, Less
from tflq.dialects.tosa.bits import LogicalAnd
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
    rounding.Ceil: (unary.Ceil, {}),
    rounding.Floor: (unary.Floor, {}),
    rounding.RoundEven: (unary.Round, {}),
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
    signed = b.choose(b.each(Less, x, zero, to=i1), b.each(unary.Neg, rest), rest)
    signed = b.choose(b.each(Equal, x, zero, to=i1), x, signed)  # -0 stays
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


@form(rounding.Trunc)
def _truncated(op: rounding.Trunc, b: CoreEmitter, x: Value) -> Value:
    below = b.each(Less, x, b.number(0), to=i1)
    return b.choose(below, b.each(unary.Ceil, x), b.each(unary.Floor, x))


@form(rounding.Round)
def _away(op: rounding.Round, b: CoreEmitter, x: Value) -> Value:
    zero = b.number(0)
    size = b.each(unary.Abs, x)
    whole = b.each(unary.Floor, size)
    up = b.each(GreaterEqual, _sub(b, size, whole), b.number(0.5), to=i1)
    whole = b.choose(up, _add(b, whole, b.number(1)), whole)
    signed = b.choose(b.each(Less, x, zero, to=i1), b.each(unary.Neg, whole), whole)
    return b.choose(b.each(Equal, x, zero, to=i1), x, signed)
