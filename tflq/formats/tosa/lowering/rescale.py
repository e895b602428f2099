"""RESCALE of the integer form as TOSA 1.0 allows it.

TOSA's RESCALE takes shifts of 2 to 62, multipliers that are not negative, values v with -2^(s-1) <= v < 2^(s-1), and a
zero point on 8 bits only; two roundings are an extension. What is outside is, in int32,

    MUL       (v 2^k M + 2^(S-1)) >> S        the product in 64 bits; S the greatest shift, v 2^k within int32
    shift     two roundings: S is 31, and ARITHMETIC_RIGHT_SHIFT of the sum with the sign rounds half away from zero

and then saturated. 48-bit values (int64 here) have a 16-bit multiplier and one rounding; one that is an int32 widened
is an int32. Sources: TOSA 1.0 specification, RESCALE, MUL, apply_scale_32; `tflq.numerics.fixed_point`.

ext.rescale_i64, the low 32 bits of a scaled sum, and comparisons of sums of 48 bits are in int32. TOSA's RESCALE of 48
bits computes the former where the scaled sum stays within int32; beyond, its result is not defined. There the operands
of the product or convolution are taken as bytes, int8 each, the sums of their products fit int32, and

    V = p2 2^16 + p1 2^8 + p0                      sums of products of high bytes, of mixed ones, of low ones
    P = V m + 2^(s-1) = a2 2^32 + a1 2^16 + a0     m of 15 bits; limbs a1 and a0 of 16 bits, a2 with the sign

Each limb is then shifted to its place in the result.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.inference import product
from tflq.dialects.quant import RescaleI64, RescaleMean
from tflq.dialects.tosa.convolution import Conv2D, DepthwiseConv2D, MatMul
from tflq.dialects.tosa.elementwise import BitwiseAnd, BitwiseOr, BitwiseXor, LogicalAnd, LogicalOr
from tflq.dialects.tosa.movement import Rescale
from tflq.formats.tosa.lowering.context import Tosa, lowered_value, lowering, narrow, product_by, widened_product
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import ScalarType, TensorType, i1, i4, i8, i16, i32, i64, ui8
from tflq.numerics.convolution import divided_multiplier
from tflq.numerics.fixed_point import Multiplier
from tflq.numerics.requantize.scaling import Bounds, FixedPoint, Range, Scaling

_I31, _I47 = 1 << 31, 1 << 47
_STORAGES = (i8, ui8, i16, i32, i64)
INTEGERS = (i1, *_STORAGES)
UNIT = np.asarray([1 << 30], np.int64), np.asarray([30], np.int64)
"""Multiplier and shift of a RESCALE by 1."""
_LIMB = 0xFFFF
_MOST_TERMS = 32000
"""Products of two bytes, and of two more, whose sums fit int32."""
_Sum = MatMul | Conv2D | DepthwiseConv2D


Fixed: TypeAlias = Scaling[FixedPoint]


def operand_range(operand: Value, noted: tuple[int, ...] | None, t: Tosa, zero_point: int = 0) -> tuple[int, int]:
    """Bounds of an operand less its zero point: those noted on the operator, else those that follow from the ops."""
    if noted:
        return int(noted[0]), int(noted[1])
    least, most = t.ranges.of(operand)
    return int(least) - zero_point, int(most) - zero_point


@lowering(Rescale)
def rescale(op: Rescale, t: Tosa) -> Value:
    """saturate(apply_scale(x - input_zp) + output_zp)."""
    source = op.input
    if source.type.storage not in _STORAGES or op.result.type.storage not in _STORAGES:
        raise Refused(f"RESCALE of {source.type.storage} to {op.result.type.storage} has no form")
    to, output_zp = t.storage(op.result), t.zero_point(op.result, op.output_zp)
    bounds = Bounds.of(*operand_range(source, op.input_range, t, op.input_zp))
    s = Scaling(op.factor, t.zero_point(source, op.input_zp), output_zp, bounds, Range(to.minimum, to.maximum))
    factors = widened_product(source, t)
    if factors is not None:
        return _product(factors, s, t, to)
    x = t.value(source)
    if x.type.storage == i64:  # i48 has no RESHAPE: the sums of a matrix product have the shape of TOSA's
        scaled = _rescale_48(x, s, t, to)
        return scaled if op.result.type.shape is None else t.reshape(scaled, op.result.type.shape)
    if s.zero_in and (x.type.storage != i8 or not i8.minimum <= s.zero_in <= i8.maximum):
        x, s = _centred(x, s, t)
    return _rescale_32(x, s, t, to)


@lowering(RescaleMean)
def rescale_mean(op: RescaleMean, t: Tosa) -> Value:
    """A RESCALE, where the number of elements is known."""
    dims = t.value(op.values).type.dims
    if not (count := product([dims[axis] for axis in op.axes])):
        raise Refused("the number of elements in a mean is not known")
    mantissa, left = divided_multiplier(Multiplier(op.multiplier, op.shift), count)
    factor = FixedPoint(np.asarray([mantissa], np.int64), np.asarray([31 - left], np.int64), left < 0)
    to, output_zp = t.storage(op.result), t.zero_point(op.result, op.output_zp)
    bounds = Bounds.of(*operand_range(op.sums, None, t))
    s = Scaling(factor, 0, output_zp, bounds, Range(to.minimum, to.maximum))
    return _rescale_32(t.value(op.sums), s, t, to)


def _centred(x: Value, s: Fixed, t: Tosa) -> tuple[Value, Fixed]:
    """The operand less its zero point, in int32."""
    return t.sub(t.cast(x, i32), t.constant(s.zero_in)), s.replace(zero_in=0)


def _scaled_reach(s: Fixed) -> int:
    """The greatest magnitude of scaled values."""
    reach, (multiplier, shift, _) = s.accumulator.range.reach, s.factor.numbers
    return max((reach * abs(int(m)) >> int(n)) + 1 for m, n in zip(multiplier, shift, strict=True))


def _rescale_48(x: Value, s: Fixed, t: Tosa, to: ScalarType) -> Value:
    m, shift, _ = s.factor.numbers
    if s.zero_in or (shift < 2).any() or (shift > 62).any() or (m < 0).any() or (m > i16.maximum).any():
        raise Refused("TOSA's RESCALE of 48 bits takes no such zero point, shift or multiplier")
    return _finished(x, s.replace(factor=FixedPoint(m, shift, double_round=False)), t, to)


def _admissible(s: Fixed, most_shift: int) -> Fixed:
    """Shifts within TOSA's: one of more than 62 makes 0 of any int32. The factor says so if no channel is rounded
    twice."""
    multiplier, shift, double_round = s.factor.numbers
    if most_shift > 62:
        far = shift > 62
        return s.replace(factor=FixedPoint(np.where(far, 0, multiplier), np.where(far, 62, shift), double_round))
    if double_round and most_shift <= 31:
        return s.replace(factor=FixedPoint(multiplier, shift, double_round=False))
    return s


def _rescale_32(x: Value, s: Fixed, t: Tosa, to: ScalarType) -> Value:
    least_shift, most_shift = _ends(s.factor.shift)
    s = _admissible(s, most_shift)
    (m, shift, double_round), (low, high) = s.factor.numbers, s.accumulator.range
    least_shift = min(least_shift, 62) if shift.size else 62
    least_room = 1 << (max(least_shift, 1) - 1)
    within = least_shift >= 2 and -least_room <= low and high < least_room
    if s.zero_in and not within:
        x, s = _centred(x, s, t)
    if not within and to != i32 and _scaled_reach(s) >= _I31 and _saturates(m, shift):
        room = np.left_shift(np.int64(1), np.maximum(shift, 1) - 1)
        x, within = limited(t.cast(x, i32), t, -room, room - 1), True
        s = s.replace(accumulator=Bounds.of(-int(room.max()), int(room.max()) - 1))
    if within and _ends(m)[0] >= 0 and (not double_round or t.target.has("doubleround")):
        return _finished(x, s, t, to)
    if s.zero_in:
        x, s = _centred(x, s, t)
    y = _multiplied(t.cast(x, i32), s, t)
    return saturated(y, t, to, s.zero_out, _scaled_reach(s))


def _ends(numbers: np.ndarray) -> tuple[int, int]:
    """The least and the greatest of integers [1 or C]; 0 of none."""
    if numbers.size == 1:
        number = numbers.item()
        return number, number
    return (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)


def _saturates(multiplier: np.ndarray, shift: np.ndarray) -> bool:
    """Whether values of 2^(s-1) are beyond every 16-bit result, zero point included."""
    return bool(((multiplier >= 1 << 18) & (shift >= 2)).all())


def _multiplied(x: Value, s: Fixed, t: Tosa) -> Value:
    """apply_scale in int32, by MUL with a shift."""
    m, shift, double_round = s.factor.numbers
    if (m < 0).any():
        if double_round:
            raise Refused("TOSA has no RESCALE by a negative multiplier with two roundings")
        x = t.mul(x, constant_row(t, np.where(m < 0, -1, 1)))
        m = np.abs(m)
    total = 31 if double_round else int(shift.max())
    up = np.maximum(total - shift, 0)
    if s.accumulator.range.reach << int(up.max()) >= _I31 + (not up.any()) or not 0 <= total <= 62:
        raise Refused("the shifted operand may leave int32, and TOSA's RESCALE takes no such shift")
    if up.any():
        x = t.mul(x, constant_row(t, np.int64(1) << up))
    y = t.mul(x, constant_row(t, m), shift=total)
    down = np.maximum(shift - total, 0)
    if not down.any():
        return y
    sign = t.arithmetic_right_shift(y, t.constant(31))
    if not down.all():
        sign = t.mul(sign, constant_row(t, np.where(down > 0, 1, 0)))
    return t.arithmetic_right_shift(t.add(y, sign), constant_row(t, down), round=True)


def _product(factors: tuple[Value, Value], s: Fixed, t: Tosa, to: ScalarType) -> Value:
    """The RESCALE of a product of two int32s that int32 does not hold."""
    multiplier, shifts, double_round = s.factor.numbers
    m, shift = int(multiplier[0]), int(shifts[0])
    if multiplier.size == 1 and not (double_round and shift > 31) and 1 <= shift <= 62:
        if s.accumulator.range.reach < _I31:
            x = t.mul(narrow(factors[0], t), narrow(factors[1], t))
            return _rescale_32(x, s.replace(zero_in=0), t, to)
        y = product_by(*factors, m, shift, t)
        if y is not None:
            return saturated(y, t, to, s.zero_out, _scaled_reach(s))
    raise Refused("a product of more than 32 bits has no form in TOSA")


def _finished(x: Value, s: Fixed, t: Tosa, to: ScalarType) -> Value:
    """RESCALE itself; a zero point that TOSA does not take on the result's type is added after it."""
    multiplier, shift, double_round = s.factor.numbers
    rescaled = partial(emit_rescale, t, x, multiplier, shift, input_zp=s.zero_in, double_round=double_round)
    if not s.zero_out or (to == i8 and i8.minimum <= s.zero_out <= i8.maximum):
        return rescaled(to, output_zp=s.zero_out)
    return saturated(rescaled(i32), t, to, s.zero_out, _scaled_reach(s))


def emit_rescale(
    t: Tosa,
    x: Value,
    multiplier: np.ndarray,
    shift: np.ndarray,
    to: ScalarType,
    *,
    input_zp: int = 0,
    output_zp: int = 0,
    double_round: bool = False,
) -> Value:
    """RESCALE by multipliers and shifts, integers [1 or C]."""
    return t.emit(
        Rescale,
        [x],
        to,
        multiplier=multiplier.astype(np.int32, copy=False),
        shift=shift.astype(np.int8, copy=False),
        input_zp=input_zp,
        output_zp=output_zp,
        rounding_mode="DOUBLE_ROUND" if double_round else "SINGLE_ROUND",
        scale32=x.type.storage != i64,
        per_channel=multiplier.size > 1,
    )


def saturated(x: Value, t: Tosa, to: ScalarType, zero_point: int, reach: int) -> Value:
    """saturate(x + zero_point) of an int32 of that magnitude at most."""
    if reach < 1 << 29 and (to == i8 or (to == i16 and not zero_point)) and i8.minimum <= zero_point <= i8.maximum:
        return emit_rescale(t, x, *UNIT, to, output_zp=zero_point)
    low, high = to.minimum - zero_point, to.maximum - zero_point
    x = limited(x, t, low if reach > -low else None, high if reach > high else None)
    if zero_point:
        x = t.add(x, t.constant(zero_point))
    return t.cast(x, to)


def limited(x: Value, t: Tosa, low: int | np.ndarray | None, high: int | np.ndarray | None) -> Value:
    """An int32 within bounds (None: without), by MAXIMUM and MINIMUM, where the bounds are within int32."""
    if low is not None and np.max(low) > i32.minimum:
        x = t.maximum(x, constant_row(t, np.maximum(low, i32.minimum)))
    if high is not None and np.min(high) < i32.maximum:
        x = t.minimum(x, constant_row(t, np.minimum(high, i32.maximum)))
    return x


def constant_row(t: Tosa, values: np.ndarray) -> Value:
    """A constant int32 per index of the last dim; a scalar if all are the same."""
    flat = np.atleast_1d(np.asarray(values))
    return t.constant(flat[0] if (flat == flat[0]).all() else flat)


# Sums of 48 bits in int32.


@lowering(RescaleI64)
def rescale_i64(op: RescaleI64, t: Tosa) -> Value:
    numbers = (np.atleast_1d(v).astype(np.int64) for v in (op.multiplier, op.shift))
    multiplier, shift = np.broadcast_arrays(*numbers)
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
    """An operand of the integer form as bytes, which are operands of that form themselves, lowered already."""
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
    parts = []
    for byte, zero, place in ((high, 0, 1), (low, -128, 0)):
        part = Value(TensorType(operand.type.shape, i8))
        t.set(part, byte)
        parts.append(_Part(part, zero, place))
    return parts


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
            _add(t, sums, x.place + y.place, lowered_value(of_bytes, t))
    if bias is not None:
        offset = bias.array.astype(np.int64)
        _add(t, sums, 0, constant_row(t, offset & 255))
        _add(t, sums, 1, constant_row(t, offset >> 8))
    return sums


def _add(t: Tosa, sums: list[Value | None], place: int, x: Value) -> None:
    total = sums[place]
    sums[place] = x if total is None else t.add(total, x)


def _terms(op: _Sum) -> int:
    if isinstance(op, MatMul):
        depth = (op.input1.type.shape or (None,))[-1] or (op.input2.type.shape or (None, None))[-2]
        return _MOST_TERMS + 1 if depth is None else depth
    shape = op.weight.type.shape or (None,)
    terms = product(shape[:2] if isinstance(op, DepthwiseConv2D) else shape[1:])
    return _MOST_TERMS + 1 if terms is None else terms


def _low(t: Tosa, x: Value, mask: int) -> Value:
    return t.emit(BitwiseAnd, [x, t.constant(mask)])


def _high(t: Tosa, x: Value, bits: int) -> Value:
    return t.arithmetic_right_shift(x, t.constant(bits))


def _placed(t: Tosa, x: Value, left: np.ndarray) -> Value:
    """x shifted to the left, by less than 0 to the right; 0 where that is 32 or more to the left."""
    up, down = np.clip(left, 0, 31), np.clip(-left, 0, 31)
    if up.any():
        x = t.logical_left_shift(x, constant_row(t, up))
    if down.any():
        x = t.arithmetic_right_shift(x, constant_row(t, down))
    return t.mul(x, constant_row(t, np.where(left < 32, 1, 0))) if (left >= 32).any() else x


def _scaled(sums: list[Value | None], multiplier: np.ndarray, shift: np.ndarray, t: Tosa) -> Value:
    """The low 32 bits of (V m + 2^((s - 1) mod 64)) >> s."""
    low, high = partial(_low, t), partial(_high, t)
    p2, unit = _halves(sums, t)
    m = constant_row(t, multiplier)
    # s = 0: 2^63 is beyond the word; else 2^(s-1), in limbs
    half = [1 << int(s) >> 1 for s in shift]
    r0, r1, r2 = (np.asarray([h >> bits & mask for h in half]) for bits, mask in ((0, _LIMB), (16, _LIMB), (32, -1)))
    a0 = t.mul(unit, m)
    carry = high(a0, 16)
    a0 = t.add(low(a0, _LIMB), constant_row(t, r0))
    a1 = t.add(t.mul(low(p2, _LIMB), m), t.add(carry, high(a0, 16)))
    carry = high(a1, 16)
    a1 = t.add(low(a1, _LIMB), constant_row(t, r1))
    a2 = t.add(t.mul(high(p2, 16), m), t.add(t.add(carry, high(a1, 16)), constant_row(t, r2)))
    limbs = (low(a0, _LIMB), -shift), (low(a1, _LIMB), 16 - shift), (a2, 32 - shift)
    first, second, third = (_placed(t, x, left) for x, left in limbs)
    return t.emit(BitwiseOr, [t.emit(BitwiseOr, [first, second]), third])


def _halves(sums: list[Value | None], t: Tosa) -> tuple[Value, Value]:
    """V as V >> 16 and its low 16 bits."""
    zero = t.constant(0)
    p0, p1, p2 = (zero if v is None else v for v in sums)
    p1 = t.add(p1, _high(t, p0, 8))
    p2 = t.add(p2, _high(t, p1, 8))
    return p2, t.emit(BitwiseOr, [_low(t, p0, 255), _placed(t, _low(t, p1, 255), np.asarray([8]))])


def is_wide_sum(x: Value) -> bool:
    """Whether x, of the integer form, is a sum of 48 bits."""
    return x.type.storage == i64 and isinstance(x.producer, _Sum)


def greater_wide(x: Value, y: Value, t: Tosa) -> Value:
    """x > y, where one, in the integer form, is a sum of 48 bits, and the other a constant."""
    number = y if y.is_constant else x
    if not number.is_constant:
        raise Refused("TOSA does not compare two sums of 48 bits")
    bound = np.asarray(number.array, np.int64)
    limits = constant_row(t, np.clip(bound >> 16, i32.minimum, i32.maximum)), constant_row(t, bound & _LIMB)
    sums = _halves(_sums(x if number is y else y, t), t)
    (high, low), (high_end, low_end) = (sums, limits) if number is y else (limits, sums)
    alike = t.emit(LogicalAnd, [t.equal(high, high_end), t.greater(low, low_end)])
    return t.emit(LogicalOr, [t.greater(high, high_end), alike])


# Integers and truth values of any type as int32 to compute with, and back. Narrowing wraps.


def plain(operand: Value, t: Tosa) -> Value:
    """An operand to compute with: integers and truth values as int32, uint8 from 0 to 255; floats as they are."""
    if operand.type.storage not in INTEGERS:
        if operand.type.storage.is_float:
            return t.value(operand)
        raise Refused(f"'{operand.name}' is {operand.type.storage}, which TOSA lacks")
    if operand.type.storage == ui8:
        return emit_rescale(t, t.value(operand), *UNIT, i32, input_zp=-128)
    return t.cast(narrow(operand, t), i32)


def ordered(operand: Value, t: Tosa) -> Value:
    """An operand to compare: as `plain`, but uint8 less 128."""
    return t.cast(t.value(operand), i32) if operand.type.storage == ui8 else plain(operand, t)


def stored(y: Value, result: Value, t: Tosa) -> Value:
    """An int32 or a float in the type of an op's result; integers wrap."""
    to = result.type.storage
    if to == i64:
        raise Refused(f"'{result.name}' is int64, which TOSA lacks")
    if to == ui8:
        return sign_changed(t.cast(y, i8), t)
    return t.cast(y, to)


def sign_changed(x: Value, t: Tosa) -> Value:
    """An int8 with its sign bit changed: from an int8 to the same bits of a uint8, less 128, and back."""
    return t.emit(BitwiseXor, [x, t.constant(np.asarray(-128), i8)])
