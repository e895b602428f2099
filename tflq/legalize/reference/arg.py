"""ARG_MAX and ARG_MIN: the first index of the greatest or least stored integer along an axis.

Scales are positive, so with one per tensor stored integers are in the order of the values. ARG_MIN is ARGMAX of the
complement. The kernels do not take int16; its elements are compared all the same.
Source: kernels/arg_min_max.cc, kernels/internal/optimized/optimized_ops.h (ArgMinMax).
"""

from __future__ import annotations

from tflq.ir.core import Op
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule

__all__: list[str] = []


@rule("tfl.arg_max", "tfl.arg_min")
def arg(op: Op, b: RuleBuilder) -> Answer:
    """result = the first index of the greatest (least) stored integer."""
    x, axis, result = op.operand(0), op.operand(1), op.result
    if not isinstance(x.type.element, UniformQuantizedType):
        return NotApplicable("not quantized per layer: stored integers are not in the order of the values")
    if x.type.storage not in (i8, ui8, i16):
        return NotApplicable(f"no kernel compares {x.type.storage}")
    if x.type.shape is None or not axis.is_constant:
        return NotApplicable(f"the rank of '{x.name}' or the axis is not known")
    plain = b.value(x)
    if op.name == "tfl.arg_min":
        plain = b.emit("tosa.bitwise_not", [plain], plain.type)
    index = int(axis.array.reshape(())) % len(x.type.shape)
    shape = tuple(d for a, d in enumerate(x.type.shape) if a != index)
    return b.cast(b.emit("tosa.argmax", [plain], TensorType(shape, i32), axis=index), result.type.storage)
