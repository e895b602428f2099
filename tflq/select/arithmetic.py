"""Products, comparisons and choices on builtins: one kernel each on int32 and int64, between casts on narrower types.

MUL on 8 bits returns zeros and comparisons on 8 bits abort the process, so both widen first. SELECT_V2 takes every
type.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.unary import Abs as TflAbs
from tflq.dialects.tfl.unary import Neg, Sign
from tflq.dialects.tosa.arithmetic import Abs, Mul, Negate
from tflq.dialects.tosa.comparison import Equal, Greater, GreaterEqual, Select
from tflq.ir.core import Value
from tflq.ir.types import i32
from tflq.select.broadcasting import elementwise
from tflq.select.lowering import Kernels, lowering
from tflq.select.requantize import clamped
from tflq.select.shifts import product_shifted

__all__: list[str] = []


def _wide(k: Kernels, op: Mul | Equal | Greater | GreaterEqual) -> list[Value]:
    """The operands, in 32 bits at least."""
    values = k.value(op.input1), k.value(op.input2)
    return [k.cast(v, i32) if v.type.storage.bits < 32 else v for v in values]


@lowering(Mul)
def mul(op: Mul, k: Kernels) -> Value:
    a, b = _wide(k, op)
    shift = op.shift
    product = product_shifted(k, a, b, shift) if shift else elementwise(k, k.mul, a, b)
    return k.cast(product, op.result.type.storage)


@lowering(Abs)
def absolute(op: Abs, k: Kernels) -> Value:
    """x * sign(x) of integers, an eighth of the time of ABS; the least one stays."""
    x = k.value(op.input1)
    if x.type.storage.is_float:
        return k.emit(TflAbs, [x], x.type)
    return k.mul(x, k.emit(Sign, [x], x.type))


@lowering(Negate)
def negate(op: Negate, k: Kernels) -> Value:
    """output_zp - (x - input1_zp), clamped; i32, which has no zero points, only at its least value."""
    x, storage = k.value(op.input1), op.result.type.storage
    if storage.is_float:
        return k.emit(Neg, [x], x.type)
    if storage.bits == 32:
        return k.sub(k.constant(0), k.maximum(x, k.constant(-storage.maximum)))
    total = op.output_zp + op.input1_zp
    y = k.sub(k.constant(total), k.cast(x, i32))
    least, most = total - storage.maximum, total - storage.minimum
    return k.cast(clamped(k, y, np.asarray(storage.minimum), np.asarray(storage.maximum), least, most), storage)


@lowering(Equal)
def equal(op: Equal, k: Kernels) -> Value:
    return elementwise(k, k.equal, *_wide(k, op))


@lowering(Greater)
def greater(op: Greater, k: Kernels) -> Value:
    return elementwise(k, k.greater, *_wide(k, op))


@lowering(GreaterEqual)
def greater_equal(op: GreaterEqual, k: Kernels) -> Value:
    return elementwise(k, k.greater_equal, *_wide(k, op))


@lowering(Select)
def select(op: Select, k: Kernels) -> Value:
    return elementwise(k, k.select_v2, k.value(op.condition), k.value(op.on_true), k.value(op.on_false))
