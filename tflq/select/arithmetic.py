"""Products, comparisons and choices on builtins: one kernel each on int32 and int64, between casts on narrower types.

MUL on 8 bits returns zeros and comparisons on 8 bits abort the process, so both widen first. SELECT_V2 takes every
type.
"""

from __future__ import annotations

import numpy as np

from tflq.ir.core import Op, Value
from tflq.ir.types import TensorType, i32
from tflq.select.lowering import Kernels, lowering
from tflq.select.shifts import product_shifted

__all__: list[str] = []


def _wide(k: Kernels, op: Op) -> list[Value]:
    """The operands, in 32 bits at least."""
    values = [k.value(v) for v in op.operands if v is not None]
    return [k.cast(v, i32) if v.type.storage.bits < 32 else v for v in values]


@lowering("tosa.mul")
def mul(op: Op, k: Kernels) -> Value:
    a, b = _wide(k, op)
    shift = op.attributes.get("shift", 0)
    return k.cast(product_shifted(k, a, b, shift) if shift else k.mul(a, b), op.result.type.storage)


@lowering("tosa.equal")
def equal(op: Op, k: Kernels) -> Value:
    return k.equal(*_wide(k, op))


@lowering("tosa.greater")
def greater(op: Op, k: Kernels) -> Value:
    return k.greater(*_wide(k, op))


@lowering("tosa.greater_equal")
def greater_equal(op: Op, k: Kernels) -> Value:
    return k.greater_equal(*_wide(k, op))


@lowering("tosa.select")
def select(op: Op, k: Kernels) -> Value:
    return k.select_v2(*(k.value(op.operand(i)) for i in range(3)))


@lowering("tosa.abs")
def absolute(op: Op, k: Kernels) -> Value:
    """relu(x) + relu(-x); ABS is ten times slower."""
    (x,) = _wide(k, op)
    zero = k.constant(0, x.type.storage)
    return k.cast(k.add(k.add(x, zero, "RELU"), k.sub(zero, x, "RELU")), op.result.type.storage)


@lowering("tosa.negate")
def negate(op: Op, k: Kernels) -> Value:
    (x,) = _wide(k, op)
    return k.cast(k.sub(k.constant(0, x.type.storage), x), op.result.type.storage)


@lowering("tosa.reverse")
def reverse(op: Op, k: Kernels) -> Value:
    x = k.value(op.operand(0))
    axis = k.constant(np.asarray([op.attributes["axis"]], np.int32))
    return k.emit("tfl.reverse_v2", [x, axis], TensorType(x.type.shape, x.type.element))
