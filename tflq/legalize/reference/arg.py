"""ARG_MAX and ARG_MIN: the first index of the greatest or least stored integer along an axis.

Scales are positive, so with one along the axis stored integers are in the order of the values; the kernels know no
others. ARG_MIN is ARGMAX of the complement. The kernels do not take int16; its elements are compared all the same.
Source: kernels/arg_min_max.cc, kernels/internal/optimized/optimized_ops.h (ArgMinMax).
"""

from __future__ import annotations

from tflq.dialects.tfl.reduction import ArgMax, ArgMin
from tflq.dialects.tosa.bits import BitwiseNot
from tflq.dialects.tosa.reduction import ArgMax as TosaArgMax
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder

__all__: list[str] = []

_RAW = "the operand has several scales along the axis: the kernel compares the integers as they are"


def arg(op: ArgMax | ArgMin, b: RuleBuilder) -> Answer:
    """result = the first index of the greatest (least) stored integer."""
    x, axis, result = op.input, op.axis, op.result
    if x.type.storage not in (i8, ui8, i16):
        return NotApplicable(f"no kernel compares {x.type.storage}")
    if x.type.shape is None or not axis.is_constant:
        return NotApplicable(f"the rank of '{x.name}' or the axis is not known")
    index = int(axis.array.reshape(())) % len(x.type.shape)
    ordered = isinstance(x.type.element, UniformQuantizedType) or getattr(x.type.element, "axis", index) != index
    plain = b.value(x)
    if isinstance(op, ArgMin):
        plain = b.emit(BitwiseNot, [plain], plain.type)
    shape = tuple(d for a, d in enumerate(x.type.shape) if a != index)
    found = b.cast(b.emit(TosaArgMax, [plain], TensorType(shape, i32), axis=index), result.type.storage)
    return Rewritten([found], warning="" if ordered else _RAW)
