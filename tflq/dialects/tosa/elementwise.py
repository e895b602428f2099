"""Elementwise ops: functions of floats, arithmetic, bits and logic, comparisons."""

from __future__ import annotations

from typing import Any, ClassVar

from tflq.dialects.declare import BOOL, FLOAT, INT, INTEGER, NUMBER, OneOf, Operator, Trait, attribute, operand, result
from tflq.dialects.traits import (
    Broadcasts,
    ConstantOperands,
    Elementwise,
    MovesElements,
    Role,
    SameShape,
    Tabulable,
    WithinRange,
)
from tflq.ir.ops import Value
from tflq.ir.types import i1, i8, i16, i32, i64, ui8


class FloatFunction(Operator):
    """Of one tensor of floats, element by element."""

    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class Ceil(FloatFunction, name="tosa.ceil"):
    """Rounded up."""


class Clamp(Operator, name="tosa.clamp"):
    """The input between min_val and max_val."""

    T = OneOf(INTEGER, FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    min_val: Any = attribute(NUMBER)
    max_val: Any = attribute(NUMBER)
    traits = (Tabulable(input), Role("clamped"), SameShape(input, output))


class Cos(FloatFunction, name="tosa.cos"):
    """The cosine."""


class Erf(FloatFunction, name="tosa.erf"):
    """The error function."""


class Exp(FloatFunction, name="tosa.exp"):
    """e to the power of the input."""


class Floor(FloatFunction, name="tosa.floor"):
    """Rounded down."""


class Log(FloatFunction, name="tosa.log"):
    """The natural logarithm."""


class Reciprocal(Operator, name="tosa.reciprocal"):
    """One over the input."""

    T = OneOf(FLOAT)
    input1: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input1, output),)


class Rsqrt(FloatFunction, name="tosa.rsqrt"):
    """One over the square root."""


class Sigmoid(FloatFunction, name="tosa.sigmoid"):
    """1 / (1 + e^-input)."""


class Sin(FloatFunction, name="tosa.sin"):
    """The sine."""


class Tanh(FloatFunction, name="tosa.tanh"):
    """The hyperbolic tangent."""


# Arithmetic of numbers.


class Abs(Operator, name="tosa.abs"):
    """The absolute value."""

    T = OneOf(i32, FLOAT)
    input1: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input1, output),)


class _Linear(Operator):
    """The sum or difference of two numbers."""

    T = OneOf(i32, i64, FLOAT)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class Add(_Linear, name="tosa.add"):
    """input1 + input2."""


class Sub(_Linear, name="tosa.sub"):
    """input1 - input2."""


class IntDiv(Operator, name="tosa.intdiv"):
    """input1 / input2, truncated."""

    input1: Value = operand(i32)
    input2: Value = operand(i32)
    output: Value = result(i32)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class _Extreme(Operator):
    """One of two numbers."""

    T = OneOf(INTEGER, FLOAT)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class Maximum(_Extreme, name="tosa.maximum"):
    """The greater of two."""


class Minimum(_Extreme, name="tosa.minimum"):
    """The lesser of two."""


class Mul(Operator, name="tosa.mul"):
    """input1 * input2. With a shift, on i32: (input1 * input2 + 2^(shift - 1)) >> shift, the product in 64 bits, the
    result in 32."""

    T = OneOf(i32, i64, FLOAT)
    S = OneOf(i8, i16)
    input1: Value = operand(T, S)
    input2: Value = operand(T, S)
    output: Value = result(T, i32)
    shift: int = attribute(INT)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output), ConstantOperands(shift=i8))


class Negate(Operator, name="tosa.negate"):
    """output_zp - (input1 - input1_zp)."""

    T = OneOf(i8, i16, i32, FLOAT)
    input1: Value = operand(T)
    output: Value = result(T)
    input1_zp: int = attribute(INT)
    output_zp: int = attribute(INT)
    traits = (ConstantOperands(input1_zp=input1, output_zp=output), SameShape(input1, output))


class Pow(Operator, name="tosa.pow"):
    """input1 to the power of input2."""

    T = OneOf(FLOAT)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits = (Broadcasts(input1, input2, output),)


# Bits of integers, and logic.


class _OfBits(Operator):
    """Of the bits of two integers."""

    T = OneOf(i8, i16, i32)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(T)
    traits: ClassVar[tuple[Trait, ...]] = (Broadcasts(input1, input2, output),)


class _OfTruth(Operator):
    """Of two truth values."""

    input1: Value = operand(i1)
    input2: Value = operand(i1)
    output: Value = result(i1)
    traits: ClassVar[tuple[Trait, ...]] = (Broadcasts(input1, input2, output),)


class ArithmeticRightShift(_OfBits, name="tosa.arithmetic_right_shift"):
    """input1 shifted right by input2; the sign stays; `round` adds the last bit lost."""

    round: bool = attribute(BOOL)
    traits = (Tabulable(_OfBits.input1, _OfBits.input2), *_OfBits.traits)


class BitwiseAnd(_OfBits, name="tosa.bitwise_and"):
    """Bits that both have."""


class BitwiseNot(Operator, name="tosa.bitwise_not"):
    """Bits that it does not have."""

    T = OneOf(i8, ui8, i16, i32)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class BitwiseOr(_OfBits, name="tosa.bitwise_or"):
    """Bits that one has."""


class BitwiseXor(_OfBits, name="tosa.bitwise_xor"):
    """Bits that differ."""


class Clz(Operator, name="tosa.clz"):
    """The number of leading zero bits."""

    input: Value = operand(i32)
    output: Value = result(i32)
    traits = (Tabulable(input), Elementwise(input, output))


class LogicalAnd(_OfTruth, name="tosa.logical_and"):
    """Whether both are true."""


class LogicalLeftShift(_OfBits, name="tosa.logical_left_shift"):
    """input1 shifted left by input2."""

    traits = (Tabulable(_OfBits.input1, _OfBits.input2), *_OfBits.traits)


class LogicalNot(Operator, name="tosa.logical_not"):
    """Whether it is false."""

    input: Value = operand(i1)
    output: Value = result(i1)
    traits = (Elementwise(input, output),)


class LogicalOr(_OfTruth, name="tosa.logical_or"):
    """Whether one is true."""


class LogicalRightShift(_OfBits, name="tosa.logical_right_shift"):
    """input1 shifted right by input2; zeros come in."""


class LogicalXor(_OfTruth, name="tosa.logical_xor"):
    """Whether one of two is true."""


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


# Comparisons and choices.


class Equal(Operator, name="tosa.equal"):
    """input1 = input2."""

    T = OneOf(INTEGER, i1, FLOAT)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(i1)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class _Ordered(Operator):
    """Two numbers, compared."""

    T = OneOf(INTEGER, FLOAT)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(i1)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class Greater(_Ordered, name="tosa.greater"):
    """input1 > input2."""


class GreaterEqual(_Ordered, name="tosa.greater_equal"):
    """input1 ≥ input2."""


class Select(Operator, name="tosa.select"):
    """on_true where the condition holds, else on_false."""

    T = OneOf(INTEGER, FLOAT, i1)
    condition: Value = operand(i1)
    on_true: Value = operand(T)
    on_false: Value = operand(T)
    output: Value = result(T)
    traits = (
        Tabulable(condition, on_true, on_false),
        WithinRange(on_true, on_false),
        MovesElements(on_true, on_false),
        Broadcasts(condition, on_true, on_false, output),
    )


Comparison = Equal | Greater | GreaterEqual
"""Of `input1` and `input2`."""
