"""Conversions: between integers and truth values, and from and to floats.

    integers                 narrowing wraps; uint8, less 128, changes its sign bit from or to the same bits of int8
    integer, bool → float    exact, or rounded to nearest by CAST (i32)
    tosa.cast to integers    rounded to nearest, saturated (CAST; half to even on the reference model)
    ext.truncate, tfl.cast   the integer part, saturated (kernels/cast.cc; NaN, the largest integer there, is 0)
    float → bool             whether it is not 0

TOSA casts no bool to a float, and no 48-bit integer to or from one; an int64 that is int32 here is cast as that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.ext.casts import Truncate
from tflq.dialects.tfl.casts import Cast as TflCast
from tflq.dialects.tfl.casts import Dequantize
from tflq.dialects.tosa.activation import Ceil, Clamp, Floor
from tflq.dialects.tosa.casts import Cast
from tflq.errors import Refused
from tflq.ir.core import Value, constant
from tflq.ir.types import ScalarType, f16, f32, i1, i8, i16, i32, i64, ui8
from tflq.tosa.lowering.floats.arithmetic import need_float
from tflq.tosa.lowering.floats.quotient import scalar
from tflq.tosa.lowering.plain import INTEGERS, UNIT, plain, sign_changed
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.rescale.integers import emit_rescale
from tflq.tosa.lowering.wide import narrow

__all__: list[str] = []

_FLOATS = (f32, f16)


_SIGNED = (i8, ui8, i16, i32)


@lowering(Cast, TflCast)
def cast(op: Cast | TflCast, t: Tosa) -> Value | Sequence[Value]:
    """Between integers and truth values; int64 is what it was widened from."""
    source, to = op.input, op.result.type.storage
    storage = source.type.storage
    if storage.is_float or to.is_float:
        return float_cast(op, t)
    if storage not in INTEGERS or to not in INTEGERS:
        raise Refused(f"TOSA has no cast between {storage} and {to}")
    if to == i64:
        return plain(source, t)
    if saturating := _saturating(source, to, t):
        return saturating
    x = narrow(source, t)
    if to == storage:
        return x
    if storage == ui8:
        return _from_uint8(x, to, t)
    return _to_uint8(x, source, t) if to == ui8 else t.cast(x, to)


def _saturating(source: Value, to: ScalarType, t: Tosa) -> Value | None:
    """RESCALE by 1, which saturates, in the place of a CLAMP to all of the type."""
    op = source.producer
    if not isinstance(op, Clamp) or source.type.storage != i32 or to not in (i8, ui8, i16):
        return None
    low, high = t.ranges.of(op.input)
    if (op.min_val, op.max_val) != (to.minimum, to.maximum):
        return None
    if low < -(1 << 29) or high >= 1 << 29:
        return None
    x = t.value(op.input)
    return emit_rescale(t, x, *UNIT, i8, output_zp=-128) if to == ui8 else emit_rescale(t, x, *UNIT, to)


def _from_uint8(x: Value, to: ScalarType, t: Tosa) -> Value:
    if to == i8:
        return sign_changed(x, t)
    if to == i1:
        return t.cast(sign_changed(x, t), i1)
    return emit_rescale(t, x, *UNIT, to, input_zp=-128)


def _to_uint8(x: Value, source: Value, t: Tosa) -> Value:
    low, high = t.ranges.of(source)
    if x.type.storage in (i16, i32) and low >= 0 and high <= ui8.maximum:
        return emit_rescale(t, x, *UNIT, i8, output_zp=-128)
    return sign_changed(t.cast(x, i8), t)


@lowering(Dequantize)
def widened(op: Dequantize, t: Tosa) -> Value:
    """Half precision as float32; of a constant, a constant."""
    source = op.input
    if source.type.storage != f16 or op.result.type.storage != f32:
        raise Refused(f"DEQUANTIZE of {source.type.storage} to {op.result.type.storage} has no form")
    if source.is_constant:
        return constant(source.array.astype(np.float32))
    need_float(t, "DEQUANTIZE")
    return t.cast(t.value(source), f32)


@lowering(Truncate)
def float_cast(op: Truncate | Cast | TflCast, t: Tosa) -> Value:
    """tosa.cast, tfl.cast and ext.truncate from or to a float type."""
    need_float(t, "CAST")
    source, target = op.input, op.result
    x, to = narrow(source, t), target.type.storage
    if x.type.storage not in (*_FLOATS, *_SIGNED, i1) or to not in (*_FLOATS, *_SIGNED, i1):
        raise Refused(f"TOSA has no cast between {source.type.storage} and {to}")
    if to in _FLOATS:
        return _to_float(t, x, t.offset(source), target)
    if to is i1:
        return t.as_bool(x)
    if not isinstance(op, Cast):
        x = _whole(t, x)
    if to is not ui8:
        return t.cast(x, to)
    inside = t.cast(t.clamp(x, ui8.minimum, ui8.maximum), i32)
    return t.cast(t.sub(inside, t.constant(t.offset(target))), i8)


def _to_float(t: Tosa, x: Value, offset: int, target: Value) -> Value:
    storage = target.type.storage
    if x.type.storage is i1:
        return t.select(x, t.constant(1, storage), t.constant(0, storage))
    x = t.cast(x, storage)
    return t.add(x, scalar(t, offset, x)) if offset else x


def _whole(t: Tosa, x: Value) -> Value:
    """The integer part of a float, as a float."""
    negative = t.greater(scalar(t, 0, x), x)
    return t.select(negative, t.emit(Ceil, [x]), t.emit(Floor, [x]))
