"""Tabulable arithmetic."""

from __future__ import annotations

from tflq.dialects.declare import FLOAT, INT, INTEGER, OneOf, Operator, attribute, operand, result
from tflq.dialects.traits.elements import Tabulable
from tflq.dialects.traits.operands import ConstantOperands
from tflq.dialects.traits.types import Broadcasts, Elementwise, SameShape
from tflq.ir.core import Value
from tflq.ir.types import i8, i16, i32, i64

__all__ = ["Abs", "Add", "IntDiv", "Maximum", "Minimum", "Mul", "Negate", "Pow", "Sub"]


class Abs(Operator, name="tosa.abs"):
    """The absolute value."""

    __slots__ = ()
    T = OneOf(i32, FLOAT)
    input1: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input1, output),)


class Add(Operator, name="tosa.add"):
    """input1 + input2."""

    __slots__ = ()
    T = OneOf(i32, i64, FLOAT)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class IntDiv(Operator, name="tosa.intdiv"):
    """input1 / input2, truncated."""

    __slots__ = ()
    input1: Value = operand(i32)
    input2: Value = operand(i32)
    output: Value = result(i32)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class Maximum(Operator, name="tosa.maximum"):
    """The greater of two."""

    __slots__ = ()
    T = OneOf(INTEGER, FLOAT)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class Minimum(Operator, name="tosa.minimum"):
    """The lesser of two."""

    __slots__ = ()
    T = OneOf(INTEGER, FLOAT)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class Mul(Operator, name="tosa.mul"):
    """input1 * input2. With a shift, on i32: (input1 * input2 + 2^(shift - 1)) >> shift, the product in 64 bits, the
    result in 32."""

    __slots__ = ()
    T = OneOf(i32, i64, FLOAT)
    S = OneOf(i8, i16)
    input1: Value = operand(T, S)
    input2: Value = operand(T, S)
    output: Value = result(T, i32)
    shift: int = attribute(INT)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output), ConstantOperands(shift=i8))


class Negate(Operator, name="tosa.negate"):
    """output_zp - (input1 - input1_zp)."""

    __slots__ = ()
    T = OneOf(i8, i16, i32, FLOAT)
    input1: Value = operand(T)
    output: Value = result(T)
    input1_zp: int = attribute(INT)
    output_zp: int = attribute(INT)
    traits = (ConstantOperands(input1_zp=input1, output_zp=output), SameShape(input1, output))


class Pow(Operator, name="tosa.pow"):
    """input1 to the power of input2."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits = (Broadcasts(input1, input2, output),)


class Sub(Operator, name="tosa.sub"):
    """input1 - input2."""

    __slots__ = ()
    T = OneOf(i32, i64, FLOAT)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))
