"""The scales at which operands are dequantized: the model's, or the nearest with which ONNX Runtime rounds a result as
TFLite's default kernels do. They are millionths away."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.dialects.tfl.arithmetic import Add, Sub
from tflq.dialects.tfl.pooling import AveragePool2D
from tflq.ir.core import Op, Value
from tflq.ir.types import UniformQuantizedType, i8
from tflq.numerics.quantized_sums import Byte, fitted_scales, mean_scale


def operand_scales(op: Op) -> Sequence[float | None]:
    """The scale of each operand; None for its own."""
    if isinstance(op, (Add, Sub)):
        parameters = [_byte(v) for v in (op.lhs, op.rhs, op.output)]
        if None not in parameters:
            return fitted_scales(*parameters, subtract=isinstance(op, Sub))  # type: ignore[arg-type]
    if isinstance(op, AveragePool2D) and isinstance(element := op.input.type.element, UniformQuantizedType):
        count, signed = op.filter_height * op.filter_width, element.storage == i8
        return [mean_scale(element.scale, element.zero_point, count, signed=signed)]
    return [None for _ in op.operands]


def _byte(value: Value) -> Byte | None:
    """The parameters of a tensor as uint8."""
    element = value.type.element
    if not isinstance(element, UniformQuantizedType):
        return None
    return Byte(element.scale, element.zero_point + (128 if element.storage == i8 else 0))
