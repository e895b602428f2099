"""Equals of operators that a target lacks, by operators that it has.

    cast       an int32 to fewer bits: RESCALE by 1; where it may wrap, of the low bits, shifted to the top and back
    bitwise    an int8 and a constant: TABLE; the low bits of an int32: shifted to the top and back, 2^k more below 0
    greater    min(max(x, y), y + 1) - y, x - max(min(x, y), x - 1), or by halves: int32, 1 where it holds, else 0
    logical    of such numbers: MINIMUM, MAXIMUM, differences
    select     c x + (1 - c) y

No sum or product of these leaves int32.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.elementwise import (
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    Equal,
    Greater,
    GreaterEqual,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    LogicalXor,
    Select,
)
from tflq.dialects.tosa.movement import Cast, Rescale, Table
from tflq.formats.tosa.lowering.context import Tosa, substitute
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, i1, i8, i16, i32


@substitute(Cast)
def narrowed(op: Cast, t: Tosa) -> Value | None:
    x, to = op.input, op.result.type.storage
    if x.type.storage != i32 or to not in (i8, i16):
        return None
    low, high = t.ranges.of(x)
    above = 0 if to.minimum <= low and high <= to.maximum else 32 - to.bits
    if above:
        x = t.logical_left_shift(x, t.constant(above))
    return _shifted_back(x, above, to, t)


def _shifted_back(x: Value, bits: int, to: ScalarType, t: Tosa) -> Value:
    """RESCALE: x / 2^bits, an integer of a type."""
    return t.emit(
        Rescale,
        [x],
        to,
        multiplier=np.asarray([1 << 30], np.int32),
        shift=np.asarray([30 + bits], np.int8),
        input_zp=0,
        output_zp=0,
        rounding_mode="SINGLE_ROUND",
        scale32=True,
        per_channel=False,
    )


@substitute(BitwiseAnd, BitwiseOr, BitwiseXor)
def bitwise(op: BitwiseAnd | BitwiseOr | BitwiseXor, t: Tosa) -> Value | None:
    x, y = (op.input2, op.input1) if op.input1.is_constant else (op.input1, op.input2)
    if not y.is_constant or y.array.size != 1:
        return None
    if x.type.storage == i32 and isinstance(op, BitwiseAnd):
        return _low_bits(x, int(y.array.reshape(())), t)
    if x.type.storage != i8:
        return None
    function = {BitwiseAnd: np.bitwise_and, BitwiseOr: np.bitwise_or, BitwiseXor: np.bitwise_xor}[type(op)]
    entries = function(np.arange(-128, 128, dtype=np.int8), y.array.reshape(()))
    return t.reshape(t.emit(Table, [x, t.constant(entries, i8)]), op.result.type.dims)


def _low_bits(x: Value, mask: int, t: Tosa) -> Value | None:
    """An int32 and a mask of up to 30 low bits; None for other masks."""
    bits = mask.bit_length()
    if not 0 < bits <= 30 or mask != (1 << bits) - 1:
        return None
    signed = _shifted_back(t.logical_left_shift(x, t.constant(32 - bits)), 32 - bits, i32, t)
    below = t.maximum(t.minimum(signed, t.constant(0)), t.constant(-1))
    return t.sub(signed, t.mul(below, t.constant(1 << bits)))


# Truth values as int32, 0 or 1, where the target lacks comparisons, which make others.


def _greater(x: Value, y: Value, t: Tosa) -> Value:
    """x > y."""
    one = t.constant(1)
    if t.ranges.of(y)[1] < i32.maximum:
        return t.sub(t.minimum(t.maximum(x, y), t.add(y, one)), y)
    if t.ranges.of(x)[0] > i32.minimum:
        return t.sub(x, t.maximum(t.minimum(x, y), t.sub(x, one)))
    (upper, lower), (other_upper, other_lower) = _halved(x, t), _halved(y, t)
    near = t.minimum(t.maximum(upper, t.sub(other_upper, one)), t.add(other_upper, one))
    above = t.sub(near, other_upper)
    order = t.add(t.add(above, above), t.sub(lower, other_lower))
    return t.maximum(t.minimum(order, one), t.constant(0))


def _halved(x: Value, t: Tosa) -> tuple[Value, Value]:
    """h, the half of x rounded up, and x - 2 h, which is -1 or 0."""
    half = t.arithmetic_right_shift(x, t.constant(1), round=True)
    return half, t.sub(t.sub(x, half), half)


def _negated(x: Value, t: Tosa) -> Value:
    return t.sub(t.constant(1), x)


def _number(x: Value, t: Tosa) -> Value | None:
    """A truth value as 0 or 1; None if it is a boolean tensor."""
    if x.type.storage == i1:
        return t.constant(x.array, i32) if x.is_constant else None
    return x


@substitute(Greater, GreaterEqual, Equal)
def compared(op: Greater | GreaterEqual | Equal, t: Tosa) -> Value | None:
    x, y = op.input1, op.input2
    if x.type.storage != i32:
        return None
    if isinstance(op, Greater):
        return _greater(x, y, t)
    below = _greater(y, x, t)
    if isinstance(op, GreaterEqual):
        return _negated(below, t)
    return _negated(t.add(_greater(x, y, t), below), t)


@substitute(LogicalAnd, LogicalOr, LogicalXor, LogicalNot)
def connected(op: LogicalAnd | LogicalOr | LogicalXor | LogicalNot, t: Tosa) -> Value | None:
    numbers = [_number(v, t) for v in op.present_operands]
    x, y = numbers[0], numbers[-1]
    if x is None or y is None:
        return None
    if isinstance(op, LogicalNot):
        return _negated(x, t)
    if isinstance(op, LogicalAnd):
        return t.minimum(x, y)
    return t.maximum(x, y) if isinstance(op, LogicalOr) else t.sub(t.maximum(x, y), t.minimum(x, y))


@substitute(Select)
def selected(op: Select, t: Tosa) -> Value | None:
    """Of any integers, as int32."""
    where, storage = _number(op.condition, t), op.result.type.storage
    if where is None or storage not in (i8, i16, i32):
        return None
    x, y = (t.cast(v, i32) for v in (op.on_true, op.on_false))
    return t.cast(t.add(t.mul(where, x), t.mul(t.sub(t.constant(1), where), y)), storage)
