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

    __slots__ = ()
    T = OneOf(*NUMBERS)
    a: Value = operand(T)
    b: Value = operand(T)
    c: Value = result(T)
    traits = (Broadcasts(a, b, c),)


class Add(_Binary, name="onnx.add"):
    """a + b."""

    __slots__ = ()


class Sub(_Binary, name="onnx.sub"):
    """a - b."""

    __slots__ = ()


class Mul(_Binary, name="onnx.mul"):
    """a * b."""

    __slots__ = ()


class Div(_Binary, name="onnx.div"):
    """a / b; of integers toward zero."""

    __slots__ = ()


class Max(_Binary, name="onnx.max"):
    """The greater of two."""

    __slots__ = ()


class Min(_Binary, name="onnx.min"):
    """The lesser of two."""

    __slots__ = ()


class Mod(_Binary, name="onnx.mod"):
    """The remainder, with the divisor's sign; of floats, with fmod = 1, with the dividend's."""

    __slots__ = ()
    fmod: int = attribute(INT, default=0)


class Pow(_Binary, name="onnx.pow"):
    """a to the power of b."""

    __slots__ = ()


class _Unary(Operator):
    """Of one number."""

    __slots__ = ()
    T = OneOf(*NUMBERS)
    x: Value = operand(T)
    y: Value = result(T)
    traits = (Elementwise(x, y),)


class Abs(_Unary, name="onnx.abs"):
    """The absolute value."""

    __slots__ = ()


class Neg(_Unary, name="onnx.neg"):
    """-x."""

    __slots__ = ()


class Relu(_Unary, name="onnx.relu"):
    """x, at least 0."""

    __slots__ = ()


class Clip(Operator, name="onnx.clip"):
    """The input between two numbers."""

    __slots__ = ()
    T = OneOf(*NUMBERS, i8, ui8)
    input: Value = operand(T)
    min: Value = operand(T)
    max: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class _OfFloat(Operator):
    """Of one float."""

    __slots__ = ()
    T = OneOf(f32, f64)
    x: Value = operand(T)
    y: Value = result(T)
    traits = (Elementwise(x, y),)


class Ceil(_OfFloat, name="onnx.ceil"):
    """Rounded up."""

    __slots__ = ()


class Cos(_OfFloat, name="onnx.cos"):
    """The cosine."""

    __slots__ = ()


class Elu(_OfFloat, name="onnx.elu"):
    """x, or e^x - 1 below 0."""

    __slots__ = ()


class Erf(_OfFloat, name="onnx.erf"):
    """The error function."""

    __slots__ = ()


class Exp(_OfFloat, name="onnx.exp"):
    """e to the power of x."""

    __slots__ = ()


class Floor(_OfFloat, name="onnx.floor"):
    """Rounded down."""

    __slots__ = ()


class HardSwish(_OfFloat, name="onnx.hard_swish"):
    """x * max(0, min(1, x / 6 + 0.5))."""

    __slots__ = ()


class LeakyRelu(_OfFloat, name="onnx.leaky_relu"):
    """x, or alpha * x below 0."""

    __slots__ = ()
    alpha: float = attribute(NUMBER, default=0.01)


class Log(_OfFloat, name="onnx.log"):
    """The natural logarithm."""

    __slots__ = ()


class Reciprocal(_OfFloat, name="onnx.reciprocal"):
    """One over x."""

    __slots__ = ()


class Round(_OfFloat, name="onnx.round"):
    """Rounded to nearest, half to even."""

    __slots__ = ()


class Sigmoid(_OfFloat, name="onnx.sigmoid"):
    """1 / (1 + e^-x)."""

    __slots__ = ()


class Sign(_OfFloat, name="onnx.sign"):
    """-1, 0 or 1."""

    __slots__ = ()


class Sin(_OfFloat, name="onnx.sin"):
    """The sine."""

    __slots__ = ()


class Softmax(_OfFloat, name="onnx.softmax"):
    """Powers of e, divided by their sum along an axis."""

    __slots__ = ()
    axis: int = attribute(INT, default=-1)


class Sqrt(_OfFloat, name="onnx.sqrt"):
    """The square root."""

    __slots__ = ()


class Tanh(_OfFloat, name="onnx.tanh"):
    """The hyperbolic tangent."""

    __slots__ = ()


# Comparisons and choices.


class _Comparison(Operator):
    """Two numbers, compared."""

    __slots__ = ()
    T = OneOf(*NUMBERS)
    a: Value = operand(T)
    b: Value = operand(T)
    c: Value = result(i1)
    traits = (Broadcasts(a, b, c),)


class Equal(_Comparison, name="onnx.equal"):
    """a = b."""

    __slots__ = ()


class Greater(_Comparison, name="onnx.greater"):
    """a > b."""

    __slots__ = ()


class GreaterOrEqual(_Comparison, name="onnx.greater_or_equal"):
    """a ≥ b."""

    __slots__ = ()


class Less(_Comparison, name="onnx.less"):
    """a < b."""

    __slots__ = ()


class LessOrEqual(_Comparison, name="onnx.less_or_equal"):
    """a ≤ b."""

    __slots__ = ()


class PRelu(Operator, name="onnx.p_relu"):
    """x, or slope * x below 0; the slope broadcasts to x."""

    __slots__ = ()
    T = OneOf(f32, f64)
    x: Value = operand(T)
    slope: Value = operand(T)
    y: Value = result(T)
    traits = (Broadcasts(x, slope, y),)


class IsNaN(Operator, name="onnx.is_nan"):
    """Whether it is NaN."""

    __slots__ = ()
    x: Value = operand(OneOf(f32, f64))
    y: Value = result(i1)
    traits = (Elementwise(x, y),)


class Where(Operator, name="onnx.where"):
    """x where the condition holds, else y."""

    __slots__ = ()
    T = OneOf(i32, i64, f32, f64, ui8)
    condition: Value = operand(i1)
    x: Value = operand(T)
    y: Value = operand(T)
    output: Value = result(T)
    traits = (Broadcasts(condition, x, y, output),)


# Bits and logic.


class _OfTruth(Operator):
    """Of two truth values."""

    __slots__ = ()
    a: Value = operand(i1)
    b: Value = operand(i1)
    c: Value = result(i1)
    traits = (Broadcasts(a, b, c),)


class And(_OfTruth, name="onnx.and"):
    """Whether both are true."""

    __slots__ = ()


class Or(_OfTruth, name="onnx.or"):
    """Whether one is true."""

    __slots__ = ()


class Xor(_OfTruth, name="onnx.xor"):
    """Whether one of two is true."""

    __slots__ = ()


class Not(Operator, name="onnx.not"):
    """Whether it is false."""

    __slots__ = ()
    x: Value = operand(i1)
    y: Value = result(i1)
    traits = (Elementwise(x, y),)


class _OfBits(Operator):
    """Of the bits of two integers."""

    __slots__ = ()
    T = OneOf(i8, i16, i32, i64, ui8, ui16, ui32, ui64)
    a: Value = operand(T)
    b: Value = operand(T)
    c: Value = result(T)
    traits = (Broadcasts(a, b, c),)


class BitwiseAnd(_OfBits, name="onnx.bitwise_and"):
    """Bits that both have."""

    __slots__ = ()


class BitwiseOr(_OfBits, name="onnx.bitwise_or"):
    """Bits that one has."""

    __slots__ = ()


class BitwiseXor(_OfBits, name="onnx.bitwise_xor"):
    """Bits that differ."""

    __slots__ = ()


class BitwiseNot(Operator, name="onnx.bitwise_not"):
    """Bits that it does not have."""

    __slots__ = ()
    T = OneOf(i8, i16, i32, i64, ui8, ui16, ui32, ui64)
    x: Value = operand(T)
    y: Value = result(T)
    traits = (Elementwise(x, y),)


class BitShift(Operator, name="onnx.bit_shift"):
    """x shifted by y bits, zeros come in. direction: LEFT or RIGHT."""

    __slots__ = ()
    T = OneOf(ui8, ui32, ui64)
    x: Value = operand(T)
    y: Value = operand(T)
    z: Value = result(T)
    direction: str = attribute(STRING)
    traits = (Broadcasts(x, y, z),)


# Between element types.


class Cast(Operator, name="onnx.cast"):
    """The numbers in another type: integers wrap; a float loses its fraction, and must fit."""

    __slots__ = ()
    input: Value = operand(OneOf(*STORED))
    output: Value = result(OneOf(*STORED))
    traits = (Elementwise(input, output),)
