"""int64 of the integer form: TOSA 1.0 has none, only the 48 bits that a convolution, MATMUL or RESIZE sums in.

A value that is provably within int32 is kept as one: a widening CAST is no operator, and arithmetic on such values
whose result cannot leave int32 is arithmetic in int32. A product of two of them that can is left to the RESCALE that
reads it (`widened_product`). All else is refused.
"""

from __future__ import annotations

import numpy as np

from tflq.analysis.ranges import Range
from tflq.dialects.tosa.arithmetic import Mul
from tflq.errors import Refused
from tflq.ir.core import Op, Value
from tflq.ir.types import i32, i64
from tflq.tosa.lowering.registry import Tosa

__all__ = ["fits_int32", "in_int32", "narrow", "product_by", "widened_product"]

_I31 = 1 << 31


def fits_int32(bounds: Range) -> bool:
    return bounds[0] >= -_I31 and bounds[1] < _I31


def narrow(operand: Value, t: Tosa) -> Value:
    """What an operand has become; an int64 one in int32. Refused if it may not fit."""
    if operand.type.storage != i64:
        return t.value(operand)
    if operand.is_constant and fits_int32(t.ranges.of(operand)):
        return t.constant(operand.array, i32)
    value = t.value(operand)
    if value.type.storage != i32:
        raise Refused(f"'{operand.name}' is int64, which TOSA lacks")
    return value


def in_int32(op: Op, t: Tosa) -> list[Value]:
    """The operands of arithmetic; if it is on int64, in int32. Refused if the operands or the result may not fit."""
    if op.result.type.storage == i64 and not fits_int32(t.ranges.of(op.result)):
        raise Refused(f"'{op.result.name}' is int64, which TOSA lacks, and may leave int32")
    return [narrow(v, t) for v in op.operands if v is not None]


def widened_product(value: Value, t: Tosa) -> tuple[Value, Value] | None:
    """The operands of a product of int64s that may leave int32, both within it."""
    op = value.producer
    if not isinstance(op, Mul) or value.type.storage != i64 or op.shift:
        return None
    x, y = op.input1, op.input2
    both = fits_int32(t.ranges.of(x)) and fits_int32(t.ranges.of(y))
    return (x, y) if both and not fits_int32(t.ranges.of(value)) else None


def product_by(x: Value, y: Value, multiplier: int, shift: int, t: Tosa) -> Value | None:
    """(x y multiplier + 2^(shift - 1)) >> shift of two operands within int32; None unless one of them, multiplied,
    fits int32: MUL with a shift has a 64-bit product.
    """
    for a, b in ((x, y), (y, x)):
        reach = max(abs(v) for v in t.ranges.of(b))
        if reach * multiplier < _I31:
            scaled = t.mul(narrow(b, t), t.constant(np.asarray(multiplier)))
            return t.mul(narrow(a, t), scaled, shift=shift)
    return None
