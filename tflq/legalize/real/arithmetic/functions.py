"""Operators that no kernel computes on quantized tensors, within one count of the real result, without floats.

    POW, ATAN2, uint8 SQUARED_DIFFERENCE    a table of all pairs of 8-bit values: the real result, rounded
    CUMSUM                                  sum of x - zero point, times input / output in double, rounded
    ADD_N                                   the same where all scales are one; else each operand times its scale over
                                            the result's, with as many bits behind the point as the sum leaves

On int32 and int64 the kernels of CUMSUM and ADD_N add the stored integers. Source: kernels/cumsum.cc, add_n.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tflq.dialects.ext.tables import Table2D
from tflq.dialects.inference import broadcast
from tflq.dialects.tfl.arithmetic import AddN, Atan2, Pow, SquaredDifference
from tflq.dialects.tfl.reduction import Cumsum
from tflq.ir.core import Value
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, i64, ui8
from tflq.legalize.real.arithmetic.arithmetic import NOTE
from tflq.legalize.reference.generic.rescaled import saturated
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import centred, kernel_name, per_layer, rounding_shift
from tflq.numerics.fixed_point import quantize_multiplier, quotient
from tflq.numerics.real_tables import REAL_FUNCTIONS_OF_TWO, Stored, real_table_of_two

__all__: list[str] = []

_RAW = "the kernel adds the stored integers and ignores their scales"
_FRACTION = 20


@rule(Pow, SquaredDifference, Atan2, order=2)
def function_of_two(op: SquaredDifference | Atan2 | Pow, b: RuleBuilder) -> Answer:
    """The real function of every pair of 8-bit values."""
    elements = per_layer(op)
    if any(e.storage not in (i8, ui8) for e in elements):
        raise NotApplicable(f"{kernel_name(op)} has a table only for 8 bits")
    stored = [Stored(e.storage.dtype, e.scale, e.zero_point) for e in elements]
    table = real_table_of_two(REAL_FUNCTIONS_OF_TWO[kernel_name(op)], *stored)
    first, second = (op.y, op.x) if isinstance(op, Atan2) else (op.lhs, op.rhs)
    x, y = b.value(first), b.value(second)
    storage = elements[-1].storage
    type = TensorType(broadcast(x.type.shape, y.type.shape), storage)
    looked_up = b.emit(Table2D, [x, y, b.constant(table.reshape(-1), storage)], type)
    return Rewritten([looked_up], note=NOTE)


@rule(Cumsum, order=2)
def cumsum(op: Cumsum, b: RuleBuilder) -> Answer:
    """CUMSUM on int32, scaled to the result; or of stored integers."""
    x, axis = op.input, op.axis
    if x.type.storage in (i32, i64):
        sums = b.op(op.name, [b.value(x), b.value(axis)], [op.result.type.stripped()], op.attributes)
        return Rewritten(sums.results, warning=_RAW)
    source, output = per_layer(op, [x, op.result])
    if x.type.storage not in (i8, ui8, i16) or not x.type.shape or None in x.type.shape or not axis.is_constant:
        raise NotApplicable("the operand's shape or axis is not known, or it is stored in more than 16 bits")
    length = x.type.shape[int(axis.array.reshape(())) % len(x.type.shape)] or 0
    wide = centred(b, x, source)
    total = b.op(op.name, [wide, b.value(axis)], [wide.type], op.attributes).result
    return _scaled_sum(b, total, _bounds([source] * length), source, output)


@rule(AddN, order=2)
def add_n(op: AddN, b: RuleBuilder) -> Answer:
    """The sum of all operands."""
    operands = [v for v in op.operands if v is not None]
    if operands[0].type.storage in (i32, i64):
        return Rewritten([_sum(b, [b.value(v) for v in operands])], warning=_RAW)
    elements = per_layer(op)
    if any(e.storage not in (i8, ui8, i16) for e in elements):
        raise NotApplicable("an operand is stored in more than 16 bits")
    *sources, output = elements
    plain = [centred(b, v, e) for v, e in zip(operands, sources, strict=True)]
    if len({e.scale for e in sources}) == 1:
        return _scaled_sum(b, _sum(b, plain), _bounds(sources), sources[0], output)
    reach = sum((1 << e.storage.bits) * quotient(e.scale, output.scale) for e in sources)
    if not math.isfinite(reach):
        raise NotApplicable("the operands' scales are too far above the result's")
    bits = min(_FRACTION, 29 - math.frexp(reach)[1])
    if bits < len(sources).bit_length() + 2:
        raise NotApplicable("the operands' scales are too far above the result's")
    try:
        multipliers = [quantize_multiplier(e.scale / output.scale * 2.0**bits) for e in sources]
    except ValueError as error:
        raise NotApplicable(str(error)) from error
    parts = [b.rescale(x, multiplier) for x, multiplier in zip(plain, multipliers, strict=True)]
    result = rounding_shift(b, _sum(b, parts), bits)
    if output.zero_point:
        result = b.add(result, b.constant(np.asarray(output.zero_point)))
    storage = output.storage
    return Rewritten([b.cast(b.clamp(result, storage.minimum, storage.maximum), storage)], note=NOTE)


def _sum(b: RuleBuilder, values: Sequence[Value]) -> Value:
    total = values[0]
    for value in values[1:]:
        total = b.add(total, value)
    return total


def _bounds(elements: Sequence[UniformQuantizedType]) -> tuple[int, int]:
    """Bounds of a sum of stored values less their zero points."""
    low = sum(e.storage.minimum - e.zero_point for e in elements)
    return min(low, 0), max(sum(e.storage.maximum - e.zero_point for e in elements), 0)


def _scaled_sum(
    b: RuleBuilder, total: Value, bounds: tuple[int, int], source: UniformQuantizedType, output: UniformQuantizedType
) -> Answer:
    """A sum times source / output, in the result's type."""
    if max(-bounds[0], bounds[1]) >= 1 << 31:
        raise NotApplicable("the sum can leave 32 bits")
    result = saturated(b, total, np.asarray([quotient(source.scale, output.scale)]), output, "NONE", bounds)
    return Rewritten([result], note=NOTE)
