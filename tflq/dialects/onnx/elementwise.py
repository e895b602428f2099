"""Elementwise operators: arithmetic, functions, comparisons, bits and logic, casts."""

from __future__ import annotations

from tflq.dialects.declare import INT, NUMBER, STRING, OneOf, Operator, attribute, operand, result
from tflq.dialects.traits.types import Broadcasts, Elementwise
from tflq.ir.core import Value
from tflq.ir.types import f32, f64, i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64

NUMBERS = (i32, i64, f32, f64)
"""What ONNX Runtime computes with."""
STORED = (i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f32, f64)
"""What tensors hold."""


class _Binary(Operator):
    """Of two numbers."""

    T = OneOf(*NUMBERS)
    a: Value = operand(T)
    b: Value = operand(T)
    c: Value = result(T)
    traits = (Broadcasts(a, b, c),)


class Add(_Binary, name="onnx.add"):
    """a + b."""


class Sub(_Binary, name="onnx.sub"):
    """a - b."""


class Mul(_Binary, name="onnx.mul"):
    """a * b."""


class Div(_Binary, name="onnx.div"):
    """a / b; of integers toward zero."""


class Max(_Binary, name="onnx.max"):
    """The greater of two."""


class Min(_Binary, name="onnx.min"):
    """The lesser of two."""


class Mod(_Binary, name="onnx.mod"):
    """The remainder, with the divisor's sign; of floats, with fmod = 1, with the dividend's."""

    fmod: int = attribute(INT, default=0)


class Pow(_Binary, name="onnx.pow"):
    """a to the power of b."""


class _Unary(Operator):
    """Of one number."""

    T = OneOf(*NUMBERS)
    x: Value = operand(T)
    y: Value = result(T)
    traits = (Elementwise(x, y),)


class Abs(_Unary, name="onnx.abs"):
    """The absolute value."""


class Neg(_Unary, name="onnx.neg"):
    """-x."""


class Relu(_Unary, name="onnx.relu"):
    """x, at least 0."""


class Clip(Operator, name="onnx.clip"):
    """The input between two numbers."""

    T = OneOf(*NUMBERS, i8, ui8)
    input: Value = operand(T)
    min: Value = operand(T)
    max: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class _OfFloat(Operator):
    """Of one float."""

    T = OneOf(f32, f64)
    x: Value = operand(T)
    y: Value = result(T)
    traits = (Elementwise(x, y),)


class Ceil(_OfFloat, name="onnx.ceil"):
    """Rounded up."""


class Cos(_OfFloat, name="onnx.cos"):
    """The cosine."""


class Elu(_OfFloat, name="onnx.elu"):
    """x, or e^x - 1 below 0."""


class Erf(_OfFloat, name="onnx.erf"):
    """The error function."""


class Exp(_OfFloat, name="onnx.exp"):
    """e to the power of x."""


class Floor(_OfFloat, name="onnx.floor"):
    """Rounded down."""


class HardSwish(_OfFloat, name="onnx.hard_swish"):
    """x * max(0, min(1, x / 6 + 0.5))."""


class LeakyRelu(_OfFloat, name="onnx.leaky_relu"):
    """x, or alpha * x below 0."""

    alpha: float = attribute(NUMBER, default=0.01)


class Log(_OfFloat, name="onnx.log"):
    """The natural logarithm."""


class Reciprocal(_OfFloat, name="onnx.reciprocal"):
    """One over x."""


class Round(_OfFloat, name="onnx.round"):
    """Rounded to nearest, half to even."""


class Sigmoid(_OfFloat, name="onnx.sigmoid"):
    """1 / (1 + e^-x)."""


class Sign(_OfFloat, name="onnx.sign"):
    """-1, 0 or 1."""


class Sin(_OfFloat, name="onnx.sin"):
    """The sine."""


class Softmax(_OfFloat, name="onnx.softmax"):
    """Powers of e, divided by their sum along an axis."""

    axis: int = attribute(INT, default=-1)


class Sqrt(_OfFloat, name="onnx.sqrt"):
    """The square root."""


class Tanh(_OfFloat, name="onnx.tanh"):
    """The hyperbolic tangent."""


# Comparisons and choices.


class _Comparison(Operator):
    """Two numbers, compared."""

    T = OneOf(*NUMBERS)
    a: Value = operand(T)
    b: Value = operand(T)
    c: Value = result(i1)
    traits = (Broadcasts(a, b, c),)


class Equal(_Comparison, name="onnx.equal"):
    """a = b."""


class Greater(_Comparison, name="onnx.greater"):
    """a > b."""


class GreaterOrEqual(_Comparison, name="onnx.greater_or_equal"):
    """a ≥ b."""


class Less(_Comparison, name="onnx.less"):
    """a < b."""


class LessOrEqual(_Comparison, name="onnx.less_or_equal"):
    """a ≤ b."""


class PRelu(Operator, name="onnx.p_relu"):
    """x, or slope * x below 0; the slope broadcasts to x."""

    T = OneOf(f32, f64)
    x: Value = operand(T)
    slope: Value = operand(T)
    y: Value = result(T)
    traits = (Broadcasts(x, slope, y),)


class IsNaN(Operator, name="onnx.is_nan"):
    """Whether it is NaN."""

    x: Value = operand(OneOf(f32, f64))
    y: Value = result(i1)
    traits = (Elementwise(x, y),)


class Where(Operator, name="onnx.where"):
    """x where the condition holds, else y."""

    T = OneOf(i32, i64, f32, f64, ui8)
    condition: Value = operand(i1)
    x: Value = operand(T)
    y: Value = operand(T)
    output: Value = result(T)
    traits = (Broadcasts(condition, x, y, output),)


# Bits and logic.


class _OfTruth(Operator):
    """Of two truth values."""

    a: Value = operand(i1)
    b: Value = operand(i1)
    c: Value = result(i1)
    traits = (Broadcasts(a, b, c),)


class And(_OfTruth, name="onnx.and"):
    """Whether both are true."""


class Or(_OfTruth, name="onnx.or"):
    """Whether one is true."""


class Xor(_OfTruth, name="onnx.xor"):
    """Whether one of two is true."""


class Not(Operator, name="onnx.not"):
    """Whether it is false."""

    x: Value = operand(i1)
    y: Value = result(i1)
    traits = (Elementwise(x, y),)


class _OfBits(Operator):
    """Of the bits of two integers."""

    T = OneOf(i8, i16, i32, i64, ui8, ui16, ui32, ui64)
    a: Value = operand(T)
    b: Value = operand(T)
    c: Value = result(T)
    traits = (Broadcasts(a, b, c),)


class BitwiseAnd(_OfBits, name="onnx.bitwise_and"):
    """Bits that both have."""


class BitwiseOr(_OfBits, name="onnx.bitwise_or"):
    """Bits that one has."""


class BitwiseXor(_OfBits, name="onnx.bitwise_xor"):
    """Bits that differ."""


class BitwiseNot(Operator, name="onnx.bitwise_not"):
    """Bits that it does not have."""

    T = OneOf(i8, i16, i32, i64, ui8, ui16, ui32, ui64)
    x: Value = operand(T)
    y: Value = result(T)
    traits = (Elementwise(x, y),)


class BitShift(Operator, name="onnx.bit_shift"):
    """x shifted by y bits, zeros come in. direction: LEFT or RIGHT."""

    T = OneOf(ui8, ui32, ui64)
    x: Value = operand(T)
    y: Value = operand(T)
    z: Value = result(T)
    direction: str = attribute(STRING)
    traits = (Broadcasts(x, y, z),)


# Between element types.


class Cast(Operator, name="onnx.cast"):
    """The numbers in another type: integers wrap; a float loses its fraction, and must fit."""

    input: Value = operand(OneOf(*STORED))
    output: Value = result(OneOf(*STORED))
    traits = (Elementwise(input, output),)
