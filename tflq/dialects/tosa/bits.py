"""Bits of integers, and logic."""

from __future__ import annotations

from tflq.dialects.declare import BOOL, OneOf, Operator, attribute, operand, result
from tflq.dialects.traits.elements import Tabulable
from tflq.dialects.traits.types import Broadcasts, Elementwise
from tflq.ir.core import Value
from tflq.ir.types import i1, i8, i16, i32, ui8

__all__ = [
    "ArithmeticRightShift",
    "BinaryBits",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "Clz",
    "LogicalAnd",
    "LogicalLeftShift",
    "LogicalNot",
    "LogicalOr",
    "LogicalRightShift",
    "LogicalXor",
]


class ArithmeticRightShift(Operator, name="tosa.arithmetic_right_shift"):
    """input1 shifted right by input2; the sign stays; `round` adds the last bit lost."""

    __slots__ = ()
    T = OneOf(i8, i16, i32)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    round: bool = attribute(BOOL)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class BitwiseAnd(Operator, name="tosa.bitwise_and"):
    """Bits that both have."""

    __slots__ = ()
    T = OneOf(i8, i16, i32)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits = (Broadcasts(input1, input2, output),)


class BitwiseNot(Operator, name="tosa.bitwise_not"):
    """Bits that it does not have."""

    __slots__ = ()
    T = OneOf(i8, ui8, i16, i32)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class BitwiseOr(Operator, name="tosa.bitwise_or"):
    """Bits that one has."""

    __slots__ = ()
    T = OneOf(i8, i16, i32)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits = (Broadcasts(input1, input2, output),)


class BitwiseXor(Operator, name="tosa.bitwise_xor"):
    """Bits that differ."""

    __slots__ = ()
    T = OneOf(i8, i16, i32)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits = (Broadcasts(input1, input2, output),)


class Clz(Operator, name="tosa.clz"):
    """The number of leading zero bits."""

    __slots__ = ()
    input: Value = operand(i32)
    output: Value = result(i32)
    traits = (Tabulable(input), Elementwise(input, output))


class LogicalAnd(Operator, name="tosa.logical_and"):
    """Whether both are true."""

    __slots__ = ()
    input1: Value = operand(i1)
    input2: Value = operand(i1)
    output: Value = result(i1)
    traits = (Broadcasts(input1, input2, output),)


class LogicalLeftShift(Operator, name="tosa.logical_left_shift"):
    """input1 shifted left by input2."""

    __slots__ = ()
    T = OneOf(i8, i16, i32)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class LogicalNot(Operator, name="tosa.logical_not"):
    """Whether it is false."""

    __slots__ = ()
    input: Value = operand(i1)
    output: Value = result(i1)
    traits = (Elementwise(input, output),)


class LogicalOr(Operator, name="tosa.logical_or"):
    """Whether one is true."""

    __slots__ = ()
    input1: Value = operand(i1)
    input2: Value = operand(i1)
    output: Value = result(i1)
    traits = (Broadcasts(input1, input2, output),)


class LogicalRightShift(Operator, name="tosa.logical_right_shift"):
    """input1 shifted right by input2; zeros come in."""

    __slots__ = ()
    T = OneOf(i8, i16, i32)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits = (Broadcasts(input1, input2, output),)


class LogicalXor(Operator, name="tosa.logical_xor"):
    """Whether one of two is true."""

    __slots__ = ()
    input1: Value = operand(i1)
    input2: Value = operand(i1)
    output: Value = result(i1)
    traits = (Broadcasts(input1, input2, output),)


BinaryBits = (
    ArithmeticRightShift
    | BitwiseAnd
    | BitwiseOr
    | BitwiseXor
    | LogicalAnd
    | LogicalLeftShift
    | LogicalOr
    | LogicalRightShift
    | LogicalXor
)
"""Of `input1` and `input2`."""
