"""Bits of integers, and logic of TOSA.

RIGHT_SHIFT is arithmetic, by 0 to bits - 1 places: the kernel clamps the amount. Sources: kernels/bitwise_xor.cc,
right_shift.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.bits import BitwiseXor as TflBitwiseXor
from tflq.dialects.tfl.bits import RightShift
from tflq.dialects.tosa.bits import BinaryBits, BitwiseNot, BitwiseXor, Clz, LogicalNot
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import i8, ui8
from tflq.tosa.lowering.plain import plain, stored
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.rescale.integers import limited
from tflq.tosa.lowering.wide import in_int32

__all__: list[str] = []


@lowering(BinaryBits)
def bits(op: BinaryBits, t: Tosa) -> Value:
    """Operators on bits, which take every signed type up to 32 bits, or on truth values."""
    return t.emit(type(op), in_int32(op, t), **op.attributes)


@lowering(BitwiseNot, Clz, LogicalNot)
def unary(op: BitwiseNot | Clz | LogicalNot, t: Tosa) -> Value:
    """uint8 less 128 has its complement in the complement less 128."""
    if t.offset(op.input) and not isinstance(op, BitwiseNot):
        raise Refused(f"TOSA has no {op.short_name.upper()} of uint8")
    return t.emit(type(op), [t.value(op.input)], **op.attributes)


@lowering(TflBitwiseXor)
def exclusive_or(op: TflBitwiseXor, t: Tosa) -> Value:
    """Of uint8s less 128 the sign bits cancel, and the result's has to be set again."""
    storage = op.result.type.storage
    if storage.bits > 32 or (not storage.signed and storage != ui8):
        raise Refused(f"TOSA has no {storage}")
    found = t.emit(BitwiseXor, [t.value(op.lhs), t.value(op.rhs)])
    return t.emit(BitwiseXor, [found, t.constant(np.asarray(-128), i8)]) if storage == ui8 else found


@lowering(RightShift)
def right_shift(op: RightShift, t: Tosa) -> Value:
    amount = limited(plain(op.rhs, t), t, 0, op.result.type.storage.bits - 1)
    return stored(t.arithmetic_right_shift(plain(op.lhs, t), amount), op.result, t)
