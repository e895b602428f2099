"""Lowerings that are one operator each."""

from __future__ import annotations

from tflq.dialects.quant.casts import Scast
from tflq.dialects.tosa.arithmetic import Abs, Add, IntDiv, Negate, Sub
from tflq.dialects.tosa.bits import BitwiseNot, Clz, LogicalNot
from tflq.dialects.tosa.movement import Identity
from tflq.ir.core import Op, Value
from tflq.tosa.lowering.centring import centred_difference
from tflq.tosa.lowering.registry import Refused, Tosa, lowering
from tflq.tosa.lowering.wide import in_int32

__all__: list[str] = []


@lowering(Scast, Identity)
def same(op: Scast | Identity, t: Tosa) -> Value:
    """The same stored integers."""
    return t.value(op.input)


@lowering(Add, Sub, IntDiv)
def sum_or_difference(op: Add | Sub | IntDiv, t: Tosa) -> Value:
    if isinstance(op, Sub) and (difference := centred_difference(op, t)):
        return difference
    return t.binary(op.name.removeprefix("tosa."), *in_int32(op, t))


@lowering(
    *("tosa.bitwise_and", "tosa.bitwise_or", "tosa.bitwise_xor", "tosa.logical_left_shift"),
    *("tosa.logical_right_shift", "tosa.arithmetic_right_shift", "tosa.logical_and", "tosa.logical_or"),
    "tosa.logical_xor",
)
def bits(op: Op, t: Tosa) -> Value:
    """Operators on bits, which take every signed type up to 32 bits, or on truth values."""
    return t.binary(op.name.removeprefix("tosa."), *in_int32(op, t), **op.attributes)


@lowering(Abs, BitwiseNot, Clz, LogicalNot, Negate)
def unary(op: Abs | BitwiseNot | Clz | LogicalNot | Negate, t: Tosa) -> Value:
    """uint8 less 128 has its complement in the complement less 128."""
    if t.offset(op.operand(0)) and not isinstance(op, BitwiseNot):
        raise Refused(f"TOSA has no {op.name.removeprefix('tosa.').upper()} of uint8")
    return t.unary(op.name.removeprefix("tosa."), t.value(op.operand(0)), **op.attributes)
