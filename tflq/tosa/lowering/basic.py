"""Lowerings that are one operator each."""

from __future__ import annotations

from tflq.ir.core import Op, Value
from tflq.tosa.lowering.centring import centred_difference
from tflq.tosa.lowering.registry import Refused, Tosa, lowering
from tflq.tosa.lowering.wide import in_int32

__all__: list[str] = []


@lowering("quant.scast", "tosa.identity")
def same(op: Op, t: Tosa) -> Value:
    """The same stored integers."""
    return t.value(op.operand(0))


@lowering("tosa.add", "tosa.sub", "tosa.intdiv")
def sum_or_difference(op: Op, t: Tosa) -> Value:
    if op.name == "tosa.sub" and (difference := centred_difference(op, t)):
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


@lowering("tosa.abs", "tosa.bitwise_not", "tosa.clz", "tosa.logical_not", "tosa.negate")
def unary(op: Op, t: Tosa) -> Value:
    """uint8 less 128 has its complement in the complement less 128."""
    if t.offset(op.operand(0)) and op.name != "tosa.bitwise_not":
        raise Refused(f"TOSA has no {op.name.removeprefix('tosa.').upper()} of uint8")
    return t.unary(op.name.removeprefix("tosa."), t.value(op.operand(0)), **op.attributes)
