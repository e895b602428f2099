"""Forms of `arith` and `math`: conversions, comparisons and arithmetic of the core dialects, on integers and f32, as
builtins of TFLite and ops of `tosa`.

Integers of up to 32 bits are computed in i32, where overflow wraps, then modulo the width; those of 64 bits by what
TFLite has. Division by 0, and of the least integer by -1, are undefined: TFLite's kernels stop there, or the machine
does. A float that the integer type does not hold saturates, and NaN becomes 0: `arith` leaves it open.

Of floats TFLite's builtins are used, with what makes them compute what MLIR says of NaN, zeros and infinity:

    add ...     the reference kernels limit results to finite floats: infinite where an operand is, where the divisor
                is 0, and where the same of operands scaled by 2^-1 or 2^-64, which is exact, is beyond
    neg         by MUL of 0, because NEG of 0 with XNNPACK is 0; by NEG of infinity
    rem         FLOOR_MOD of |x| and |y|, exact, with the sign of x; NaN where y is 0: the kernel does not divide by 0
    maximum     NaN where an operand is one; of 0 and -0 their sum, which is 0
    round       floor(|x|), 1 more if what is left, which is exact, is a half or more; with the sign of x
    roundeven   the same, but of a half only if the floor is odd
    trunc       floor(|x|) with the sign of x
    ceil        -floor(-x)

A guard that the bounds of the operands make needless is left out. CEIL and ROUND are not used: the reference kernels do
not have them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.builder import Operand
from tflq.dialects.declare import Operator
from tflq.dialects.tfl.activation import Tanh
from tflq.dialects.tfl.arithmetic import (
    Abs,
    Add,
    Cos,
    Div,
    Exp,
    Floor,
    FloorDiv,
    FloorMod,
    Log,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Pow,
    Rsqrt,
    Sin,
    Sqrt,
    Sub,
)
from tflq.dialects.tfl.casts import Bitcast
from tflq.dialects.tfl.comparison import Equal, Greater, GreaterEqual, Less, LessEqual
from tflq.dialects.tosa import elementwise as tosa
from tflq.formats.mlir.dialects import arith, math
from tflq.formats.mlir.rules import CoreEmitter, form, plain_type
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, f32, i1, i8, i32, i64, ui8, ui32

_NONE: Final[dict[str, Any]] = {"fused_activation_function": "NONE"}
_LEAST: Final = -(1 << 31)


def _target(op: Op) -> ScalarType:
    return plain_type(op.result.type).storage


# Conversions.


@form(arith.ExtSI, arith.TruncI, arith.IndexCast)
def _by_sign(op: Op, b: CoreEmitter, x: Value) -> Value:
    source, to = x.type.storage, _target(op)
    if source == to:
        return x
    if i64 not in (source, to):
        return b.narrowed(b.signed(x), to)
    if to == i64:
        return b.converted(b.signed(x), i64)
    return b.narrowed(b.converted(x, i32), to)


@form(arith.ExtUI, arith.IndexCastUI)
def _by_zeros(op: Op, b: CoreEmitter, x: Value) -> Value:
    source, to = x.type.storage, _target(op)
    if source == to:
        return x
    if source == i64:
        return b.narrowed(b.converted(x, i32), to)
    if source == i32:
        return b.converted(b.emit(Bitcast, [x], x.type.with_element(ui32)), i64)
    wide = b.unsigned(x)
    return b.converted(wide, i64) if to == i64 else b.narrowed(wide, to)


@form(arith.SIToFP)
def _from_signed(op: arith.SIToFP, b: CoreEmitter, x: Value) -> Value:
    real = b.converted(b.signed(x) if x.type.storage == i1 else x, f32)
    return b.within(real, 2.0 ** (x.type.storage.bits - 1))


@form(arith.UIToFP)
def _from_unsigned(op: arith.UIToFP, b: CoreEmitter, x: Value) -> Value:
    storage = x.type.storage
    if storage == i64:
        raise Refused("TFLite converts no unsigned integers of 64 bits", "use arith.sitofp, or 32 bits")
    if storage == i32:
        real = b.converted(b.converted(b.emit(Bitcast, [x], x.type.with_element(ui32)), i64), f32)
    elif storage == i8:
        real = b.converted(b.emit(Bitcast, [x], x.type.with_element(ui8)), f32)
    else:
        real = b.converted(b.unsigned(x), f32)
    return b.within(real, 2.0**storage.bits)


@form(arith.FPToSI, arith.FPToUI)
def _to_integer(op: Op, b: CoreEmitter, x: Value) -> Value:
    to, signed = _target(op), isinstance(op, arith.FPToSI)
    bits = 1 if to == i1 else to.bits
    if to == i64 and not signed:
        raise Refused("TFLite converts to no unsigned integers of 64 bits", "use arith.fptosi, or 32 bits")
    y = x if b.reach(x) is not None else b.choose(b.compare(Equal, x, x), x, 0)
    if to == i64:
        return b.converted(y, i64)
    if to == i32 and signed:
        return b.converted(y, i32)  # saturates
    low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) if signed else (0.0, 2.0**bits - 1)
    if bits == 32:  # 2^32 is a float, 2^32 - 1 is not
        wide = b.converted(b.limited(y, low, 2.0**32), i64)
        return b.converted(b.limited(wide, None, (1 << 32) - 1), i32)
    return b.narrowed(b.converted(b.limited(y, low, high), i32), to)


@form(arith.Bitcast)
def _bits(op: arith.Bitcast, b: CoreEmitter, x: Value) -> Value:
    if x.type.storage == _target(op):
        return x
    raise Refused("TFLite has no BITCAST between floats and integers on all its runtimes", "compute on the integers")


@form(arith.ExtF, arith.TruncF)
def _between_widths(op: arith.ExtF | arith.TruncF, b: CoreEmitter, x: Value) -> Value:
    what = f"TFLite computes in f32 only, not in {op.input.type.element} and {op.result.type.element}"
    raise Refused(what, "write the model in f32")


# Comparison and choice.


_ORDERED: Final[dict[str, type[Operator]]] = {
    "eq": Equal,
    "gt": Greater,
    "ge": GreaterEqual,
    "lt": Less,
    "le": LessEqual,
}
"""None of them holds of NaN."""
_OPPOSITE: Final = {"gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}


def _not(b: CoreEmitter, x: Value) -> Value:
    return b.emit(tosa.LogicalNot, [x])


@form(arith.CmpI)
def _integers(op: arith.CmpI, b: CoreEmitter, x: Value, y: Value) -> Value:
    storage, word = x.type.storage, arith.COMPARE_INTEGER[op.predicate]
    if storage == i64:
        if word[0] == "u":
            x, y = (_add(b, v, np.int64(-(1 << 63))) for v in (x, y))
        if word == "ne":
            return _not(b, b.compare(Equal, x, y))
        return b.compare(_ORDERED[word[-2:]], x, y)
    if word[0] == "u" and storage == i32:
        x, y = (b.add(v, _LEAST) for v in (x, y))
    elif word[0] == "u":
        x, y = b.unsigned(x), b.unsigned(y)
    else:
        x, y = b.signed(x), b.signed(y)
    if word[-2:] in ("eq", "ne"):
        return b.equal(x, y) if word == "eq" else _not(b, b.equal(x, y))
    if word[-2] == "l":
        x, y = y, x
    return b.greater(x, y) if word[-1] == "t" else b.greater_equal(x, y)


@form(arith.CmpF)
def _floats(op: arith.CmpF, b: CoreEmitter, x: Value, y: Value) -> Value:
    word = arith.COMPARE_FLOAT[op.predicate]
    if word in ("true", "false"):
        same = b.compare(Equal, x, y)
        always = b.emit(tosa.LogicalOr, [same, _not(b, same)])
        return always if word == "true" else _not(b, always)
    if word in ("ord", "uno"):
        number = [_not(b, b.compare(Equal, v, v)) for v in (x, y)]
        unordered = b.emit(tosa.LogicalOr, number)
        return unordered if word == "uno" else _not(b, unordered)
    ordered, test = word[0] == "o", word[1:]
    if test == "ne" or (test == "eq" and not ordered):
        apart = b.emit(tosa.LogicalOr, [b.compare(Less, x, y), b.compare(Greater, x, y)])
        if word == "one":
            return apart
        return _not(b, apart) if word == "ueq" else _not(b, b.compare(Equal, x, y))
    if ordered:
        return b.compare(_ORDERED[test], x, y)
    return _not(b, b.compare(_ORDERED[_OPPOSITE[test]], x, y))


@form(arith.Select)
def _select(op: arith.Select, b: CoreEmitter, condition: Value, x: Value, y: Value) -> Value:
    storage = x.type.storage
    if storage == f32:
        reaches = [b.reach(v) for v in (x, y)]
        known = [reach for reach in reaches if reach is not None]
        return b.within(b.choose(condition, x, y), max(known) if len(known) == 2 else None)
    if storage == i64:
        return b.choose(condition, x, y)
    return b.narrowed(b.select(condition, b.cast(x, i32), b.cast(y, i32)), storage)


@form(math.IsNaN)
def _is_nan(op: math.IsNaN, b: CoreEmitter, x: Value) -> Value:
    return _not(b, b.compare(Equal, x, x))


@form(math.IsInf)
def _is_infinite(op: math.IsInf, b: CoreEmitter, x: Value) -> Value:
    return b.compare(Equal, b.emit(Abs, [x]), np.inf)


@form(math.IsFinite)
def _is_finite(op: Op, b: CoreEmitter, x: Value) -> Value:
    return b.compare(Less, b.emit(Abs, [x]), np.inf)


# Arithmetic of floats.


_BUILTINS: Final[dict[type[Op], type[Operator]]] = {
    math.AbsF: Abs,
    math.Floor: Floor,
    math.Cos: Cos,
    math.Exp: Exp,
    math.Log: Log,
    math.Rsqrt: Rsqrt,
    math.Sin: Sin,
    math.Sqrt: Sqrt,
    math.Tanh: Tanh,
    math.PowF: Pow,
}
_ADDS: Final[dict[type[Op], type[Operator]]] = {arith.AddF: Add, arith.SubF: Sub}


@form(*_BUILTINS)
def _builtin(op: Op, b: CoreEmitter, *operands: Value) -> Value:
    result = b.emit(_BUILTINS[type(op)], operands)
    if isinstance(op, (math.AbsF, math.Floor)) and (reach := b.reach(operands[0])) is not None:
        return b.within(result, reach + 1)
    return result


def _add(b: CoreEmitter, x: Operand, y: Operand) -> Value:
    return b.emit(Add, b.alike(x, y), **_NONE)


def _sub(b: CoreEmitter, x: Operand, y: Operand) -> Value:
    return b.emit(Sub, b.alike(x, y), **_NONE)


def _mul(b: CoreEmitter, x: Operand, y: Operand) -> Value:
    return b.emit(Mul, b.alike(x, y), **_NONE)


@form(arith.AddF, arith.SubF)
def _sum(op: Op, b: CoreEmitter, x: Value, y: Value) -> Value:
    kind, (p, q) = _ADDS[type(op)], (b.reach(x), b.reach(y))
    limited = b.within(b.emit(kind, [x, y], **_NONE), None if p is None or q is None else p + q)
    if b.reach(limited) is not None:
        return limited
    scaled = b.emit(kind, [_mul(b, x, 0.5), _mul(b, y, 0.5)], **_NONE)
    return _unlimited(b, limited, [_infinite(b, x), _infinite(b, y), _from(b, scaled, 2.0**127)])


@form(arith.MulF)
def _product(op: arith.MulF, b: CoreEmitter, x: Value, y: Value) -> Value:
    p, q = b.reach(x), b.reach(y)
    limited = b.within(_mul(b, x, y), None if p is None or q is None else p * q)
    if b.reach(limited) is not None:
        return limited
    scaled = _mul(b, _mul(b, x, 2.0**-64), y)
    return _unlimited(b, limited, [_infinite(b, x), _infinite(b, y), _from(b, scaled, 2.0**64)])


@form(arith.DivF)
def _quotient(op: arith.DivF, b: CoreEmitter, x: Value, y: Value) -> Value:
    p = b.reach(x)
    least = float(np.abs(y.array).min(initial=np.inf)) if y.is_constant else 0.0
    limited = b.within(b.emit(Div, [x, y], **_NONE), p / least if p is not None and least > 0 else None)
    if b.reach(limited) is not None:
        return limited
    scaled = b.emit(Div, [_mul(b, x, 2.0**-64), y], **_NONE)
    zero = b.compare(Equal, y, 0)
    return _unlimited(b, limited, [_infinite(b, x), zero, _from(b, scaled, 2.0**64)])


def _infinite(b: CoreEmitter, x: Value) -> Value | None:
    """Whether x is infinite; None if it cannot be."""
    return None if b.reach(x) is not None else b.compare(Equal, b.emit(Abs, [x]), np.inf)


def _from(b: CoreEmitter, x: Value, limit: float) -> Value:
    """Whether |x| is a limit or more."""
    return b.compare(GreaterEqual, b.emit(Abs, [x]), limit)


def _unlimited(b: CoreEmitter, limited: Value, beyond: Sequence[Value | None]) -> Value:
    """A result that kernels may have limited, made infinite where one of these conditions holds; NaN stays."""
    over = reduce(
        lambda p, q: b.emit(tosa.LogicalOr, [p, q]), [condition for condition in beyond if condition is not None]
    )
    below = b.choose(b.compare(Less, limited, 0), -np.inf, limited)
    return b.choose(over, b.choose(b.compare(Greater, limited, 0), np.inf, below), limited)


def _negative(b: CoreEmitter, x: Value) -> Value:
    product = b.within(_mul(b, x, -1), b.reach(x))
    if b.reach(x) is not None:
        return product
    return b.choose(b.compare(Equal, x, 0), product, b.emit(Neg, [x]))


@form(arith.NegF)
def _negated(op: arith.NegF, b: CoreEmitter, x: Value) -> Value:
    return _negative(b, x)


@form(arith.RemF)
def _remainder(op: arith.RemF, b: CoreEmitter, x: Value, y: Value) -> Value:
    size, by = b.emit(Abs, [x]), b.emit(Abs, [y])
    if y.is_constant and y.array.all() and not np.isnan(y.array).any():
        return b.within(_with_sign(b, x, b.emit(FloorMod, [size, by])), b.reach(x))
    divides = b.compare(Greater, by, 0)  # not 0, nor NaN
    rest = b.emit(FloorMod, [size, b.choose(divides, by, 1)])
    return b.choose(divides, _with_sign(b, x, rest), np.nan)


@form(arith.MaximumF, arith.MinimumF)
def _extreme(op: arith.MaximumF | arith.MinimumF, b: CoreEmitter, x: Value, y: Value) -> Value:
    return extreme(b, x, y, greater=isinstance(op, arith.MaximumF))


def extreme(b: CoreEmitter, x: Value, y: Value, *, greater: bool) -> Value:
    """The greater or the lesser of two floats."""
    chosen = b.emit(Maximum if greater else Minimum, [x, y])
    if not any(v.is_constant and v.array.all() for v in (x, y)):  # both can be 0
        both = b.emit(tosa.LogicalAnd, [b.compare(Equal, x, 0), b.compare(Equal, y, 0)])
        chosen = b.choose(both, _add(b, x, y) if greater else _of_least_zero(b, x, y), chosen)
    reaches = [b.reach(v) for v in (x, y)]
    for value, reach in zip((x, y), reaches, strict=True):
        if reach is None:
            chosen = b.choose(b.compare(Equal, value, value), chosen, value)
    return b.within(chosen, None if None in reaches else max(r for r in reaches if r is not None))


def _of_least_zero(b: CoreEmitter, x: Value, y: Value) -> Value:
    """-0 of zeros of which one is -0: the negative of the sum of their negatives."""
    return _mul(b, _add(b, _mul(b, x, -1), _mul(b, y, -1)), -1)


@form(math.ClampF)
def _clamped(op: math.ClampF, b: CoreEmitter, x: Value, low: Value, high: Value) -> Value:
    return extreme(b, extreme(b, x, low, greater=True), high, greater=False)


def _with_sign(b: CoreEmitter, x: Value, size: Value) -> Value:
    """A number that is not negative, with the sign of x; x itself where that is 0 or -0."""
    signed = b.choose(b.compare(Less, x, 0), _negative(b, size), size)
    return b.choose(b.compare(Equal, x, 0), x, signed)


@form(math.Trunc)
def _truncated(op: math.Trunc, b: CoreEmitter, x: Value) -> Value:
    size = b.within(b.emit(Floor, [b.emit(Abs, [x])]), b.reach(x))
    return b.within(_with_sign(b, x, size), b.reach(x))


@form(math.Ceil)
def _ceiling(op: math.Ceil, b: CoreEmitter, x: Value) -> Value:
    reach = b.reach(x)
    whole = b.within(b.emit(Floor, [_negative(b, x)]), None if reach is None else reach + 1)
    return _negative(b, whole)


@form(math.Round, math.RoundEven)
def _nearest(op: math.Round | math.RoundEven, b: CoreEmitter, x: Value) -> Value:
    size = b.emit(Abs, [x])
    whole = b.emit(Floor, [size])
    rest = _sub(b, size, whole)
    up = b.compare(GreaterEqual, rest, 0.5)
    if isinstance(op, math.RoundEven):
        halved = _mul(b, whole, 0.5)
        odd = b.compare(Greater, _sub(b, halved, b.emit(Floor, [halved])), 0)
        more = b.compare(Greater, rest, 0.5)
        up = b.emit(tosa.LogicalOr, [more, b.emit(tosa.LogicalAnd, [up, odd])])
    reach = b.reach(x)
    reach = None if reach is None else reach + 1
    size = b.within(b.choose(up, _add(b, whole, 1), whole), reach)
    return b.within(_with_sign(b, x, size), reach)


# Arithmetic of integers.


_IN_I32: Final[dict[type[Op], type[Operator]]] = {
    arith.AddI: tosa.Add,
    arith.SubI: tosa.Sub,
    arith.AndI: tosa.BitwiseAnd,
    arith.OrI: tosa.BitwiseOr,
    arith.XOrI: tosa.BitwiseXor,
    arith.MaxSI: tosa.Maximum,
    arith.MinSI: tosa.Minimum,
}
_OF_BOOLEANS: Final[dict[type[Op], type[Operator]]] = {
    arith.AddI: tosa.LogicalXor,
    arith.SubI: tosa.LogicalXor,
    arith.XOrI: tosa.LogicalXor,
    arith.MulI: tosa.LogicalAnd,
    arith.AndI: tosa.LogicalAnd,
    arith.OrI: tosa.LogicalOr,
    arith.MaxUI: tosa.LogicalOr,
    arith.MinUI: tosa.LogicalAnd,
    arith.MaxSI: tosa.LogicalAnd,  # the 1 of i1 is -1
    arith.MinSI: tosa.LogicalOr,
}
_OF_64: Final[dict[type[Op], tuple[type[Operator], dict[str, Any]]]] = {
    arith.AddI: (Add, _NONE),
    arith.SubI: (Sub, _NONE),
    arith.MulI: (Mul, _NONE),
    arith.MaxSI: (Maximum, {}),
    arith.MinSI: (Minimum, {}),
}


@form(*_IN_I32, arith.MulI)
def _wrapping(op: Op, b: CoreEmitter, x: Value, y: Value) -> Value:
    storage = x.type.storage
    if storage == i64:
        if type(op) not in _OF_64:
            raise _no_64(op)
        kind, attributes = _OF_64[type(op)]
        return b.emit(kind, [x, y], **attributes)
    if storage == i1:
        return b.emit(_OF_BOOLEANS[type(op)], [x, y])
    wide = b.signed(x), b.signed(y)
    result = b.mul(*wide) if isinstance(op, arith.MulI) else b.emit(_IN_I32[type(op)], wide)
    return b.narrowed(result, storage)


def _no_64(op: Op) -> Refused:
    return Refused(f"TFLite has no {op.short_name} of integers of 64 bits", "compute it in 32 bits")


@form(arith.MaxUI, arith.MinUI)
def _by_unsigned(op: Op, b: CoreEmitter, x: Value, y: Value) -> Value:
    """Integers of 32 bits are compared with their sign bits turned over."""
    storage = x.type.storage
    if storage == i64:
        raise _no_64(op)
    if storage == i1:
        return b.emit(_OF_BOOLEANS[type(op)], [x, y])
    kind = tosa.Maximum if isinstance(op, arith.MaxUI) else tosa.Minimum
    if storage != i32:
        return b.narrowed(b.emit(kind, [b.unsigned(x), b.unsigned(y)]), storage)
    return b.add(b.emit(kind, [b.add(x, _LEAST), b.add(y, _LEAST)]), _LEAST)


def _rest(b: CoreEmitter, x: Value, y: Value) -> Value:
    """Divides by 1 instead of -1, which leaves 0, too: the quotient of the least integer would overflow."""
    by = b.select(b.equal(y, -1), 1, y)
    return b.sub(x, b.mul(b.int_div(x, by), by))


def _rounded_up(b: CoreEmitter, x: Value, y: Value) -> Value:
    quotient = b.int_div(x, y)
    rest = b.sub(x, b.mul(quotient, y))
    same = b.equal(b.greater(0, rest), b.greater(0, y))
    up = b.emit(tosa.LogicalAnd, [b.emit(tosa.LogicalNot, [b.equal(rest, 0)], same.type), same], same.type)
    return b.add(quotient, b.cast(up, i32))


_QUOTIENTS: Final[dict[type[Op], Callable[[CoreEmitter, Value, Value], Value]]] = {
    **dict.fromkeys((arith.DivSI, arith.DivUI), lambda b, x, y: b.int_div(x, y)),
    **dict.fromkeys((arith.RemSI, arith.RemUI), _rest),
    **dict.fromkeys((arith.CeilDivSI, arith.CeilDivUI), _rounded_up),
    arith.FloorDivSI: lambda b, x, y: b.emit(FloorDiv, [x, y]),
}
_UNSIGNED: Final = (arith.DivUI, arith.RemUI, arith.CeilDivUI)


@form(*_QUOTIENTS)
def _divided(op: Op, b: CoreEmitter, x: Value, y: Value) -> Value:
    storage = x.type.storage
    without_sign = isinstance(op, _UNSIGNED)
    if storage == i64:
        raise _no_64(op)
    if storage == i32 and without_sign:
        raise Refused("TFLite divides no unsigned integers of 32 bits", "use the signed op, or 16 bits")
    wide = (b.unsigned(x), b.unsigned(y)) if without_sign else (b.signed(x), b.signed(y))
    return b.narrowed(_QUOTIENTS[type(op)](b, *wide), storage)


@form(arith.ShLI, arith.ShRSI, arith.ShRUI)
def _shifted(op: Op, b: CoreEmitter, x: Value, y: Value) -> Value:
    storage = x.type.storage
    if storage == i64:
        raise _no_64(op)
    if storage == i1:  # by less than a bit
        return x
    by = b.unsigned(y)
    if isinstance(op, arith.ShLI):
        return b.narrowed(b.emit(tosa.LogicalLeftShift, [b.signed(x), by]), storage)
    if isinstance(op, arith.ShRUI):
        return b.narrowed(b.emit(tosa.LogicalRightShift, [b.unsigned(x), by]), storage)
    return b.narrowed(b.emit(tosa.ArithmeticRightShift, [b.signed(x), by], round=False), storage)


@form(math.AbsI)
def _absolute(op: math.AbsI, b: CoreEmitter, x: Value) -> Value:
    storage = x.type.storage
    if storage == i64:
        return b.emit(Maximum, [x, _sub(b, 0, x)])
    if storage == i1:
        return x
    wide = b.signed(x)
    return b.narrowed(b.maximum(wide, b.sub(0, wide)), storage)


@form(math.CtLz)
def _leading_zeros(op: math.CtLz, b: CoreEmitter, x: Value) -> Value:
    storage = x.type.storage
    if storage in (i1, i64):
        raise Refused(f"TFLite has no ctlz of {storage}", "compute it in 32 bits")
    counted = b.clz(b.unsigned(x))
    return b.narrowed(b.sub(counted, 32 - storage.bits), storage)
