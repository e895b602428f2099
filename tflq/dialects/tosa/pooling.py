"""Windows of one channel each."""

from __future__ import annotations

from typing import TypeAlias

from tflq.dialects.declare import FLOAT, INT, OneOf, Operator, attribute, ints, operand, result
from tflq.dialects.traits.elements import WithinRange
from tflq.dialects.traits.operands import ConstantOperands
from tflq.ir.core import Value
from tflq.ir.types import i8, i16, ui8

__all__ = ["AvgPool2D", "MaxPool2D", "Pool"]


class AvgPool2D(Operator, name="tosa.avg_pool2d"):
    """The mean of each window."""

    __slots__ = ()
    T = OneOf(i8, ui8, i16, FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    kernel: tuple[int, ...] = attribute(ints(2))
    stride: tuple[int, ...] = attribute(ints(2))
    pad: tuple[int, ...] = attribute(ints(4))
    input_zp: int = attribute(INT)
    output_zp: int = attribute(INT)
    traits = (ConstantOperands(input_zp=input, output_zp=output),)


class MaxPool2D(Operator, name="tosa.max_pool2d"):
    """The greatest element of each window."""

    __slots__ = ()
    T = OneOf(i8, ui8, i16, FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    kernel: tuple[int, ...] = attribute(ints(2))
    stride: tuple[int, ...] = attribute(ints(2))
    pad: tuple[int, ...] = attribute(ints(4))
    traits = (WithinRange(input),)


Pool: TypeAlias = AvgPool2D | MaxPool2D
