"""Elementwise integer operators on types that TOSA has them not on: in int32 and back.

extremes      CLAMP is on int8 (int16 by the extension) and floats, MAXIMUM and MINIMUM on int32 and floats
products      of int64s as of int32s where that is proven enough (`tflq.tosa.lowering.wide`)
casts         narrowing wraps; uint8, less 128, changes its sign bit on the way from or to the same bits of int8
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.tfl.casts import Cast as TflCast
from tflq.dialects.tosa.activation import Clamp
from tflq.dialects.tosa.arithmetic import Maximum, Minimum, Mul
from tflq.dialects.tosa.bits import BitwiseXor
from tflq.dialects.tosa.casts import Cast
from tflq.dialects.tosa.comparison import Select
from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, i1, i8, i16, i32, i64, ui8
from tflq.tosa.lowering.casts import float_cast
from tflq.tosa.lowering.centring import centred_product
from tflq.tosa.lowering.registry import Refused, Tosa, lowering
from tflq.tosa.lowering.requantize import emit_rescale, limited
from tflq.tosa.lowering.wide import bounds, fits_int32, in_int32, narrow, widened_product

__all__ = ["ordered", "plain", "stored"]

_INTEGERS = (i1, i8, ui8, i16, i32, i64)
_UNIT = np.asarray([1 << 30], np.int64), np.asarray([30], np.int64)
"""Multiplier and shift of a RESCALE by 1."""


def plain(operand: Value, t: Tosa) -> Value:
    """An operand to compute with: integers and truth values as int32, uint8 from 0 to 255; floats as they are."""
    if operand.type.storage not in _INTEGERS:
        if operand.type.storage.is_float:
            return t.value(operand)
        raise Refused(f"'{operand.name}' is {operand.type.storage}, which TOSA has not")
    if operand.type.storage == ui8:
        return emit_rescale(t, t.value(operand), *_UNIT, i32, input_zp=-128)
    return t.cast(narrow(operand, t), i32)


def ordered(operand: Value, t: Tosa) -> Value:
    """An operand to compare: as `plain`, but uint8 less 128."""
    return t.cast(t.value(operand), i32) if operand.type.storage == ui8 else plain(operand, t)


def stored(y: Value, result: Value, t: Tosa) -> Value:
    """What was computed, as an int32 or a float, in a result's type; integers wrap."""
    to = result.type.storage
    if to == i64:
        raise Refused(f"'{result.name}' is int64, which TOSA has not")
    if to == ui8:
        return _sign_changed(t.cast(y, i8), t)
    return t.cast(y, to)


def _sign_changed(x: Value, t: Tosa) -> Value:
    """The same bits of an int8 but for the sign: uint8's, less 128, from int8's, and back."""
    return t.binary(BitwiseXor, x, t.constant(np.asarray(-128), i8))


@lowering(Maximum, Minimum)
def extreme(op: Maximum | Minimum, t: Tosa) -> Value:
    x, y = (ordered(v, t) for v in op.operands if v is not None)
    found = t.binary(op.name.removeprefix("tosa."), x, y)
    return found if op.result.type.storage == i64 else t.cast(found, t.storage(op.result))


@lowering(Clamp)
def clamp(op: Clamp, t: Tosa) -> Value:
    operand, low, high = op.input, op.min_val, op.max_val
    if operand.type.storage.is_float:
        return t.limits(t.value(operand), low, high)
    x, offset = narrow(operand, t), t.offset(operand)
    if x.type.storage == i8 or (x.type.storage == i16 and t.target.has("int16")):
        return t.clamp(x, low - offset, high - offset)
    return t.cast(limited(t.cast(x, i32), t, low, high), x.type.storage)


@lowering(Mul)
def multiply(op: Mul, t: Tosa) -> Value:
    """MUL; a product of int64s that may leave int32 is left to the RESCALE that reads it."""
    shift = op.shift
    if widened_product(op.result) is not None:
        return Value(t.type(op.result))
    if not shift and (product := centred_product(op, t)):
        return product
    if not shift and (shifted := _shifted_left(op, t)):
        return shifted
    x, y = in_int32(op, t)
    if x.type.storage in (i8, i16):
        x, y = t.aligned(x, y)
        return t.emit(Mul, [x, y], t.type(op.result), shift=shift)
    return t.mul(x, y, shift=shift)


def _shifted_left(op: Op, t: Tosa) -> Value | None:
    """A product by powers of two that may leave int32, where it wraps: TOSA's MUL must not, a left shift loses bits."""
    x, factor = op.operand(0), op.operand(1)
    if op.result.type.storage != i32 or not factor.is_constant or not factor.array.size:
        return None
    factors = factor.array
    if (factors <= 0).any() or (factors & (factors - 1)).any():
        return None
    low, high = bounds(x)
    largest = int(factors.max())
    if fits_int32((low * largest, high * largest)):
        return None
    places = np.frexp(factors.astype(np.float64))[1] - 1
    return t.logical_left_shift(t.value(x), t.constant(places))


@lowering(Select)
def select(op: Select, t: Tosa) -> Value:
    condition, *sides = (v for v in op.operands if v is not None)
    return t.select(t.value(condition), *(narrow(v, t) for v in sides))


@lowering(Cast, TflCast)
def cast(op: Cast | TflCast, t: Tosa) -> Value | Sequence[Value]:
    """Between integers and truth values; int64 is what it was widened from."""
    source, to = op.input, op.result.type.storage
    storage = source.type.storage
    if storage.is_float or to.is_float:
        return float_cast(op, t)
    if storage not in _INTEGERS or to not in _INTEGERS:
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
    if op is None or not isinstance(op, Clamp) or source.type.storage != i32 or to not in (i8, ui8, i16):
        return None
    low, high = bounds(op.operand(0))
    if (op.attributes["min_val"], op.attributes["max_val"]) != (to.minimum, to.maximum):
        return None
    if low < -(1 << 29) or high >= 1 << 29:
        return None
    x = t.value(op.operand(0))
    return emit_rescale(t, x, *_UNIT, i8, output_zp=-128) if to == ui8 else emit_rescale(t, x, *_UNIT, to)


def _from_uint8(x: Value, to: ScalarType, t: Tosa) -> Value:
    if to == i8:
        return _sign_changed(x, t)
    if to == i1:
        return t.cast(_sign_changed(x, t), i1)
    return emit_rescale(t, x, *_UNIT, to, input_zp=-128)


def _to_uint8(x: Value, source: Value, t: Tosa) -> Value:
    low, high = bounds(source)
    if x.type.storage in (i16, i32) and low >= 0 and high <= ui8.maximum:
        return emit_rescale(t, x, *_UNIT, i8, output_zp=-128)
    return _sign_changed(t.cast(x, i8), t)
