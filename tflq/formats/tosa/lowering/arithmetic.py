"""Arithmetic, comparisons, choices, bits and logic: of the integer form, and of TFLite on plain tensors.

TOSA has MAXIMUM, MINIMUM and comparisons of int32 and floats, so narrower integers are widened. TFLite's arithmetic on
int32 and smaller integers wraps; floats are computed where TOSA's operator is the same.

    DIV          INTDIV, which truncates as the kernel does
    FLOOR_DIV    q = a / b truncated, less one where the remainder is not 0 and its sign is not b's
    FLOOR_MOD    the remainder, plus b in the same case
    RIGHT_SHIFT  arithmetic, by 0 to bits - 1 places: the kernel clamps the amount

Sources: kernels/add.cc, sub.cc, mul.cc, div.cc, floor_div.cc, floor_mod.cc, pow.cc, atan2.cc, bitwise_xor.cc,
right_shift.cc, comparisons.cc, select.cc, logical.cc.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.declare import Operator
from tflq.dialects.tfl import arithmetic, comparison
from tflq.dialects.tosa import elementwise as tosa
from tflq.dialects.tosa.movement import Cast
from tflq.formats.tosa.lowering.context import Tosa, fits_int32, in_int32, lowering, narrow, widened_product
from tflq.formats.tosa.lowering.floats import (
    float_div,
    float_floor_div,
    float_floor_mod,
    floating,
    fused_activation,
    need_float,
    reciprocal,
    scalar,
)
from tflq.formats.tosa.lowering.rescale import (
    UNIT,
    emit_rescale,
    greater_wide,
    is_wide_sum,
    limited,
    ordered,
    plain,
    sign_changed,
    stored,
)
from tflq.ir.ops import Op, Value
from tflq.ir.types import f32, i1, i8, i16, i32, i64, ui8
from tflq.numerics.activation import integer_activation_range

# ATAN2 in float, which TOSA lacks. The arc tangent of r = min(|x|, |y|) / max(|x|, |y|) in [0, 1] is r P(r^2), P the
# polynomial of degree 8 whose greatest relative error is least, 1.6e-8; the rest is reflections. Zeros count as
# positive.

_ARC_TANGENT = (  # coefficients of 1, r^2, r^4, ...
    *(0.999999985, -0.333330733, 0.199926194, -0.142036446, 0.106409343),
    *(-0.0750429507, 0.0426915243, -0.0160686314, 0.00284989009),
)


@floating(arithmetic.Atan2)
def atan2(op: arithmetic.Atan2, t: Tosa, y: Value, x: Value) -> Value:
    zero, one = scalar(t, 0, x), scalar(t, 1, x)
    width, height = t.emit(tosa.Abs, [x]), t.emit(tosa.Abs, [y])
    large, small = t.maximum(width, height), t.minimum(width, height)
    diagonal = t.select(t.greater(large, zero), one, zero)
    ratio = t.select(t.equal(small, large), diagonal, t.mul(small, reciprocal(t, large)))
    angle = t.mul(ratio, _polynomial(t, t.mul(ratio, ratio)))
    angle = t.select(t.greater(height, width), t.sub(scalar(t, np.pi / 2, x), angle), angle)
    angle = t.select(t.greater(zero, x), t.sub(scalar(t, np.pi, x), angle), angle)
    return t.select(t.greater(zero, y), t.sub(zero, angle), angle)


def _polynomial(t: Tosa, x: Value) -> Value:
    """The polynomial at x, by Horner's rule."""
    value = scalar(t, _ARC_TANGENT[-1], x)
    for coefficient in reversed(_ARC_TANGENT[:-1]):
        value = t.add(t.mul(value, x), scalar(t, coefficient, x))
    return value


# An 8-bit operand less its zero point, times a power of two, is CAST, SUB and MUL in the integer form and one RESCALE
# here: by 2^30 >> (30 - k) it makes (x - zero_point) 2^k, exactly, while 2^(29 - k) is more than any x.

_LARGEST = 20  # k: differences of 8 bits are below 2^9


def centred_product(op: tosa.Mul, t: Tosa) -> Value | None:
    """The lowered MUL of such a difference, or of a widened 8-bit operand, and a power of two; None for another MUL."""
    for x, y in ((op.input1, op.input2), (op.input2, op.input1)):
        factor = _number(y)
        if factor is not None and factor > 1 and factor & (factor - 1) == 0 and factor <= 1 << _LARGEST:
            return centred(x, factor.bit_length() - 1, t) if x.type.shape == op.result.type.shape else None
    return None


def centred(value: Value, up: int, t: Tosa) -> Value | None:
    """`value` times 2^up, if it is a widened 8-bit operand or the difference of one and its zero point."""
    op, zero = value.producer, 0
    if isinstance(op, tosa.Sub):
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
    unit, shift = UNIT
    return emit_rescale(t, t.value(source), unit, shift - up, i32, input_zp=zero)


def _number(value: Value) -> int | None:
    """The one element of a constant."""
    return int(value.array.item()) if value.is_constant and value.array.size == 1 else None


# Arithmetic of the integer form, on TOSA's types for it or in int32 and back. A product of int64s is computed in int32
# where that is proven to be enough (`tflq.formats.tosa.lowering.context`).


@lowering(tosa.Add, tosa.Sub, tosa.IntDiv)
def sum_or_difference(op: tosa.Add | tosa.Sub | tosa.IntDiv, t: Tosa) -> Value:
    if isinstance(op, tosa.Sub) and (difference := centred(op.result, 0, t)):
        return difference
    return t.emit(type(op), in_int32(op, t))


@lowering(tosa.Maximum, tosa.Minimum)
def extreme(op: tosa.Maximum | tosa.Minimum, t: Tosa) -> Value:
    x, y = (ordered(v, t) for v in (op.input1, op.input2))
    result = t.emit(type(op), [x, y])
    return result if op.result.type.storage == i64 else t.cast(result, t.storage(op.result))


@lowering(tosa.Mul)
def multiply(op: tosa.Mul, t: Tosa) -> Value:
    """MUL; a product of int64s that may leave int32 is left to the RESCALE that reads it."""
    shift = op.shift
    if widened_product(op.result, t) is not None:
        return Value(t.type(op.result))
    if not shift and (product := centred_product(op, t)):
        return product
    if not shift and (shifted := _shifted_left(op, t)):
        return shifted
    x, y = in_int32(op, t)
    return t.emit(tosa.Mul, [x, y], t.storage(op.result) if x.type.storage in (i8, i16) else None, shift=shift)


def _shifted_left(op: tosa.Mul, t: Tosa) -> Value | None:
    """A product by powers of two that may leave int32, where it wraps: TOSA's MUL must not, a left shift loses bits."""
    x, factor = op.input1, op.input2
    if op.result.type.storage != i32 or not factor.is_constant or not factor.array.size:
        return None
    factors = factor.array
    if (factors <= 0).any() or (factors & (factors - 1)).any():
        return None
    low, high = t.ranges.of(x)
    largest = int(factors.max())
    if fits_int32((low * largest, high * largest)):
        return None
    places = np.frexp(factors.astype(np.float64))[1] - 1
    return t.logical_left_shift(t.value(x), t.constant(places))


@lowering(tosa.Abs, tosa.Negate)
def absolute_or_negative(op: tosa.Abs | tosa.Negate, t: Tosa) -> Value:
    if t.offset(op.input1):
        raise Refused(f"TOSA has no {op.short_name.upper()} of uint8")
    return t.emit(type(op), [t.value(op.input1)], **op.attributes)


# TFLite's arithmetic on plain tensors.


def _activated(op: arithmetic.Add | arithmetic.Sub | arithmetic.Mul | arithmetic.Div, t: Tosa, y: Value) -> Value:
    """With the fused activation, in the result's type."""
    activation = op.fused_activation_function
    if y.type.storage.is_float:
        return fused_activation(t, y, activation)
    y = limited(y, t, *integer_activation_range(activation, i32.minimum, i32.maximum))
    return stored(y, op.result, t)


def _need_unscaled(op: arithmetic.Add | arithmetic.Sub | arithmetic.Mul | arithmetic.Div) -> None:
    """Refused where the kernel scales by parameters, and a plain tensor has none."""
    storage = op.result.type.storage
    if storage in (i8, ui8) or (storage == i16 and isinstance(op, arithmetic.Div)):
        name = op.short_name.upper()
        raise Refused(f"the kernel of {name} scales {storage}, but '{op.lhs.name}' has no quantization parameters")


@lowering(arithmetic.Add, arithmetic.Sub, arithmetic.Mul)
def kernel_arithmetic(op: arithmetic.Add | arithmetic.Sub | arithmetic.Mul, t: Tosa) -> Value:
    need_float(t, op, op.lhs)
    _need_unscaled(op)
    x, y = plain(op.lhs, t), plain(op.rhs, t)
    compute = {arithmetic.Add: t.add, arithmetic.Sub: t.sub}.get(type(op), t.mul)
    return _activated(op, t, compute(x, y))


@lowering(arithmetic.AddN)
def add_n(op: arithmetic.AddN, t: Tosa) -> Value:
    """In the kernel's order: one after another. Source: kernels/add_n.cc."""
    need_float(t, op, op.result)
    in_int32(op, t)
    first, *rest = (plain(v, t) for v in op.present_operands)
    return functools.reduce(t.add, rest, first)


@lowering(arithmetic.Maximum, arithmetic.Minimum)
def kernel_extreme(op: arithmetic.Maximum | arithmetic.Minimum, t: Tosa) -> Value:
    need_float(t, op, op.lhs)
    y = t.emit(
        tosa.Maximum if isinstance(op, arithmetic.Maximum) else tosa.Minimum, [ordered(op.lhs, t), ordered(op.rhs, t)]
    )
    return t.cast(y, i8) if op.result.type.storage == ui8 else stored(y, op.result, t)


@lowering(arithmetic.SquaredDifference)
def squared_difference(op: arithmetic.SquaredDifference, t: Tosa) -> Value:
    need_float(t, op, op.lhs)
    difference = t.sub(plain(op.lhs, t), plain(op.rhs, t))
    return stored(t.mul(difference, difference), op.result, t)


@lowering(arithmetic.Div)
def divide(op: arithmetic.Div, t: Tosa) -> Value:
    _need_unscaled(op)
    x, y = plain(op.lhs, t), plain(op.rhs, t)
    return _activated(op, t, float_div(t, x, y) if x.type.storage.is_float else t.emit(tosa.IntDiv, [x, y]))


@lowering(arithmetic.FloorDiv, arithmetic.FloorMod)
def floor_division(op: arithmetic.FloorDiv | arithmetic.FloorMod, t: Tosa) -> Value:
    x, y = plain(op.lhs, t), plain(op.rhs, t)
    if x.type.storage.is_float:
        return (float_floor_div if isinstance(op, arithmetic.FloorDiv) else float_floor_mod)(t, x, y)
    quotient = t.emit(tosa.IntDiv, [x, y])
    rest = t.sub(x, t.mul(quotient, y))
    zero = t.constant(np.asarray(0))
    # the remainder is 0 or has the dividend's sign; with the divisor's, their exclusive or is not negative
    other = t.greater(zero, t.emit(tosa.BitwiseXor, [rest, y]))
    off = t.emit(tosa.LogicalAnd, [other, t.emit(tosa.LogicalNot, [t.equal(rest, zero)])])
    if isinstance(op, arithmetic.FloorDiv):
        return stored(t.sub(quotient, t.cast(off, i32)), op.result, t)
    return stored(t.add(rest, t.select(off, y, zero)), op.result, t)


# POW in float, which is std::pow. TOSA's POW takes a base from 0 up, not 0 with an exponent that is not positive, and
# finite numbers: a base of 0 or less goes around it.
#
#     x < 0     |x|^y for an even y, -|x|^y for an odd one, else not a number
#     x = 0     0 for y > 0, 1 for y = 0, infinity below
#     constant exponents 1, 2, 3, 4 and their negatives are products, 1/2 and -1/2 square roots


_LEAST, _GREATEST = (float(v) for v in (np.finfo(np.float32).tiny, np.finfo(np.float32).max))


def positive_power(t: Tosa, base: Value, exponent: Value) -> Value:
    """base^exponent for positive bases; for others, of the least positive normal number."""
    if not exponent.is_constant:
        exponent = t.clamp(exponent, -_GREATEST, _GREATEST)
    if base.is_constant:
        base = t.constant(np.clip(base.array, _LEAST, _GREATEST), f32)
    else:
        base = t.clamp(base, _LEAST, _GREATEST)
    return t.emit(tosa.Pow, [base, exponent])


@floating(arithmetic.Pow)
def power(op: arithmetic.Pow, t: Tosa, base: Value, exponent: Value) -> Value:
    y = float(exponent.array.flat[0]) if exponent.is_constant and exponent.array.size == 1 else None
    if y is not None and (simple := _simple(t, base, y)) is not None:
        return t.ranked(simple, len(op.result.type.dims))
    size = t.constant(np.abs(base.array), f32) if base.is_constant else t.emit(tosa.Abs, [base])
    size = positive_power(t, size, exponent)
    zero, one = scalar(t, 0, exponent), scalar(t, 1, exponent)
    if not (base.is_constant and (base.array != 0).all()):
        below = t.select(t.equal(exponent, zero), one, scalar(t, np.inf, exponent))
        at_zero = t.select(t.greater(exponent, zero), zero, below)
        size = t.select(t.equal(base, scalar(t, 0, base)), at_zero, size)
    if base.is_constant and (base.array >= 0).all():
        return size
    half = t.mul(exponent, scalar(t, 0.5, exponent))
    even = t.equal(half, t.emit(tosa.Floor, [half]))
    whole = t.equal(exponent, t.emit(tosa.Floor, [exponent]))
    odd = t.select(whole, t.sub(scalar(t, 0, size), size), scalar(t, np.nan, size))
    return t.select(t.greater(scalar(t, 0, base), base), t.select(even, size, odd), size)


def _simple(t: Tosa, x: Value, exponent: float) -> Value | None:
    """x^exponent as products, or as a square root."""
    if exponent == -0.5:
        return t.emit(tosa.Rsqrt, [x])
    if exponent < 0 and (inverse := _simple(t, x, -exponent)) is not None:
        return reciprocal(t, inverse)
    if exponent == 0.5:
        return reciprocal(t, t.emit(tosa.Rsqrt, [x]))
    if exponent == 1:
        return x
    if exponent not in (2, 3, 4):
        return None
    square = t.mul(x, x)
    return square if exponent == 2 else t.mul(square, x if exponent == 3 else square)


# Bits of integers.


@lowering(tosa.BinaryBits)
def bits(op: tosa.BinaryBits, t: Tosa) -> Value:
    """Operators on bits, which take every signed type up to 32 bits, or on truth values."""
    return t.emit(type(op), in_int32(op, t), **op.attributes)


@lowering(tosa.BitwiseNot, tosa.Clz, tosa.LogicalNot)
def unary(op: tosa.BitwiseNot | tosa.Clz | tosa.LogicalNot, t: Tosa) -> Value:
    """The complement of a uint8, less 128, is the complement of what it is less 128."""
    if t.offset(op.input) and not isinstance(op, tosa.BitwiseNot):
        raise Refused(f"TOSA has no {op.short_name.upper()} of uint8")
    return t.emit(type(op), [t.value(op.input)], **op.attributes)


@lowering(comparison.BitwiseXor)
def exclusive_or(op: comparison.BitwiseXor, t: Tosa) -> Value:
    """The sign bits of uint8s less 128 cancel, so that of the result is set again."""
    storage = op.result.type.storage
    if storage.bits > 32 or (not storage.signed and storage != ui8):
        raise Refused(f"TOSA has no {storage}")
    result = t.emit(tosa.BitwiseXor, [t.value(op.lhs), t.value(op.rhs)])
    return sign_changed(result, t) if storage == ui8 else result


@lowering(comparison.RightShift)
def right_shift(op: comparison.RightShift, t: Tosa) -> Value:
    amount = limited(plain(op.rhs, t), t, 0, op.result.type.storage.bits - 1)
    return stored(t.arithmetic_right_shift(plain(op.lhs, t), amount), op.result, t)


# Comparisons, choices and logic. Truth values are equal if their exclusive or is false. TFLite compares plain integers
# as they are.

_KERNELS: Final[Mapping[type[Op], tuple[type[Operator], bool]]] = {
    comparison.Equal: (tosa.Equal, False),
    comparison.Greater: (tosa.Greater, False),
    comparison.GreaterEqual: (tosa.GreaterEqual, False),
    comparison.Less: (tosa.Greater, True),
    comparison.LessEqual: (tosa.GreaterEqual, True),
}
"""TOSA's operator for each of TFLite's, and whether its operands change places."""


@lowering(tosa.Equal, tosa.Greater, tosa.GreaterEqual, *_KERNELS)
def compare(op: tosa.Comparison | comparison.Comparison, t: Tosa) -> Value:
    x, y = op.operands
    assert x is not None
    assert y is not None
    kind, swapped = _KERNELS.get(type(op), (type(op), False))
    if x.type.storage == i1 and kind is tosa.Equal:
        return t.emit(tosa.LogicalNot, [t.emit(tosa.LogicalXor, [t.value(x), t.value(y)])])
    if isinstance(op, tosa.Greater) and (is_wide_sum(x) or is_wide_sum(y)):
        return greater_wide(x, y, t)
    left, right = ordered(x, t), ordered(y, t)
    return t.emit(kind, (right, left) if swapped else (left, right))


@lowering(comparison.NotEqual)
def not_equal(op: comparison.NotEqual, t: Tosa) -> Value:
    x, y = op.lhs, op.rhs
    if x.type.storage == i1:
        return t.emit(tosa.LogicalXor, [t.value(x), t.value(y)])
    return t.emit(tosa.LogicalNot, [t.equal(ordered(x, t), ordered(y, t))])


@lowering(comparison.LogicalAnd, comparison.LogicalOr)
def logical(op: comparison.LogicalAnd | comparison.LogicalOr, t: Tosa) -> Value:
    return t.emit(
        tosa.LogicalAnd if isinstance(op, comparison.LogicalAnd) else tosa.LogicalOr, [t.value(op.lhs), t.value(op.rhs)]
    )


@lowering(comparison.LogicalNot)
def logical_not(op: comparison.LogicalNot, t: Tosa) -> Value:
    return t.emit(tosa.LogicalNot, [t.value(op.input)])


@lowering(tosa.Select)
def select(op: tosa.Select, t: Tosa) -> Value:
    return t.select(t.value(op.condition), narrow(op.on_true, t), narrow(op.on_false, t))


_SELECTED = (i1, i8, i16, i32)


@lowering(comparison.Select, comparison.SelectV2)
def kernel_select(op: comparison.Select | comparison.SelectV2, t: Tosa) -> Value:
    """SELECT's condition may be one of the first dim's; SELECT_V2 broadcasts."""
    condition, x, y = (t.value(v) for v in (op.condition, op.on_true, op.on_false))
    if x.type.storage not in _SELECTED and not x.type.storage.is_float:
        raise Refused(f"'{op.result.name}' is {x.type.storage}, which TOSA does not have")
    rank = op.result.type.rank or 0
    if isinstance(op, comparison.Select) and condition.type.rank == 1 and rank > 1:
        condition = t.reshape(condition, (*condition.type.dims, *(1,) * (rank - 1)))
    return t.reshape(t.select(condition, x, y), op.result.type.dims)
