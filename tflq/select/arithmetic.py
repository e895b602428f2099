"""Products, comparisons and choices on builtins: one kernel each on int32 and int64, between casts on narrower types.

MUL on 8 bits returns zeros and comparisons on 8 bits abort the process, so both widen first. SELECT_V2 takes every
type.
"""

from __future__ import annotations

from tflq.ir.core import Op, Value
from tflq.ir.types import i32
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
