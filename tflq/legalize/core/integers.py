"""Integer arithmetic: up to 32 bits in i32, where overflow wraps, then modulo the width; of 64 bits what TFLite has.

Division by 0, and of the least integer by -1, are undefined: TFLite's kernels stop there, or the machine does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tflq.dialects.arith import integers as arith
from tflq.dialects.declare import Operator
from tflq.dialects.math import integers as math
from tflq.dialects.tfl import arithmetic as tfl
from tflq.dialects.tosa import arithmetic as tosa
from tflq.dialects.tosa import bits
from tflq.errors import Refused
from tflq.ir.core import Op, Value
from tflq.ir.types import i1, i32, i64
from tflq.legalize.core.emitter import CoreEmitter
from tflq.legalize.core.registry import form

__all__: list[str] = []

_NONE: Final[dict[str, Any]] = {"fused_activation_function": "NONE"}
_LEAST: Final = -(1 << 31)

_IN_I32: Final[dict[type[Op], type[Operator]]] = {
    arith.AddI: tosa.Add,
    arith.SubI: tosa.Sub,
    arith.AndI: bits.BitwiseAnd,
    arith.OrI: bits.BitwiseOr,
    arith.XOrI: bits.BitwiseXor,
    arith.MaxSI: tosa.Maximum,
    arith.MinSI: tosa.Minimum,
}
_OF_BOOLEANS: Final[dict[type[Op], type[Operator]]] = {
    arith.AddI: bits.LogicalXor,
    arith.SubI: bits.LogicalXor,
    arith.XOrI: bits.LogicalXor,
    arith.MulI: bits.LogicalAnd,
    arith.AndI: bits.LogicalAnd,
    arith.OrI: bits.LogicalOr,
    arith.MaxUI: bits.LogicalOr,
    arith.MinUI: bits.LogicalAnd,
    arith.MaxSI: bits.LogicalAnd,  # the 1 of i1 is -1
    arith.MinSI: bits.LogicalOr,
}
_OF_64: Final[dict[type[Op], tuple[type[Operator], dict[str, Any]]]] = {
    arith.AddI: (tfl.Add, _NONE),
    arith.SubI: (tfl.Sub, _NONE),
    arith.MulI: (tfl.Mul, _NONE),
    arith.MaxSI: (tfl.Maximum, {}),
    arith.MinSI: (tfl.Minimum, {}),
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
    made = b.mul(*wide) if isinstance(op, arith.MulI) else b.emit(_IN_I32[type(op)], wide)
    return b.narrowed(made, storage)


def _no_64(op: Op) -> Refused:
    return Refused(f"TFLite has no {op.short_name} of integers of 64 bits", "compute it in 32 bits")


@form(arith.MaxUI, arith.MinUI)
def _by_unsigned(op: Op, b: CoreEmitter, x: Value, y: Value) -> Value:
    """Of 32 bits, by what orders them: the sign bit turned over."""
    storage = x.type.storage
    if storage == i64:
        raise _no_64(op)
    if storage == i1:
        return b.emit(_OF_BOOLEANS[type(op)], [x, y])
    kind = tosa.Maximum if isinstance(op, arith.MaxUI) else tosa.Minimum
    if storage != i32:
        return b.narrowed(b.emit(kind, [b.unsigned(x), b.unsigned(y)]), storage)
    turned = b.constant(_LEAST)
    return b.add(b.emit(kind, [b.add(x, turned), b.add(y, turned)]), turned)


def _truncated(b: CoreEmitter, x: Value, y: Value) -> Value:
    return b.emit(tosa.IntDiv, [x, y])


def _remainder(b: CoreEmitter, x: Value, y: Value) -> Value:
    """By 1 where it is by -1, which leaves 0, too: the quotient of the least integer would overflow."""
    by = b.select(b.equal(y, b.constant(-1)), b.constant(1), y)
    return b.sub(x, b.mul(_truncated(b, x, by), by))


def _rounded_up(b: CoreEmitter, x: Value, y: Value) -> Value:
    quotient = _truncated(b, x, y)
    rest = b.sub(x, b.mul(quotient, y))
    zero = b.constant(0)
    same = b.equal(b.greater(zero, rest), b.greater(zero, y))
    up = b.emit(bits.LogicalAnd, [b.emit(bits.LogicalNot, [b.equal(rest, zero)], same.type), same], same.type)
    return b.add(quotient, b.cast(up, i32))


_QUOTIENTS: Final[dict[type[Op], Callable[[CoreEmitter, Value, Value], Value]]] = {
    arith.DivSI: _truncated,
    arith.DivUI: _truncated,
    arith.RemSI: _remainder,
    arith.RemUI: _remainder,
    arith.CeilDivSI: _rounded_up,
    arith.CeilDivUI: _rounded_up,
    arith.FloorDivSI: lambda b, x, y: b.emit(tfl.FloorDiv, [x, y]),
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
        return b.narrowed(b.emit(bits.LogicalLeftShift, [b.signed(x), by]), storage)
    if isinstance(op, arith.ShRUI):
        return b.narrowed(b.emit(bits.LogicalRightShift, [b.unsigned(x), by]), storage)
    return b.narrowed(b.emit(bits.ArithmeticRightShift, [b.signed(x), by], round=False), storage)


@form(math.AbsI)
def _absolute(op: math.AbsI, b: CoreEmitter, x: Value) -> Value:
    storage = x.type.storage
    if storage == i64:
        return b.emit(tfl.Maximum, [x, b.emit(tfl.Sub, [b.constant(np.int64(0), i64), x], **_NONE)])
    if storage == i1:
        return x
    wide = b.signed(x)
    return b.narrowed(b.maximum(wide, b.sub(b.constant(0), wide)), storage)


@form(math.CtLz)
def _leading_zeros(op: math.CtLz, b: CoreEmitter, x: Value) -> Value:
    storage = x.type.storage
    if storage in (i1, i64):
        raise Refused(f"TFLite has no ctlz of {storage}", "compute it in 32 bits")
    counted = b.clz(b.unsigned(x))
    return b.narrowed(b.sub(counted, b.constant(32 - storage.bits)), storage)
