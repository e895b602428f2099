"""Arithmetic of the integer form, on types that TOSA has it on or in int32 and back.

MAXIMUM and MINIMUM are on int32 and floats. A product of int64s is one of int32s where that is proven enough
(`tflq.tosa.lowering.wide`).
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.arithmetic import Abs, Add, IntDiv, Maximum, Minimum, Mul, Negate, Sub
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import i8, i16, i32, i64
from tflq.tosa.lowering.arithmetic.centring import centred, centred_product
from tflq.tosa.lowering.plain import ordered
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.wide import fits_int32, in_int32, widened_product

__all__: list[str] = []


@lowering(Add, Sub, IntDiv)
def sum_or_difference(op: Add | Sub | IntDiv, t: Tosa) -> Value:
    if isinstance(op, Sub) and (difference := centred(op.result, 0, t)):
        return difference
    return t.emit(type(op), in_int32(op, t))


@lowering(Maximum, Minimum)
def extreme(op: Maximum | Minimum, t: Tosa) -> Value:
    x, y = (ordered(v, t) for v in (op.input1, op.input2))
    found = t.emit(type(op), [x, y])
    return found if op.result.type.storage == i64 else t.cast(found, t.storage(op.result))


@lowering(Mul)
def multiply(op: Mul, t: Tosa) -> Value:
    """MUL; a product of int64s that may leave int32 is left to the RESCALE that reads it."""
    shift = op.shift
    if widened_product(op.result, t) is not None:
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


def _shifted_left(op: Mul, t: Tosa) -> Value | None:
    """A product by powers of two that may leave int32, where it wraps: TOSA's MUL must not, a left shift loses bits."""
    x, factor = op.input1, op.input2
    if op.result.type.storage != i32 or not factor.is_constant or not factor.array.size:
        return None
    factors = factor.array
    if (factors <= 0).any() or (factors & (factors - 1)).any():
        return None
    low, high = t.ranges.of(x)
    largest = int(factors.max())
    if fits_int32((low * largest, high * largest)):
        return None
    places = np.frexp(factors.astype(np.float64))[1] - 1
    return t.logical_left_shift(t.value(x), t.constant(places))


@lowering(Abs, Negate)
def absolute_or_negative(op: Abs | Negate, t: Tosa) -> Value:
    if t.offset(op.input1):
        raise Refused(f"TOSA has no {op.short_name.upper()} of uint8")
    return t.emit(type(op), [t.value(op.input1)], **op.attributes)
