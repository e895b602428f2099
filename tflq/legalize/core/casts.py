"""Conversions between integers, and between integers and f32.

A float that the integer type does not hold saturates, and NaN is 0: `arith` leaves it open.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.arith import casts as arith
from tflq.dialects.tfl.arithmetic import Maximum, Minimum
from tflq.dialects.tfl.bits import Bitcast
from tflq.dialects.tfl.comparison import Equal, SelectV2
from tflq.errors import Refused
from tflq.ir.core import Op, Value
from tflq.ir.scalars import ui8, ui32
from tflq.ir.types import ScalarType, f32, i1, i8, i32, i64
from tflq.legalize.core.emitter import CoreEmitter, plain_type
from tflq.legalize.core.registry import form

__all__: list[str] = []


def _target(op: Op) -> ScalarType:
    return plain_type(op.result.type).storage


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
        return b.converted(b.emit(Bitcast, [x], ui32), i64)
    wide = b.unsigned(x)
    return b.converted(wide, i64) if to == i64 else b.narrowed(wide, to)


@form(arith.SIToFP)
def _from_signed(op: arith.SIToFP, b: CoreEmitter, x: Value) -> Value:
    made = b.converted(b.signed(x) if x.type.storage == i1 else x, f32)
    return b.within(made, 2.0 ** (x.type.storage.bits - 1))


@form(arith.UIToFP)
def _from_unsigned(op: arith.UIToFP, b: CoreEmitter, x: Value) -> Value:
    storage = x.type.storage
    if storage == i64:
        raise Refused("TFLite converts no unsigned integers of 64 bits", "use arith.sitofp, or 32 bits")
    if storage == i32:
        made = b.converted(b.converted(b.emit(Bitcast, [x], ui32), i64), f32)
    elif storage == i8:
        made = b.converted(b.emit(Bitcast, [x], ui8), f32)
    else:
        made = b.converted(b.unsigned(x), f32)
    return b.within(made, 2.0**storage.bits)


@form(arith.FPToSI, arith.FPToUI)
def _to_integer(op: Op, b: CoreEmitter, x: Value) -> Value:
    to, signed = _target(op), isinstance(op, arith.FPToSI)
    bits = 1 if to == i1 else to.bits
    if to == i64 and not signed:
        raise Refused("TFLite converts to no unsigned integers of 64 bits", "use arith.fptosi, or 32 bits")
    y = x if b.reach(x) is not None else b.emit(SelectV2, [b.emit(Equal, [x, x], i1), x, b.constant(0, f32)])
    if to == i64:
        return b.converted(y, i64)
    if to == i32 and signed:
        return b.converted(y, i32)  # saturates
    low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) if signed else (0.0, 2.0**bits - 1)
    if bits == 32:  # 2^32 is a float, and what is below it none
        wide = b.converted(b.emit(Minimum, [b.emit(Maximum, [y, b.constant(low, f32)]), b.constant(2.0**32, f32)]), i64)
        return b.converted(b.emit(Minimum, [wide, b.constant(np.int64((1 << 32) - 1), i64)]), i32)
    y = b.emit(Minimum, [b.emit(Maximum, [y, b.constant(low, f32)]), b.constant(high, f32)])
    return b.narrowed(b.converted(y, i32), to)


@form(arith.Bitcast)
def _bits(op: arith.Bitcast, b: CoreEmitter, x: Value) -> Value:
    if x.type.storage == _target(op):
        return x
    raise Refused("TFLite has no BITCAST between floats and integers on all its runtimes", "compute on the integers")


@form(arith.ExtF, arith.TruncF)
def _between_floats(op: Op, b: CoreEmitter, x: Value) -> Value:
    what = f"TFLite computes in f32 only, not in {op.operand(0).type.element} and {op.result.type.element}"
    raise Refused(what, "write the model in f32")
