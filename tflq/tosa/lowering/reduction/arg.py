"""ARGMAX, and the index of the least element.

TOSA has ARGMAX of i8, i16 and float. Of i32 the index is the least of those whose element equals the extreme, and so it
is of i16 without the int16 extension. Sources: TOSA 1.0 specification, ARGMAX; kernels/arg_min_max.cc.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tflq.dialects.tfl.reduction import ArgMax as TflArgMax
from tflq.dialects.tfl.reduction import ArgMin
from tflq.dialects.tosa.arithmetic import Negate
from tflq.dialects.tosa.bits import BitwiseNot
from tflq.dialects.tosa.casts import Cast
from tflq.dialects.tosa.reduction import ArgMax
from tflq.errors import Refused
from tflq.ir.core import Op, Value
from tflq.ir.types import TensorType, i8, i16, i32
from tflq.tosa.lowering.floats.arithmetic import need_float
from tflq.tosa.lowering.floats.real_constants import real
from tflq.tosa.lowering.known import dims_of, known_axis
from tflq.tosa.lowering.registry import Tosa, lowered, lowering

__all__: list[str] = []


@lowering(ArgMax)
def argmax(op: ArgMax, t: Tosa) -> Value:
    return _index(t, t.value(op.input), op.axis, "max")


@lowering(TflArgMax, ArgMin)
def kernel_arg(op: TflArgMax | ArgMin, t: Tosa) -> Value:
    """Of plain tensors."""
    source = op.input
    x = real(t, source) if source.type.storage.is_float else t.value(source)
    axis = known_axis(op.axis, max(len(dims_of(x)), 1))
    return widened(op, t, _index(t, x, axis, "max" if isinstance(op, TflArgMax) else "min"))


def widened(op: Op, t: Tosa, index: Value) -> Value:
    """The index in the result's type."""
    if op.result.type.storage == i32:
        return index
    narrow = Value(op.result.type.with_element(i32))
    t.set(narrow, index)
    made = lowered(Op(Cast.op_name, [narrow], [Value(op.result.type)], {}, op.location), t)
    return made if isinstance(made, Value) else made[0]


def _index(t: Tosa, x: Value, axis: int, kind: Literal["max", "min"]) -> Value:
    """The first index of the greatest or least element."""
    shape, storage = dims_of(x), x.type.storage
    if not shape:
        raise Refused("a scalar has no axis")
    axis %= len(shape)
    kept = tuple(d for a, d in enumerate(shape) if a != axis)
    if storage.is_float:
        need_float(t, "ARG_MAX")
    elif storage == i32 or (storage == i16 and not t.target.has("int16")):
        return _found(t, t.cast(x, i32), axis, kind)
    elif storage not in (i8, i16):
        raise Refused(f"TOSA has no ARGMAX of {storage}")
    if kind == "min":
        x = t.emit(Negate, [x], input1_zp=0, output_zp=0) if storage.is_float else t.emit(BitwiseNot, [x])
    return t.emit(ArgMax, [x], TensorType(kept, i32), axis=axis)


def _found(t: Tosa, x: Value, axis: int, kind: Literal["max", "min"]) -> Value:
    """The least index of an i32 that equals the extreme."""
    shape = x.type.shape or ()
    size = shape[axis]
    if size is None:
        raise Refused("the number of elements to compare is not known")
    view = [size if a == axis else 1 for a in range(len(shape))]
    places = t.constant(np.arange(size).reshape(view), i32)
    beyond = t.constant(np.full((1,) * len(shape), size), i32)
    extreme = t.equal(x, t.reduce(kind, x, axis))
    found = t.reduce("min", t.select(extreme, places, beyond), axis)
    kept = tuple(d for a, d in enumerate(shape) if a != axis)
    if kept.count(None) > 1:
        raise Refused("more than one dim of the result is not known")
    return t.reshape(found, kept)
