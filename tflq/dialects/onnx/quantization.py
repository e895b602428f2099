"""Between real numbers and stored integers. A row of scales is for the indices of an axis."""

from __future__ import annotations

from tflq.dialects.declare import INT, OneOf, Operator, attribute, operand, result
from tflq.dialects.traits.types import SameShape
from tflq.ir.core import Value
from tflq.ir.types import f32, i8, i32, ui8


class DequantizeLinear(Operator, name="onnx.dequantize_linear"):
    """(x - x_zero_point) * x_scale."""

    T = OneOf(i8, ui8, i32)
    x: Value = operand(T)
    x_scale: Value = operand(f32)
    x_zero_point: Value = operand(T)
    y: Value = result(f32)
    axis: int = attribute(INT, default=1)
    traits = (SameShape(x, y),)


class QuantizeLinear(Operator, name="onnx.quantize_linear"):
    """x / y_scale rounded to nearest, half to even, plus y_zero_point, saturated."""

    T = OneOf(i8, ui8)
    x: Value = operand(f32)
    y_scale: Value = operand(f32)
    y_zero_point: Value = operand(T)
    y: Value = result(T)
    axis: int = attribute(INT, default=1)
    traits = (SameShape(x, y),)
