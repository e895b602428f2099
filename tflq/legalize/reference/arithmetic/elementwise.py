"""ADD, SUB, MUL, SQUARED_DIFFERENCE, MAXIMUM, MINIMUM.

    ADD, SUB   ((x1 - z1) << L) * m1 ± ((x2 - z2) << L) * m2, times m, plus z: RESCALEs around one addition
    MUL        (x1 - z1) * (x2 - z2), times m, plus z: one RESCALE

each multiplication rounds as MultiplyByQuantizedMultiplier, and the result is clamped to the fused activation's
range. Where SUB's m is above 1, its kernel divides by a negative power of two (`undefined.py`). int16 has two
more forms: ADD and SUB of power-of-two scales shift one operand; MUL of int16 to 8 bits disregards all scales. MAXIMUM
and MINIMUM are of the stored integers.
Sources: kernels/add.cc, sub.cc, mul.cc, squared_difference.cc, maximum_minimum.cc; kernels/internal/reference/add.h,
sub.h, integer_ops/add.h, integer_ops/mul.h.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tflq.dialects.tfl.arithmetic import Add, Maximum, Minimum, Mul, SquaredDifference, Sub
from tflq.ir.core import Value
from tflq.ir.types import UniformQuantizedType, i8, i16, i32, i64, ui8
from tflq.legalize.reference.arithmetic.undefined import divided_undefined
from tflq.legalize.reference.generic.moved_parameters import parameters_differ
from tflq.legalize.reference.generic.movement import COPIED
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import centred, kernel_name, per_layer, rounding_shift, scaled, symmetric
from tflq.numerics.activation import BOUNDS, activation_range, integer_activation_range
from tflq.numerics.elementwise import addition, multiplication, power_of_two_shifts
from tflq.numerics.elementwise import squared_difference as squared_parameters
from tflq.numerics.fixed_point import Multiplier

__all__: list[str] = []

_HALF = Multiplier(1 << 30, 0)


_Activated: TypeAlias = Add | Sub | Mul


def _answer(op: _Activated, result: Value, disregarded: str = "") -> Rewritten:
    """The result, with a warning where the kernel disregards something the model says."""
    activation = op.fused_activation_function
    if activation != "NONE" and activation not in BOUNDS:
        disregarded = f"the kernel ignores the fused activation {activation}"
    return Rewritten([result], warning=disregarded)


def _clamped(op: _Activated, b: RuleBuilder, x: Value, output: UniformQuantizedType) -> Value:
    """x within the fused activation's range, which is at most the storage type's. ValueError as `activation_range`."""
    storage = output.storage
    low, high = activation_range(
        op.fused_activation_function, storage.minimum, storage.maximum, output.scale, output.zero_point
    )
    return b.clamp(x, low, high)


def _integers(op: _Activated, b: RuleBuilder) -> Answer | None:
    """int32 and int64: the kernels compute with the integers as they are. None for other storage types."""
    storage = op.result.type.storage
    if storage not in (i32, i64) or any(v.type.storage != storage for v in op.tensors):
        return None
    x, y = b.value(op.lhs), b.value(op.rhs)
    result = b.add(x, y) if isinstance(op, Add) else b.sub(x, y) if isinstance(op, Sub) else b.mul(x, y)
    result = b.clamp(result, *integer_activation_range(op.fused_activation_function, storage.minimum, storage.maximum))
    return _answer(op, result, f"the kernel ignores scales and zero points of {storage}")


@rule(Add, Sub)
def add(op: Add | Sub, b: RuleBuilder) -> Answer:
    """ADD and SUB of 8-bit and int16 tensors."""
    if integers := _integers(op, b):
        return integers
    elements = per_layer(op)
    first, second, output = elements
    storage = output.storage
    if storage not in (i8, ui8, i16) or first.storage != storage or second.storage != storage:
        raise NotApplicable(f"{kernel_name(op)} has no form for {first.storage}, {second.storage} → {storage}")
    if storage is i16:
        symmetric(op, *elements)
    try:
        if storage is i16 and op.pot_scale_int16:
            shifts = power_of_two_shifts(first.scale, second.scale, output.scale)
            if shifts is not None:
                return _add_shifted(op, b, shifts, output)
        total = _add_scaled(op, b, first, second, output)
        return _answer(op, _clamped(op, b, total, output))
    except ValueError as error:
        raise NotApplicable(f"the kernel refuses these parameters: {error}") from error


def _add_scaled(
    op: Add | Sub,
    b: RuleBuilder,
    first: UniformQuantizedType,
    second: UniformQuantizedType,
    output: UniformQuantizedType,
) -> Value:
    """The general form. Shifted operands, one of them exactly halved, stay within 2^30, so their sum within int32."""
    parameters = addition(first.scale, second.scale, output.scale, output.storage.bits, subtract=isinstance(op, Sub))
    x = _shifted(b, op.lhs, first, parameters.left_shift, parameters.first)
    y = _shifted(b, op.rhs, second, parameters.left_shift, parameters.second)
    total = b.sub(x, y) if isinstance(op, Sub) else b.add(x, y)
    if parameters.sum.shift > 0:
        reach = _reach(first, output, parameters.first) + _reach(second, output, parameters.second)
        return _sub_above_one(op, b, total, parameters.sum, reach, output)
    return scaled(b, total, parameters.sum, output.storage, 1 << 30, output_zp=output.zero_point)


def _reach(element: UniformQuantizedType, output: UniformQuantizedType, multiplier: Multiplier) -> int:
    """The greatest magnitude of a shifted operand."""
    shift = 15 if output.storage is i16 else 20
    most = max(element.storage.maximum - element.zero_point, element.zero_point - element.storage.minimum)
    return (((most << shift) * multiplier.mantissa) >> (31 - multiplier.shift)) + 1


def _sub_above_one(
    op: Add | Sub, b: RuleBuilder, total: Value, multiplier: Multiplier, reach: int, output: UniformQuantizedType
) -> Value:
    """SUB's sum, within [-reach, reach], by a multiplier of 1 and more. The result is within 2^30."""
    b.note_undefined(f"the kernel divides by 2^-{multiplier.shift}")
    high = b.mul(total, b.constant(np.asarray(multiplier.mantissa)), shift=31)
    reach = ((reach * multiplier.mantissa) >> 31) + 1
    try:
        result = divided_undefined(op, b, high, -multiplier.shift, reach)
    except NotApplicable as unknown:
        raise NotApplicable(str(unknown), unsettled=f"the kernel divides by 2^-{multiplier.shift}") from None
    if output.zero_point:
        result = b.add(result, b.constant(np.asarray(output.zero_point)))
    return b.cast(b.clamp(result, output.storage.minimum, output.storage.maximum), output.storage)


def _shifted(
    b: RuleBuilder, operand: Value, element: UniformQuantizedType, shift: int, multiplier: Multiplier
) -> Value:
    """An operand without zero point, shifted left, times its multiplier."""
    half = multiplier == _HALF
    shifted = b.mul(centred(b, operand, element), b.constant(np.asarray(1 << (shift - half))))
    return shifted if half else b.rescale(shifted, multiplier)


@rule(SquaredDifference)
def squared_difference(op: SquaredDifference, b: RuleBuilder) -> Answer:
    """int8: the difference as SUB's, shifted by 7, squared and scaled to the result."""
    elements = per_layer(op)
    if any(e.storage is not i8 for e in elements):
        raise NotApplicable(f"SQUARED_DIFFERENCE has no form for {', '.join(str(e.storage) for e in elements)}")
    first, second, output = elements
    try:
        parameters = squared_parameters(first.scale, second.scale, output.scale)
    except ValueError as error:
        raise NotApplicable(f"the kernel refuses these parameters: {error}") from error
    x = _shifted(b, op.lhs, first, parameters.left_shift, parameters.first)
    difference = b.sub(x, _shifted(b, op.rhs, second, parameters.left_shift, parameters.second))
    return scaled(b, b.mul(difference, difference), parameters.sum, i8, 1 << 30, output_zp=output.zero_point)


def _add_shifted(op: Add | Sub, b: RuleBuilder, shifts: tuple[int, int], output: UniformQuantizedType) -> Answer:
    """int16 of power-of-two scales: one operand is shifted right to the scale of the other. From 32 bits on what the
    kernel's loop makes of that depends on whether it is vectorized (measured)."""
    x, y = op.lhs, op.rhs
    if max(shifts) >= 32:
        words = f"the kernel shifts an operand right by {max(shifts)} bits"
        raise NotApplicable(words, unsettled=words)
    if isinstance(op, Add) and x.type.is_static and y.type.is_static and x.type.shape != y.type.shape:
        raise NotApplicable("ADD on int16 with power-of-two scales does not broadcast")
    ready = [_shifted_right(b, b.cast(b.value(v), i32), shift) for v, shift in zip((x, y), shifts, strict=True)]
    total = b.sub(*ready) if isinstance(op, Sub) else b.add(*ready)
    return _answer(op, b.cast(_clamped(op, b, total, output), i16))


def _shifted_right(b: RuleBuilder, x: Value, shift: int) -> Value:
    """RoundingDivideByPOT of int16, of up to 31 bits. From 16 on its mask of the remainder is -1 in int16: what is left
    of the sign is rounded up from 0 on."""
    if shift < 16:
        return rounding_shift(b, x, shift)
    zero, one, minus = (b.constant(np.asarray(n)) for n in (0, 1, -1))
    return b.select(b.greater_equal(x, zero), one, minus)


@rule(Mul)
def mul(op: Mul, b: RuleBuilder) -> Answer:
    """MUL of 8-bit and int16 tensors."""
    if integers := _integers(op, b):
        return integers
    elements = per_layer(op)
    first, second, output = elements
    source, storage = first.storage, output.storage
    if source not in (i8, ui8, i16) or second.storage != source:
        raise NotApplicable(f"MUL has no form for {source} and {second.storage}")
    try:
        if source == storage:
            if source is i16:
                symmetric(op, *elements)
            return _answer(op, _clamped(op, b, _mul_scaled(op, b, first, second, output), output))
        if source is i16 and storage in (i8, ui8):
            return _mul_fractions(op, b, output)
    except ValueError as error:
        raise NotApplicable(f"the kernel refuses these parameters: {error}") from error
    raise NotApplicable(f"MUL has no form for {source} and {source} → {storage}")


def _mul_scaled(
    op: Mul, b: RuleBuilder, first: UniformQuantizedType, second: UniformQuantizedType, output: UniformQuantizedType
) -> Value:
    multiplier = multiplication(first.scale, second.scale, output.scale)
    product = b.mul(centred(b, op.lhs, first), centred(b, op.rhs, second))
    bound = (1 << first.storage.bits) ** 2 if first.storage is not i16 else 1 << 30
    return scaled(b, product, multiplier, output.storage, bound, output_zp=output.zero_point)


def _mul_fractions(op: Mul, b: RuleBuilder, output: UniformQuantizedType) -> Answer:
    """int16 to 8 bits: the product of two fractions of 2^15, rounded to 15 bits and then to 7, plus the zero point."""
    x, y = op.lhs, op.rhs
    if x.type.is_static and y.type.is_static and x.type.shape != y.type.shape:
        raise NotApplicable(f"MUL of int16 to {output.storage} does not broadcast")
    storage, zero_point = output.storage, output.zero_point
    low, high = activation_range(
        op.fused_activation_function, storage.minimum, storage.maximum, output.scale, zero_point
    )
    product = b.mul(b.cast(b.value(x), i32), b.cast(b.value(y), i32), shift=15)
    product = b.minimum(product, b.constant(np.asarray(i16.maximum)))
    product = b.clamp(rounding_shift(b, product, 8), low - zero_point, high - zero_point)
    if zero_point:
        product = b.add(product, b.constant(np.asarray(zero_point)))
    return _answer(
        op, b.cast(product, storage), "the kernel ignores the operands' scales and zero points and the result's scale"
    )


@rule(Maximum, Minimum)
def maximum_minimum(op: Maximum | Minimum, b: RuleBuilder) -> Answer:
    """The stored integers', whatever their parameters."""
    if any(v.type.storage != op.result.type.storage for v in op.tensors):
        raise NotApplicable(f"{kernel_name(op)} has no kernel for different storage types")
    operands = b.value(op.lhs), b.value(op.rhs)
    result = b.maximum(*operands) if isinstance(op, Maximum) else b.minimum(*operands)
    return Rewritten([result], warning=COPIED if parameters_differ(op) else "")
