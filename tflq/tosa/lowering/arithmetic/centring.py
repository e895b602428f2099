"""An 8-bit operand less its zero point, times a power of two: one RESCALE.

The integer form has CAST, SUB and MUL for it; RESCALE by 2^30 >> (30 - k) takes 8 bits with a zero point and makes
(x - zero_point) 2^k, exactly, while 2^(29 - k) is more than any x.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.arithmetic import Mul, Sub
from tflq.dialects.tosa.casts import Cast
from tflq.ir.core import Value
from tflq.ir.types import i8, i32, ui8
from tflq.tosa.lowering.registry import Tosa
from tflq.tosa.lowering.rescale.integers import emit_rescale

__all__ = ["centred", "centred_product"]

_LARGEST = 20  # k: differences of 8 bits are below 2^9


def centred_product(op: Mul, t: Tosa) -> Value | None:
    """What a MUL becomes, if it is of such a difference, or of a widened 8-bit operand, and a power of two."""
    for x, y in ((op.input1, op.input2), (op.input2, op.input1)):
        factor = _number(y)
        if factor is not None and factor > 1 and factor & (factor - 1) == 0 and factor <= 1 << _LARGEST:
            return centred(x, factor.bit_length() - 1, t) if x.type.shape == op.result.type.shape else None
    return None


def centred(value: Value, up: int, t: Tosa) -> Value | None:
    """`value` times 2^up, if it is a widened 8-bit operand or the difference of one and its zero point."""
    op, zero = value.producer, 0
    if isinstance(op, Sub):
        number = _number(op.input2)
        if number is None:
            return None
        op, zero = op.input1.producer, number
    if not isinstance(op, Cast) or op.result.type.storage != i32:
        return None
    source = op.input
    zero = t.zero_point(source, zero)
    if source.type.storage not in (i8, ui8) or not i8.minimum <= zero <= i8.maximum:
        return None
    if source.type.shape != value.type.shape:
        return None
    unit, shift = np.asarray([1 << 30], np.int64), np.asarray([30 - up], np.int64)
    return emit_rescale(t, t.value(source), unit, shift, i32, input_zp=zero)


def _number(value: Value) -> int | None:
    """The one element of a constant."""
    return int(value.array.reshape(())) if value.is_constant and value.array.size == 1 else None
