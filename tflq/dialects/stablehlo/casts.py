"""Casts between real numbers and quantized ones, and between plain types."""

from __future__ import annotations

from tflq.dialects.declare import Operator, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.dialects.stablehlo.rules import elementwise
from tflq.ir.core import Op, Value
from tflq.ir.op_checks import constraint
from tflq.ir.types import ScalarType, is_quantized

__all__ = ["Convert", "UniformDequantize", "UniformQuantize"]


def _expressed(op: Op, index: int = 0) -> object:
    value = op.operand(index)
    element = value.type.element
    return element.expressed if is_quantized(element) else element


@constraint
def _made_quantized(op: Op) -> bool:
    """(C2) the operand must be floating-point or quantized, the result quantized, and both must express one type"""
    element = op.operand(0).type.element
    made = op.result.type.element
    given = is_quantized(element) or (isinstance(element, ScalarType) and element.is_float)
    return given and is_quantized(made) and made.expressed == _expressed(op)


@constraint
def _made_real(op: Op) -> bool:
    """(C2) the operand must be quantized, and the result of the type that it expresses"""
    return is_quantized(op.operand(0).type.element) and op.result.type.element == _expressed(op)


@constraint
def _plain(op: Op) -> bool:
    """neither operand nor result may be quantized: that is uniform_quantize and uniform_dequantize"""
    return isinstance(op.operand(0).type.element, ScalarType) and isinstance(op.result.type.element, ScalarType)


class UniformQuantize(Operator, name="stablehlo.uniform_quantize"):
    """result = clamp(round_nearest_even(operand / scale + zero_point), storage_min, storage_max); what is quantized is
    dequantized first."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (declared, elementwise, _made_quantized)


class UniformDequantize(Operator, name="stablehlo.uniform_dequantize"):
    """result = (operand - zero_point) * scale"""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (declared, elementwise, _made_real)


class Convert(Operator, name="stablehlo.convert"):
    """The value in another plain type."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (declared, elementwise, _plain)
