"""Arithmetic of two tensors, as the reference kernels compute it.

    ADD, SUB               ((x1 - z1) << L) * m1 ± ((x2 - z2) << L) * m2, times m, plus z: a RESCALE of the operand of
                           the smaller scale (the other is halved), one addition, a RESCALE of the sum
    SQUARED_DIFFERENCE     the square of SUB's difference, times m, plus z
    MUL                    (x1 - z1) * (x2 - z2), times m, plus z: one RESCALE
    DIV                    a table of all pairs of 8-bit values; int16 by reciprocals
    MAXIMUM, MINIMUM, FLOOR_DIV, FLOOR_MOD    of the stored integers

Each multiplication rounds as MultiplyByQuantizedMultiplier, and the result is clamped to the fused activation's range.
Where SUB's m is above 1, its kernel divides by a negative power of two (`_divided_undefined`). Optimized ADD of int16
scales the operands of most elements with one rounding (`KernelSet.vector_part`). int16 has two more forms: ADD and SUB
of power-of-two scales shift one operand; MUL of int16 to 8 bits ignores all scales.
Sources: kernels/add.cc, sub.cc, mul.cc, squared_difference.cc, maximum_minimum.cc, div.cc, floor_div.cc, floor_mod.cc;
kernels/internal/reference/add.h, sub.h, integer_ops/add.h, integer_ops/mul.h; DIV's arithmetic in
`tflq.numerics.elementwise`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from tflq.dialects.quant import Table2D
from tflq.dialects.tfl.arithmetic import Add, Div, FloorDiv, FloorMod, Maximum, Minimum, Mul, SquaredDifference, Sub
from tflq.dialects.tosa.elementwise import BitwiseXor
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, Shape, UniformQuantizedType, i8, i16, i32, i64, ui8
from tflq.legalize.movement import COPIED, emit_unchanged, parameters_differ
from tflq.legalize.probing import centred, kernel_name, per_layer, rounding_shift, scaled, stored, symmetric
from tflq.legalize.rescaled import multiplied
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, kernel_parameters, rule
from tflq.numerics.activation import BOUNDS, integer_activation_range
from tflq.numerics.elementwise import (
    division_table,
    floor_quotients,
    floor_remainders,
    reciprocals,
    shifts_undefined,
)
from tflq.numerics.fixed_point import LANES, Multiplier
from tflq.numerics.reference import WeightedSum
from tflq.numerics.requantize.scaling import Factor

_HALF = Multiplier(1 << 30, 0)

_Activated: TypeAlias = Add | Sub | Mul


def _answer(op: _Activated, result: Value, ignored: str = "") -> Rewritten:
    """The result, with a warning where the kernel ignores something that the model says."""
    activation = op.fused_activation_function
    if activation != "NONE" and activation not in BOUNDS:
        ignored = f"the kernel ignores the fused activation {activation}"
    return Rewritten([result], warning=ignored)


def _range(b: RuleBuilder, op: _Activated | Div, output: UniformQuantizedType) -> tuple[int, int]:
    """The fused activation's range, which is at most the storage type's. ValueError as `activation_range`."""
    return b.kernel_set.activation(op.fused_activation_function, output)


def looked_up_pairs(op: Op, b: RuleBuilder, table: np.ndarray, storage: ScalarType) -> Value:
    """The entry of a table [256, 256] for the stored values of an op's first two operands."""
    operands = (b.value(op.operand(place)) for place in range(2))
    return b.emit(Table2D, [*operands, b.constant(table.reshape(-1), storage)], storage)


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
    with kernel_parameters:
        if storage is i16 and op.pot_scale_int16:
            shifts = b.kernel_set.shifted_addition(first, second, output)
            if shifts is not None:
                return _add_shifted(op, b, shifts, output)
        total = _add_scaled(op, b, elements)
        return _answer(op, b.clamp(total, *_range(b, op, output)))


def _add_scaled(op: Add | Sub, b: RuleBuilder, elements: Sequence[UniformQuantizedType]) -> Value:
    """The general form. Shifted operands, one of them exactly halved, stay within 2^30, so their sum within int32."""
    first, second, output = elements
    parameters = b.kernel_set.addition(first, second, output, subtract=isinstance(op, Sub))
    if isinstance(parameters, WeightedSum):
        return _weighted(op, b, parameters, elements)
    vector, shift = _vector_part(op, b), parameters.left_shift
    x = _by_place(b, centred(b, op.lhs, first), shift, parameters.first, vector)
    y = _by_place(b, centred(b, op.rhs, second), shift, parameters.second, vector)
    total = b.sub(x, y) if isinstance(op, Sub) else b.add(x, y)
    if parameters.sum.shift > 0:
        reach = _reach(first, output, parameters.first) + _reach(second, output, parameters.second)
        return _sub_above_one(op, b, total, parameters.sum, reach, output)
    return scaled(b, total, parameters.sum, output.storage, 1 << 30, output_zp=output.zero_point)


def _weighted(op: Add | Sub, b: RuleBuilder, weights: WeightedSum, elements: Sequence[UniformQuantizedType]) -> Value:
    """Both operands by integers, added within 2^30, and shifted, half up."""
    x, y = (
        b.mul(centred(b, operand, element), weight)
        for operand, element, weight in zip((op.lhs, op.rhs), elements[:2], weights[:2], strict=True)
    )
    return stored(b, b.arithmetic_right_shift(b.add(x, y), weights.shift, round=True), elements[2])


def _reach(element: UniformQuantizedType, output: UniformQuantizedType, multiplier: Multiplier) -> int:
    """The greatest magnitude of a shifted operand."""
    shift = 15 if output.storage is i16 else 20
    most = max(map(abs, element.ends))
    return (((most << shift) * multiplier.mantissa) >> (31 - multiplier.shift)) + 1


def _sub_above_one(
    op: Add | Sub, b: RuleBuilder, total: Value, multiplier: Multiplier, reach: int, output: UniformQuantizedType
) -> Value:
    """SUB's sum, within [-reach, reach], by a multiplier of 1 and more. The result is within 2^30."""
    b.note_undefined(f"the kernel divides by 2^-{multiplier.shift}")
    high = b.mul(total, multiplier.mantissa, shift=31)
    reach = ((reach * multiplier.mantissa) >> 31) + 1
    try:
        return stored(b, _divided_undefined(op, b, high, -multiplier.shift, reach), output)
    except NotApplicable as unknown:
        raise NotApplicable(str(unknown), unsettled=f"the kernel divides by 2^-{multiplier.shift}") from None


def _vector_part(op: Add | Sub, b: RuleBuilder) -> int:
    """The number of elements whose operands are rounded once: none where a kernel broadcasts."""
    kind = op.result.type
    if isinstance(op, Sub) or kind.storage is not i16 or not kind.is_static:
        return 0
    return b.kernel_set.vector_part(math.prod(kind.sizes)) if op.lhs.type.shape == op.rhs.type.shape else 0


def _by_place(b: RuleBuilder, x: Value, shift: int, multiplier: Multiplier, vector: int) -> Value:
    """`_shifted_left`, and of the first elements `_rounded_once`."""
    if not vector or multiplier == _HALF:
        return _shifted_left(b, x, shift, multiplier)
    count = math.prod(x.type.sizes)
    if vector == count:
        return _rounded_once(b, x, shift, multiplier)
    flat = b.reshape(x, (count,))
    first = _rounded_once(b, b.slice(flat, (0,), (vector,)), shift, multiplier)
    last = _shifted_left(b, b.slice(flat, (vector,), (count - vector,)), shift, multiplier)
    return b.reshape(b.concat([first, last], 0), x.type.sizes)


def _rounded_once(b: RuleBuilder, x: Value, shift: int, multiplier: Multiplier) -> Value:
    """An operand without zero point, shifted as its multiplier is, too, rounded down, times its mantissa, half up."""
    left = shift + multiplier.shift
    if left < 0:
        x, left = b.arithmetic_right_shift(x, -left), 0
    return b.rescale(x, Multiplier(multiplier.mantissa, left), rounding_mode="SINGLE_ROUND")


def _shifted_left(b: RuleBuilder, x: Value, shift: int, multiplier: Multiplier) -> Value:
    """An operand without zero point, shifted left, times its multiplier."""
    half = multiplier == _HALF
    shifted = b.mul(x, 1 << (shift - half))
    return shifted if half else b.rescale(shifted, multiplier)


@rule(SquaredDifference)
def squared_difference(op: SquaredDifference, b: RuleBuilder) -> Answer:
    """int8: the difference as SUB's, shifted by 7, squared and scaled to the result."""
    elements = per_layer(op)
    if any(e.storage is not i8 for e in elements):
        raise NotApplicable(f"SQUARED_DIFFERENCE has no form for {', '.join(str(e.storage) for e in elements)}")
    first, second, output = elements
    with kernel_parameters:
        parameters = b.kernel_set.squared_difference(first, second, output)
    x = _shifted_left(b, centred(b, op.lhs, first), parameters.left_shift, parameters.first)
    y = _shifted_left(b, centred(b, op.rhs, second), parameters.left_shift, parameters.second)
    difference = b.sub(x, y)
    return scaled(b, b.mul(difference, difference), parameters.sum, i8, 1 << 30, output_zp=output.zero_point)


def _add_shifted(op: Add | Sub, b: RuleBuilder, shifts: tuple[int, int], output: UniformQuantizedType) -> Answer:
    """int16 of power-of-two scales: one operand is shifted right to the scale of the other. For shifts of 32 bits and
    more the result depends on whether the kernel's loop is vectorized (measured)."""
    x, y = op.lhs, op.rhs
    if max(shifts) >= 32:
        words = f"the kernel shifts an operand right by {max(shifts)} bits"
        raise NotApplicable(words, unsettled=words)
    if isinstance(op, Add) and x.type.is_static and y.type.is_static and x.type.shape != y.type.shape:
        raise NotApplicable("ADD on int16 with power-of-two scales does not broadcast")
    ready = [_shifted_right(b, b.cast(b.value(v), i32), shift) for v, shift in zip((x, y), shifts, strict=True)]
    total = b.sub(*ready) if isinstance(op, Sub) else b.add(*ready)
    return _answer(op, b.cast(b.clamp(total, *_range(b, op, output)), i16))


def _shifted_right(b: RuleBuilder, x: Value, shift: int) -> Value:
    """RoundingDivideByPOT of int16, by up to 31 bits. From 16 bits on its mask of the remainder is -1 in int16, so that
    the result is 1 for x >= 0, else -1."""
    return rounding_shift(b, x, shift) if shift < 16 else _sign(b, x)


def _sign(b: RuleBuilder, x: Value) -> Value:
    """1 for x >= 0, else -1."""
    return b.select(b.greater_equal(x, 0), 1, -1)


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
    with kernel_parameters:
        if source == storage:
            if source is i16:
                symmetric(op, *elements)
            return _answer(op, b.clamp(_mul_scaled(op, b, first, second, output), *_range(b, op, output)))
        if source is i16 and storage in (i8, ui8):
            return _mul_fractions(op, b, output)
    raise NotApplicable(f"MUL has no form for {source} and {source} → {storage}")


def _mul_scaled(
    op: Mul, b: RuleBuilder, first: UniformQuantizedType, second: UniformQuantizedType, output: UniformQuantizedType
) -> Value:
    multiplier = b.kernel_set.multiplication(first, second, output)
    product = b.mul(centred(b, op.lhs, first), centred(b, op.rhs, second))
    bound = (1 << first.storage.bits) ** 2 if first.storage is not i16 else 1 << 30
    if isinstance(multiplier, Factor):
        return multiplied(b, product, multiplier, output, (-bound, bound))
    return scaled(b, product, multiplier, output.storage, bound, output_zp=output.zero_point)


def _mul_fractions(op: Mul, b: RuleBuilder, output: UniformQuantizedType) -> Answer:
    """int16 to 8 bits: the product of two fractions of 2^15, rounded to 15 bits and then to 7, plus the zero point."""
    x, y = op.lhs, op.rhs
    if x.type.is_static and y.type.is_static and x.type.shape != y.type.shape:
        raise NotApplicable(f"MUL of int16 to {output.storage} does not broadcast")
    zero_point, (low, high) = output.zero_point, _range(b, op, output)
    product = b.mul(b.cast(b.value(x), i32), b.cast(b.value(y), i32), shift=15)
    product = b.minimum(product, i16.maximum)
    product = b.clamp(rounding_shift(b, product, 8), low - zero_point, high - zero_point)
    if zero_point:
        product = b.add(product, zero_point)
    ignored = "the kernel ignores the operands' scales and zero points and the result's scale"
    return _answer(op, b.cast(product, output.storage), ignored)


@rule(Maximum, Minimum)
def maximum_minimum(op: Maximum | Minimum, b: RuleBuilder) -> Answer:
    """The larger or smaller stored integer, whatever the parameters."""
    if any(v.type.storage != op.result.type.storage for v in op.tensors):
        raise NotApplicable(f"{kernel_name(op)} has no kernel for different storage types")
    operands = b.value(op.lhs), b.value(op.rhs)
    result = b.maximum(*operands) if isinstance(op, Maximum) else b.minimum(*operands)
    return Rewritten([result], warning=COPIED if parameters_differ(op) else "")


@rule(Div)
def div(op: Div, b: RuleBuilder) -> Answer:
    """The quotient of every pair of 8-bit values, as the kernel computes it."""
    elements = per_layer(op)
    first, second, output = elements
    storage = output.storage
    if storage not in (i8, ui8, i16) or first.storage != storage or second.storage != storage:
        raise NotApplicable(f"DIV has no form for {first.storage}, {second.storage} → {storage}")
    with kernel_parameters:
        bounds = _range(b, op, output)
    scales = (first.scale, second.scale, output.scale)
    multiplier = b.kernel_set.division(first, second, output)
    if shifts_undefined(multiplier, storage.bits):
        b.note_undefined("the kernel divides by a power of two that is not 2^0 to 2^31")
    if storage is i16:
        return _div_16bit(op, b, multiplier, elements, bounds)
    zero_points = (first.zero_point, second.zero_point, output.zero_point)
    return looked_up_pairs(op, b, division_table(storage.dtype, scales, zero_points, bounds), storage)


def _div_16bit(
    op: Div,
    b: RuleBuilder,
    multiplier: Multiplier,
    elements: Sequence[UniformQuantizedType],
    bounds: tuple[int, int],
) -> Answer:
    """The dividend, shifted left to 31 bits, times the reciprocal of the divisor from a table, times the multiplier."""
    first, second, output = elements
    y = b.value(op.rhs)
    divisors = np.arange(-32768, 32768) - second.zero_point
    reciprocal, exponent = reciprocals(divisors)
    x = centred(b, op.lhs, first)
    x = b.mul(x, b.table(y, np.where(divisors < 0, -1, 1).astype(np.int32)))
    sign = b.arithmetic_right_shift(x, 31)
    headroom = b.sub(b.clz(b.emit(BitwiseXor, [x, sign], x.type)), 1)
    quotient = b.mul(b.logical_left_shift(x, headroom), b.table(y, reciprocal), shift=31)
    scaled = b.mul(quotient, multiplier.mantissa, shift=31)
    shift = b.add(headroom, b.table(y, (exponent - multiplier.shift).astype(np.int32)))
    if not -16 <= multiplier.shift <= 14:  # else it is from 0 to 63
        shift = b.bitwise_and(shift, 63)
    beyond = b.greater(shift, 31)
    shift = b.select(beyond, b.sub(shift, 32), shift)
    wrong = b.add(b.arithmetic_right_shift(scaled, shift), b.select(b.greater_equal(scaled, 0), 1, 0))
    return stored(b, b.select(beyond, wrong, rounding_shift(b, scaled, shift)), output, *bounds)


@rule(FloorDiv, FloorMod)
def floor_division(op: FloorDiv | FloorMod, b: RuleBuilder) -> Answer:
    """The kernels divide stored integers, and stop at a zero. Where parameters must hold, and for uint8, which has no
    kernel, it is a table of all pairs of 8 bits: a quotient by zero is an end of the range, its remainder 0."""
    storage = op.result.type.storage
    if storage is ui8 or (b.real and storage is i8):
        return _floor_division_table(op, b)
    if storage not in (i8, i16, i32, i64) or any(v.type.storage != storage for v in op.tensors):
        raise NotApplicable(
            f"{kernel_name(op)} has no kernel for {' and '.join(str(v.type.storage) for v in op.tensors)}"
        )
    if isinstance(op, FloorDiv) and storage is i64:
        raise NotApplicable("FLOOR_DIV has no kernel for i64")
    operands = [b.value(op.lhs), b.value(op.rhs)]
    return Rewritten(emit_unchanged(op, b, operands), warning="the kernel ignores scales and zero points")


def _floor_division_table(op: FloorDiv | FloorMod, b: RuleBuilder) -> Answer:
    """The quotient or remainder of real values, as the float kernels compute it, quantized."""
    elements = per_layer(op)
    storage = elements[-1].storage
    if any(e.storage != storage for e in elements):
        raise NotApplicable(f"{kernel_name(op)} has no table for different storage types")
    function = floor_quotients if isinstance(op, FloorDiv) else floor_remainders
    table = function(storage.dtype, *((e.scale, e.zero_point) for e in elements))
    return looked_up_pairs(op, b, table, storage)


# RoundingDivideByPOT by a negative exponent, which C++ leaves undefined, as kernels compiled for x86-64 do it.
#
# A loop over tensors of one shape runs in vector registers, four elements at once. It shifts out all bits except the
# sign, and rounds by the mask that it computes in the registers (8 bits: all ones) or before (int16). The remaining
# elements at its end, and loops that broadcast or write over an operand, go one by one
# (`tflq.numerics.fixed_point`). Measured on SUB; the loops of other kernels are compiled differently.


def _divided_undefined(op: Add | Sub, b: RuleBuilder, x: Value, exponent: int, reach: int) -> Value:
    """x, i32 within [-reach, reach] and of the shape of the op's result, divided by 2^exponent, exponent < 0."""
    in_lanes = _in_lanes(b, x, exponent if op.result.type.storage is i16 else -1)
    if exponent & 32 and reach >> (exponent & 31) == 0:
        return in_lanes
    count = _elements_in_lanes(op, b)
    total = math.prod(x.type.sizes)
    one_by_one = _one_by_one(b, x, exponent)
    if count == 0:
        return one_by_one
    if count is None or count == total:
        return in_lanes
    pieces = ((in_lanes, 0, count), (one_by_one, count, total - count))
    parts = [b.slice(b.reshape(result, (total,)), (start,), (size,)) for result, start, size in pieces]
    return b.reshape(b.concat(parts, 0), x.type.dims)


def _in_lanes(b: RuleBuilder, x: Value, exponent: int) -> Value:
    """The sign of each element, one more where its bits within the mask are above half of that."""
    if exponent & 32:
        return _sign(b, x)
    mask = (1 << (exponent & 31)) - 1
    sign = b.arithmetic_right_shift(x, 31)
    rest = b.bitwise_and(x, mask)
    above = b.greater(rest, b.sub(mask >> 1, sign))
    return b.add(sign, b.select(above, 1, 0))


def _one_by_one(b: RuleBuilder, x: Value, exponent: int) -> Value:
    """The shift where the loop is not vectorized: by an exponent modulo 64, from 32 on as in
    `fixed_point.divide_by_pot`."""
    exponent &= 63
    if exponent < 32:
        return rounding_shift(b, x, exponent)
    above = b.select(b.greater_equal(x, 0), 1, 0)
    return b.add(b.arithmetic_right_shift(x, exponent & 31), above)


def _elements_in_lanes(op: Add | Sub, b: RuleBuilder) -> int | None:
    """The number of the first elements that are computed in vector registers; None: all, however many there are."""
    shape = op.lhs.type.shape
    if b.memory is not None and b.memory.writes_over(op):
        return 0
    alike = _alike(shape, op.rhs.type.shape)
    if alike is None:
        raise NotApplicable("whether the kernel's loop is vectorized depends on shapes that are not known")
    if not alike:
        return 0
    known = math.prod(d for d in shape or () if d is not None)
    if None not in (shape or ()):
        return known - known % LANES
    if known % LANES == 0:
        return None
    raise NotApplicable("how much of the kernel's loop is vectorized depends on dims that are not known")


def _alike(first: Shape, second: Shape) -> bool | None:
    """Whether two shapes are the same except for leading dims of 1; None if that is not known."""
    if first is None or second is None:
        return None
    rank = max(len(first), len(second))
    pairs = [*zip((1,) * (rank - len(first)) + first, (1,) * (rank - len(second)) + second, strict=True)]
    if any(x is not None and y is not None and x != y for x, y in pairs):
        return False
    return True if all(x == y for x, y in pairs) else None
