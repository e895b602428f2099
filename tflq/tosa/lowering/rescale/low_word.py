"""ext.rescale_i64, the low 32 bits of a scaled sum, and comparisons of sums of 48 bits, in int32.

TOSA's RESCALE of 48 bits does where the scaled sum stays within int32; beyond, its result is not defined. There, the
operands of the product or convolution are taken as bytes, int8 each, the sums of their products fit int32, and

    V = p2 2^16 + p1 2^8 + p0                      sums of products of high bytes, of mixed ones, of low ones
    P = V m + 2^(s-1) = a2 2^32 + a1 2^16 + a0     m of 15 bits; limbs a1 and a0 of 16 bits, a2 with the sign

of which each limb is shifted to its place in the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tflq.dialects.ext.rescale import RescaleI64
from tflq.dialects.tosa.bits import BitwiseAnd, BitwiseOr, LogicalAnd, LogicalLeftShift, LogicalOr
from tflq.dialects.tosa.convolution import Conv2D, DepthwiseConv2D
from tflq.dialects.tosa.matmul import MatMul
from tflq.errors import Refused
from tflq.ir.core import Op, Value, constant
from tflq.ir.types import TensorType, i4, i8, i16, i32, i64
from tflq.tosa.lowering.registry import Tosa, lowered, lowering
from tflq.tosa.lowering.rescale.integers import constant_row, emit_rescale, operand_range

__all__ = ["greater_wide", "is_wide_sum"]

_I31 = 1 << 31
_I47 = 1 << 47
_LIMB = 0xFFFF
_MOST_TERMS = 32000
"""Products of two bytes, and of two more, whose sums fit int32."""
_Sum = MatMul | Conv2D | DepthwiseConv2D


@lowering(RescaleI64)
def rescale_i64(op: RescaleI64, t: Tosa) -> Value:
    multiplier, shift = (np.atleast_1d(v).astype(np.int64) for v in (op.multiplier, op.shift))
    multiplier, shift = np.broadcast_arrays(multiplier, shift)
    least, most = operand_range(op.input, op.input_range, t)
    source = op.input
    if _within_int32(least, most, multiplier, shift):
        x = t.value(source)
        if x.type.storage == i64:
            scaled = emit_rescale(t, x, multiplier, shift, i32)
            return scaled if op.result.type.shape is None else t.reshape(scaled, op.result.type.shape)
    return _scaled(_sums(source, t), multiplier, shift, t)


def _within_int32(least: int, most: int, multiplier: np.ndarray, shift: np.ndarray) -> bool:
    """Whether RESCALE takes sums of [least, most], the multipliers and the shifts."""
    if least < -_I47 or most >= _I47 or (shift < 2).any() or (shift > 62).any():
        return False
    ends = [
        (end * m + (1 << s >> 1)) >> s
        for end in (least, most)
        for m, s in zip(multiplier.tolist(), shift.tolist(), strict=True)
    ]
    return min(ends) >= -_I31 and max(ends) < _I31


class _Part(NamedTuple):
    """Bytes of an operand: int8 less a zero point, times 2^(8 place)."""

    value: Value
    zero_point: int
    place: int


def _parts(operand: Value, zero_point: int, t: Tosa) -> list[_Part]:
    """An operand of the integer form as bytes. Its parts are new operands of that form, lowered already."""
    storage = operand.type.storage
    if storage in (i8, i4):
        return [_Part(operand, zero_point, 0)]
    if storage != i16 or zero_point:
        raise Refused(f"TOSA has no form for the low bits of scaled sums of {storage}")
    if operand.is_constant:
        stored = operand.array.astype(np.int32)
        return [
            _Part(constant((stored >> 8).astype(np.int8)), 0, 1),
            _Part(constant(((stored & 255) - 128).astype(np.int8)), -128, 0),
        ]
    x = t.cast(t.value(operand), i32)
    high = t.cast(t.arithmetic_right_shift(x, t.constant(8)), i8)
    low = t.cast(t.sub(t.emit(BitwiseAnd, [x, t.constant(255)]), t.constant(128)), i8)
    made = []
    for byte, zero, place in ((high, 0, 1), (low, -128, 0)):
        part = Value(TensorType(operand.type.shape, i8))
        t.set(part, byte)
        made.append(_Part(part, zero, place))
    return made


def _sums(source: Value, t: Tosa) -> list[Value | None]:
    """p0, p1 and p2 of the op that makes a sum."""
    op = source.producer
    if not isinstance(op, _Sum):
        raise Refused("TOSA has no form for the low bits of scaled sums but of products and convolutions")
    if _terms(op) > _MOST_TERMS:
        raise Refused(f"TOSA has no form for the low bits of scaled sums of more than {_MOST_TERMS} products")
    if isinstance(op, MatMul):
        left, right, bias = _parts(op.input1, op.a_zp, t), _parts(op.input2, op.b_zp, t), None
    else:
        left, right, bias = _parts(op.input, op.input_zp, t), _parts(op.weight, op.weight_zp, t), op.bias
    if bias is not None and not (bias.is_constant and np.abs(bias.array).max(initial=0) < 1 << 38):
        raise Refused("TOSA has no form for the low bits of scaled sums with a bias of 39 bits or more, or computed")
    sums: list[Value | None] = [None, None, None]
    for x in left:
        for y in right:
            operands: list[Value | None] = [x.value, y.value]
            if bias is not None:
                operands.append(constant(np.zeros(bias.array.shape, np.int32)))
            names = ("a_zp", "b_zp") if isinstance(op, MatMul) else ("input_zp", "weight_zp")
            attributes = {**op.attributes, **dict(zip(names, (x.zero_point, y.zero_point), strict=True))}
            of_bytes = Op(op.name, operands, [Value(source.type.with_element(i32))], attributes, op.location)
            found = lowered(of_bytes, t)
            assert isinstance(found, Value)
            place = x.place + y.place
            held = sums[place]
            sums[place] = found if held is None else t.add(held, found)
    if bias is not None:
        offset = bias.array.astype(np.int64)
        for place, part in ((0, offset & 255), (1, offset >> 8)):
            held, row = sums[place], constant_row(t, part)
            sums[place] = row if held is None else t.add(held, row)
    return sums


def _terms(op: _Sum) -> int:
    if isinstance(op, MatMul):
        depth = (op.input1.type.shape or (None,))[-1] or (op.input2.type.shape or (None, None))[-2]
        return _MOST_TERMS + 1 if depth is None else depth
    shape = op.weight.type.shape or (None,)
    summed = shape[:2] if isinstance(op, DepthwiseConv2D) else shape[1:]
    return _MOST_TERMS + 1 if None in summed else math.prod(d or 0 for d in summed)


@dataclass(slots=True)
class _Word:
    """int32 arithmetic on limbs."""

    t: Tosa

    def low(self, x: Value, mask: int) -> Value:
        return self.t.emit(BitwiseAnd, [x, self.t.constant(mask)])

    def high(self, x: Value, bits: int) -> Value:
        return self.t.arithmetic_right_shift(x, self.t.constant(bits))

    def placed(self, x: Value, left: np.ndarray) -> Value:
        """x shifted to the left, by less than 0 to the right; nothing of it where that is 32 or more to the left."""
        t = self.t
        up, down = np.clip(left, 0, 31), np.clip(-left, 0, 31)
        if up.any():
            x = t.emit(LogicalLeftShift, [x, constant_row(t, up)])
        if down.any():
            x = t.arithmetic_right_shift(x, constant_row(t, down))
        return t.mul(x, constant_row(t, np.where(left < 32, 1, 0))) if (left >= 32).any() else x


def _scaled(sums: list[Value | None], multiplier: np.ndarray, shift: np.ndarray, t: Tosa) -> Value:
    """The low 32 bits of (V m + 2^((s - 1) mod 64)) >> s."""
    w = _Word(t)
    p2, unit = _halves(sums, t)
    m = constant_row(t, multiplier)
    # s = 0: 2^63 is beyond the word; else 2^(s-1), in limbs
    half = [1 << int(s) >> 1 for s in shift]
    r0, r1, r2 = (np.asarray([h >> bits & mask for h in half]) for bits, mask in ((0, _LIMB), (16, _LIMB), (32, -1)))
    a0 = t.mul(unit, m)
    carry = w.high(a0, 16)
    a0 = t.add(w.low(a0, _LIMB), constant_row(t, r0))
    a1 = t.add(t.mul(w.low(p2, _LIMB), m), t.add(carry, w.high(a0, 16)))
    carry = w.high(a1, 16)
    a1 = t.add(w.low(a1, _LIMB), constant_row(t, r1))
    a2 = t.add(t.mul(w.high(p2, 16), m), t.add(t.add(carry, w.high(a1, 16)), constant_row(t, r2)))
    limbs = (w.low(a0, _LIMB), -shift), (w.low(a1, _LIMB), 16 - shift), (a2, 32 - shift)
    first, second, third = (w.placed(x, left) for x, left in limbs)
    return t.emit(BitwiseOr, [t.emit(BitwiseOr, [first, second]), third])


def _halves(sums: list[Value | None], t: Tosa) -> tuple[Value, Value]:
    """V as V >> 16 and its low 16 bits."""
    w, zero = _Word(t), t.constant(0)
    p0, p1, p2 = (zero if v is None else v for v in sums)
    p1 = t.add(p1, w.high(p0, 8))
    p2 = t.add(p2, w.high(p1, 8))
    return p2, t.emit(BitwiseOr, [w.low(p0, 255), w.placed(w.low(p1, 255), np.asarray([8]))])


def is_wide_sum(x: Value) -> bool:
    """Whether x, of the integer form, is a sum of 48 bits."""
    return x.type.storage == i64 and isinstance(x.producer, _Sum)


def greater_wide(x: Value, y: Value, t: Tosa) -> Value:
    """x > y, of which one is a sum of 48 bits, in the integer form, and the other constant."""
    number = y if y.is_constant else x
    if not number.is_constant:
        raise Refused("TOSA does not compare two sums of 48 bits")
    bound = np.asarray(number.array, np.int64)
    limits = constant_row(t, np.clip(bound >> 16, i32.minimum, i32.maximum)), constant_row(t, bound & _LIMB)
    sums = _halves(_sums(x if number is y else y, t), t)
    (high, low), (high_end, low_end) = (sums, limits) if number is y else (limits, sums)
    alike = t.emit(LogicalAnd, [t.equal(high, high_end), t.greater(low, low_end)])
    return t.emit(LogicalOr, [t.greater(high, high_end), alike])
