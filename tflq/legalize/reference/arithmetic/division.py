"""DIV of 8-bit tensors, a table of all pairs, and of int16; FLOOR_DIV and FLOOR_MOD, which disregard parameters.

Sources: kernels/div.cc, floor_div.cc, floor_mod.cc; arithmetic in `tflq.numerics.division`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.ext.tables import Table2D
from tflq.dialects.inference import broadcast
from tflq.dialects.tfl.arithmetic import Div, FloorDiv, FloorMod
from tflq.dialects.tfl.runtime import version_info
from tflq.dialects.tosa.bits import BitwiseAnd, BitwiseXor
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, i64, ui8
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import centred, kernel_name, per_layer, rounding_shift
from tflq.numerics.activation import activation_range
from tflq.numerics.division import division_multiplier, division_table, reciprocals, shifts_undefined
from tflq.numerics.fixed_point import Multiplier
from tflq.numerics.floor_division import floor_quotients, floor_remainders

__all__: list[str] = []


@rule(Div)
def div(op: Div, b: RuleBuilder) -> Answer:
    """The quotient of every pair of 8-bit values, as the kernel computes it."""
    elements = per_layer(op)
    first, second, output = elements
    storage = output.storage
    if storage not in (i8, ui8, i16) or first.storage != storage or second.storage != storage:
        raise NotApplicable(f"DIV has no form for {first.storage}, {second.storage} → {storage}")
    activation = op.fused_activation_function
    zero_points = (first.zero_point, second.zero_point, output.zero_point)
    try:
        bounds = activation_range(activation, storage.minimum, storage.maximum, output.scale, output.zero_point)
    except ValueError as error:
        raise NotApplicable(f"the kernel refuses these parameters: {error}") from error
    scales = (first.scale, second.scale, output.scale)
    multiplier = division_multiplier(*scales)
    if shifts_undefined(multiplier, storage.bits):
        b.note_undefined("the kernel divides by a power of two that is not 2^0 to 2^31")
    if storage is i16:
        return _div_16bit(op, b, multiplier, elements, bounds)
    table = division_table(storage.dtype, scales, zero_points, bounds)
    x, y = b.value(op.lhs), b.value(op.rhs)
    shape = broadcast(x.type.shape, y.type.shape)
    return b.emit(Table2D, [x, y, b.constant(table.reshape(-1), storage)], TensorType(shape, storage))


def _div_16bit(
    op: Div,
    b: RuleBuilder,
    multiplier: Multiplier,
    elements: Sequence[UniformQuantizedType],
    bounds: tuple[int, int],
) -> Answer:
    """The dividend, shifted left to 31 bits, times the reciprocal of the divisor from a table, times the multiplier."""
    first, second, output = elements
    zero, one, y = b.constant(np.asarray(0)), b.constant(np.asarray(1)), b.value(op.rhs)
    divisors = np.arange(-32768, 32768) - second.zero_point
    reciprocal, exponent = reciprocals(divisors)
    x = centred(b, op.lhs, first)
    x = b.mul(x, b.table(y, np.where(divisors < 0, -1, 1).astype(np.int32)))
    sign = b.arithmetic_right_shift(x, b.constant(np.asarray(31)))
    headroom = b.sub(b.clz(b.emit(BitwiseXor, [x, sign], x.type)), one)
    quotient = b.mul(b.logical_left_shift(x, headroom), b.table(y, reciprocal), shift=31)
    scaled = b.mul(quotient, b.constant(np.asarray(multiplier.mantissa)), shift=31)
    shift = b.add(headroom, b.table(y, (exponent - multiplier.shift).astype(np.int32)))
    if not -16 <= multiplier.shift <= 14:  # else it is from 0 to 63
        shift = b.emit(BitwiseAnd, [shift, b.constant(np.asarray(63))])
    beyond = b.greater(shift, b.constant(np.asarray(31)))
    shift = b.select(beyond, b.sub(shift, b.constant(np.asarray(32))), shift)
    wrong = b.add(b.arithmetic_right_shift(scaled, shift), b.select(b.greater_equal(scaled, zero), one, zero))
    result = b.select(beyond, wrong, rounding_shift(b, scaled, shift))
    if output.zero_point:
        result = b.add(result, b.constant(np.asarray(output.zero_point)))
    return b.cast(b.clamp(result, *bounds), i16)


@rule(FloorDiv, FloorMod)
def floor_division(op: FloorDiv | FloorMod, b: RuleBuilder) -> Answer:
    """The kernels divide stored integers, and stop at a zero. Where parameters must hold, and for uint8, which has no
    kernel, a table of all pairs of 8 bits, which has an end of the range for a quotient by zero, and 0 for its
    remainder."""
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
    made = b.op(op.name, operands, [op.result.type.stripped()], op.attributes, version_info(op))
    return Rewritten(made.results, warning="the kernel ignores scales and zero points")


def _floor_division_table(op: FloorDiv | FloorMod, b: RuleBuilder) -> Answer:
    """The quotient or remainder of real values, as the float kernels compute it, quantized."""
    elements = per_layer(op)
    if any(e.storage != elements[-1].storage for e in elements):
        raise NotApplicable(f"{kernel_name(op)} has no table for different storage types")
    parameters = tuple((e.scale, e.zero_point) for e in elements)
    function = floor_quotients if isinstance(op, FloorDiv) else floor_remainders
    table = function(elements[-1].storage.dtype, *parameters)
    x, y = b.value(op.lhs), b.value(op.rhs)
    shape = broadcast(x.type.shape, y.type.shape)
    storage = elements[-1].storage
    return b.emit(Table2D, [x, y, b.constant(table.reshape(-1), storage)], TensorType(shape, storage))
