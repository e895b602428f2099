"""Conversions between floats and integers: `float_cast` and ext.truncate.

    integer, bool → float    exact, or rounded to nearest by CAST (i32)
    tosa.cast to integers    rounded half to even, saturated (CAST)
    ext.truncate, tfl.cast   the integer part, saturated (kernels/cast.cc; NaN, the largest integer there, is 0)
    float → bool             whether it is not 0

TOSA casts no bool to a float, and no 48-bit integer to or from one.
"""

from __future__ import annotations

from tflq.ir.core import Op, Value
from tflq.ir.types import f16, f32, i1, i8, i16, i32, ui8
from tflq.tosa.float_arithmetic import need_float
from tflq.tosa.float_quotient import scalar
from tflq.tosa.registry import Refused, Tosa, lowering

__all__ = ["float_cast"]


@lowering("ext.truncate")
def float_cast(op: Op, t: Tosa) -> Value:
    """tosa.cast, tfl.cast and ext.truncate from or to a float type."""
    source, target = op.operand(0), op.result
    need_float(t, "CAST")
    for value in (source, target):
        if value.type.storage not in (f32, f16, i1, i8, ui8, i16, i32):
            raise Refused(f"TOSA has no cast between {source.type.storage} and {target.type.storage}")
    x = t.value(source)
    if target.type.storage.is_float:
        return _to_float(t, x, t.offset(source), target)
    if target.type.storage is i1:
        return t.as_bool(x)
    if op.name != "tosa.cast":
        x = _whole(t, x)
    if (offset := t.offset(target)) > 0:
        if op.name == "tosa.cast":
            return t.cast(t.sub(_saturating(t, t.cast(x, i32)), t.constant(offset)), i8)
        x = t.sub(t.limits(x, 0, 255), scalar(t, offset, x))
    return t.cast(x, t.storage(target))


def _saturating(t: Tosa, x: Value) -> Value:
    """An i32 within what ui8 holds."""
    return t.minimum(t.maximum(x, t.constant(ui8.minimum)), t.constant(ui8.maximum))


def _to_float(t: Tosa, x: Value, offset: int, target: Value) -> Value:
    storage = target.type.storage
    if x.type.storage is i1:
        one, zero = (t.constant([v] * 1, storage) for v in (1, 0))
        return t.select(x, one, zero)
    x = t.cast(x, storage)
    return t.add(x, scalar(t, offset, x)) if offset else x


def _whole(t: Tosa, x: Value) -> Value:
    """The integer part of a float, as a float."""
    negative = t.greater(scalar(t, 0, x), x)
    return t.select(negative, t.unary("ceil", x), t.unary("floor", x))
