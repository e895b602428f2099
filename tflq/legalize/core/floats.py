"""Arithmetic of floats, f32: TFLite's builtins, and what makes them compute what MLIR says of NaN, zeros and infinity.

    add ...    the reference kernels limit results to finite floats: infinite where an operand is, where the divisor is
               0, and where the same of operands scaled by 2^-1 or 2^-64, which is exact, is beyond
    neg        by MUL of 0, of which NEG with XNNPACK is 0, by NEG of infinity
    rem        of |x| by |y| by FLOOR_MOD, exact, with the sign of x; NaN where y is 0, by which the kernel does not
               divide
    maximum    NaN where an operand is one; of 0 and -0 their sum, which is 0
    round      floor(|x|), 1 more if what is left, which is exact, is a half or more; with the sign of x
    roundeven  the same, but of a half only if the floor is odd
    trunc      floor(|x|) with the sign of x
    ceil       -floor(-x)

What a bound of the operands says cannot happen is left out. CEIL and ROUND are not used: the reference kernels do not
have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from tflq.dialects.arith import floats as arith
from tflq.dialects.declare import Operator
from tflq.dialects.math import functions, rounding
from tflq.dialects.math.several import ClampF, PowF
from tflq.dialects.tfl import activation, unary
from tflq.dialects.tfl import arithmetic as tfl
from tflq.dialects.tfl.comparison import Equal, Greater, GreaterEqual, Less, SelectV2
from tflq.dialects.tosa.bits import LogicalAnd, LogicalOr
from tflq.ir.core import Op, Value
from tflq.ir.types import f32, i1
from tflq.legalize.core.emitter import CoreEmitter
from tflq.legalize.core.registry import form

__all__: list[str] = []

_NONE: Final[dict[str, Any]] = {"fused_activation_function": "NONE"}
_BUILTINS: Final[dict[type[Op], type[Operator]]] = {
    rounding.AbsF: unary.Abs,
    rounding.Floor: unary.Floor,
    functions.Cos: unary.Cos,
    functions.Exp: unary.Exp,
    functions.Log: unary.Log,
    functions.Rsqrt: unary.Rsqrt,
    functions.Sin: unary.Sin,
    functions.Sqrt: unary.Sqrt,
    functions.Tanh: activation.Tanh,
    PowF: tfl.Pow,
}
_ADDS: Final[dict[type[Op], type[Operator]]] = {arith.AddF: tfl.Add, arith.SubF: tfl.Sub}


@form(*_BUILTINS)
def _builtin(op: Op, b: CoreEmitter, *operands: Value) -> Value:
    made = b.emit(_BUILTINS[type(op)], operands)
    if isinstance(op, (rounding.AbsF, rounding.Floor)) and (reach := b.reach(operands[0])) is not None:
        return b.within(made, reach + 1)
    return made


def _add(b: CoreEmitter, x: Value, y: Value) -> Value:
    return b.emit(tfl.Add, [x, y], **_NONE)


def _sub(b: CoreEmitter, x: Value, y: Value) -> Value:
    return b.emit(tfl.Sub, [x, y], **_NONE)


def _mul(b: CoreEmitter, x: Value, y: Value) -> Value:
    return b.emit(tfl.Mul, [x, y], **_NONE)


@form(arith.AddF, arith.SubF)
def _sum(op: Op, b: CoreEmitter, x: Value, y: Value) -> Value:
    kind, (p, q) = _ADDS[type(op)], (b.reach(x), b.reach(y))
    made = b.within(b.emit(kind, [x, y], **_NONE), None if p is None or q is None else p + q)
    if b.reach(made) is not None:
        return made
    half = b.constant(0.5, f32)
    scaled = b.emit(kind, [_mul(b, x, half), _mul(b, y, half)], **_NONE)
    return _unlimited(b, made, [_infinite(b, x), _infinite(b, y), _from(b, scaled, 2.0**127)])


@form(arith.MulF)
def _product(op: arith.MulF, b: CoreEmitter, x: Value, y: Value) -> Value:
    p, q = b.reach(x), b.reach(y)
    made = b.within(_mul(b, x, y), None if p is None or q is None else p * q)
    if b.reach(made) is not None:
        return made
    scaled = _mul(b, _mul(b, x, b.constant(2.0**-64, f32)), y)
    return _unlimited(b, made, [_infinite(b, x), _infinite(b, y), _from(b, scaled, 2.0**64)])


@form(arith.DivF)
def _quotient(op: arith.DivF, b: CoreEmitter, x: Value, y: Value) -> Value:
    p = b.reach(x)
    least = float(np.abs(y.array).min(initial=np.inf)) if y.is_constant else 0.0
    made = b.within(b.emit(tfl.Div, [x, y], **_NONE), p / least if p is not None and least > 0 else None)
    if b.reach(made) is not None:
        return made
    scaled = b.emit(tfl.Div, [_mul(b, x, b.constant(2.0**-64, f32)), y], **_NONE)
    zero = b.emit(Equal, [y, b.constant(0, f32)], i1)
    return _unlimited(b, made, [_infinite(b, x), zero, _from(b, scaled, 2.0**64)])


def _infinite(b: CoreEmitter, x: Value) -> Value | None:
    """Whether x is infinite; None if it cannot be."""
    return None if b.reach(x) is not None else b.emit(Equal, [b.emit(unary.Abs, [x]), b.constant(np.inf, f32)], i1)


def _from(b: CoreEmitter, x: Value, limit: float) -> Value:
    return b.emit(GreaterEqual, [b.emit(unary.Abs, [x]), b.constant(limit, f32)], i1)


def _unlimited(b: CoreEmitter, made: Value, beyond: Sequence[Value | None]) -> Value:
    """A result that kernels may have limited, infinite where one of these holds; NaN stays."""
    over = reduce(lambda p, q: b.emit(LogicalOr, [p, q]), [each for each in beyond if each is not None])
    zero, infinity = b.constant(0, f32), b.constant(np.inf, f32)
    below = b.emit(SelectV2, [b.emit(Less, [made, zero], i1), b.constant(-np.inf, f32), made])
    return b.emit(SelectV2, [over, b.emit(SelectV2, [b.emit(Greater, [made, zero], i1), infinity, below]), made])


@form(arith.NegF)
def _negated(op: arith.NegF, b: CoreEmitter, x: Value) -> Value:
    return _negative(b, x)


def _negative(b: CoreEmitter, x: Value) -> Value:
    made = b.within(_mul(b, x, b.constant(-1, f32)), b.reach(x))
    if b.reach(x) is not None:
        return made
    return b.emit(SelectV2, [b.emit(Equal, [x, b.constant(0, f32)], i1), made, b.emit(unary.Neg, [x])])


@form(arith.RemF)
def _remainder(op: arith.RemF, b: CoreEmitter, x: Value, y: Value) -> Value:
    size, by = b.emit(unary.Abs, [x]), b.emit(unary.Abs, [y])
    if y.is_constant and y.array.all() and not np.isnan(y.array).any():
        return b.within(_with_sign(b, x, b.emit(tfl.FloorMod, [size, by])), b.reach(x))
    divides = b.emit(Greater, [by, b.constant(0, f32)], i1)  # not 0, nor NaN
    rest = b.emit(tfl.FloorMod, [size, b.emit(SelectV2, [divides, by, b.constant(1, f32)])])
    return b.emit(SelectV2, [divides, _with_sign(b, x, rest), b.constant(np.nan, f32)])


@form(arith.MaximumF, arith.MinimumF)
def _extreme(op: arith.MaximumF | arith.MinimumF, b: CoreEmitter, x: Value, y: Value) -> Value:
    return extreme(b, x, y, greater=isinstance(op, arith.MaximumF))


def extreme(b: CoreEmitter, x: Value, y: Value, *, greater: bool) -> Value:
    """The greater or the lesser of two floats."""
    made = b.emit(tfl.Maximum if greater else tfl.Minimum, [x, y])
    if not any(v.is_constant and v.array.all() for v in (x, y)):  # both can be 0
        zero = b.constant(0, f32)
        both = b.emit(LogicalAnd, [b.emit(Equal, [x, zero], i1), b.emit(Equal, [y, zero], i1)])
        made = b.emit(SelectV2, [both, _add(b, x, y) if greater else _of_least_zero(b, x, y), made])
    reaches = [b.reach(v) for v in (x, y)]
    for value, reach in zip((x, y), reaches, strict=True):
        if reach is None:
            made = b.emit(SelectV2, [b.emit(Equal, [value, value], i1), made, value])
    return b.within(made, None if None in reaches else max(r for r in reaches if r is not None))


def _of_least_zero(b: CoreEmitter, x: Value, y: Value) -> Value:
    """-0 of zeros of which one is -0: the negative of the sum of their negatives."""
    minus = b.constant(-1, f32)
    return _mul(b, _add(b, _mul(b, x, minus), _mul(b, y, minus)), minus)


@form(ClampF)
def _clamped(op: ClampF, b: CoreEmitter, x: Value, low: Value, high: Value) -> Value:
    return extreme(b, extreme(b, x, low, greater=True), high, greater=False)


def _with_sign(b: CoreEmitter, x: Value, size: Value) -> Value:
    """A number from 0 up with the sign of x; x itself where that is 0 or -0."""
    zero = b.constant(0, f32)
    signed = b.emit(SelectV2, [b.emit(Less, [x, zero], i1), _negative(b, size), size])
    return b.emit(SelectV2, [b.emit(Equal, [x, zero], i1), x, signed])


@form(rounding.Trunc)
def _truncated(op: rounding.Trunc, b: CoreEmitter, x: Value) -> Value:
    size = b.within(b.emit(unary.Floor, [b.emit(unary.Abs, [x])]), b.reach(x))
    return b.within(_with_sign(b, x, size), b.reach(x))


@form(rounding.Ceil)
def _ceiling(op: rounding.Ceil, b: CoreEmitter, x: Value) -> Value:
    reach = b.reach(x)
    whole = b.within(b.emit(unary.Floor, [_negative(b, x)]), None if reach is None else reach + 1)
    return _negative(b, whole)


@form(rounding.Round, rounding.RoundEven)
def _nearest(op: rounding.Round | rounding.RoundEven, b: CoreEmitter, x: Value) -> Value:
    size, half = b.emit(unary.Abs, [x]), b.constant(0.5, f32)
    whole = b.emit(unary.Floor, [size])
    rest = _sub(b, size, whole)
    up = b.emit(GreaterEqual, [rest, half], i1)
    if isinstance(op, rounding.RoundEven):
        halved = _mul(b, whole, half)
        odd = b.emit(Greater, [_sub(b, halved, b.emit(unary.Floor, [halved])), b.constant(0, f32)], i1)
        more = b.emit(Greater, [rest, half], i1)
        up = b.emit(LogicalOr, [more, b.emit(LogicalAnd, [up, odd])])
    reach = None if (given := b.reach(x)) is None else given + 1
    size = b.within(b.emit(SelectV2, [up, _add(b, whole, b.constant(1, f32)), whole]), reach)
    return b.within(_with_sign(b, x, size), reach)
