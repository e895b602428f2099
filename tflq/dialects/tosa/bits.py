"""Bits of integers, and logic."""

from __future__ import annotations

from typing import ClassVar

from tflq.dialects.declare import BOOL, OneOf, Operator, Trait, attribute, operand, result
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


class _OfBits(Operator):
    """Of the bits of two integers."""

    __slots__ = ()
    T = OneOf(i8, i16, i32)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits: ClassVar[tuple[Trait, ...]] = (Broadcasts(input1, input2, output),)


class _OfTruth(Operator):
    """Of two truth values."""

    __slots__ = ()
    input1: Value = operand(i1)
    input2: Value = operand(i1)
    output: Value = result(i1)
    traits: ClassVar[tuple[Trait, ...]] = (Broadcasts(input1, input2, output),)


class ArithmeticRightShift(Operator, name="tosa.arithmetic_right_shift"):
    """input1 shifted right by input2; the sign stays; `round` adds the last bit lost."""

    __slots__ = ()
    T = OneOf(i8, i16, i32)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    round: bool = attribute(BOOL)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class BitwiseAnd(_OfBits, name="tosa.bitwise_and"):
    """Bits that both have."""

    __slots__ = ()


class BitwiseNot(Operator, name="tosa.bitwise_not"):
    """Bits that it does not have."""

    __slots__ = ()
    T = OneOf(i8, ui8, i16, i32)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class BitwiseOr(_OfBits, name="tosa.bitwise_or"):
    """Bits that one has."""

    __slots__ = ()


class BitwiseXor(_OfBits, name="tosa.bitwise_xor"):
    """Bits that differ."""

    __slots__ = ()


class Clz(Operator, name="tosa.clz"):
    """The number of leading zero bits."""

    __slots__ = ()
    input: Value = operand(i32)
    output: Value = result(i32)
    traits = (Tabulable(input), Elementwise(input, output))


class LogicalAnd(_OfTruth, name="tosa.logical_and"):
    """Whether both are true."""

    __slots__ = ()


class LogicalLeftShift(_OfBits, name="tosa.logical_left_shift"):
    """input1 shifted left by input2."""

    __slots__ = ()
    traits = (Tabulable(_OfBits.input1, _OfBits.input2), *_OfBits.traits)


class LogicalNot(Operator, name="tosa.logical_not"):
    """Whether it is false."""

    __slots__ = ()
    input: Value = operand(i1)
    output: Value = result(i1)
    traits = (Elementwise(input, output),)


class LogicalOr(_OfTruth, name="tosa.logical_or"):
    """Whether one is true."""

    __slots__ = ()


class LogicalRightShift(_OfBits, name="tosa.logical_right_shift"):
    """input1 shifted right by input2; zeros come in."""

    __slots__ = ()


class LogicalXor(_OfTruth, name="tosa.logical_xor"):
    """Whether one of two is true."""

    __slots__ = ()


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
