"""Functions of floats, clamps."""

from __future__ import annotations

from typing import Any

from tflq.dialects.declare import FLOAT, INTEGER, NUMBER, OneOf, Operator, attribute, operand, result
from tflq.dialects.traits.elements import Role, Tabulable
from tflq.dialects.traits.types import Elementwise, SameShape
from tflq.ir.core import Value

__all__ = [
    "Ceil",
    "Clamp",
    "Cos",
    "Erf",
    "Exp",
    "FloatFunction",
    "Floor",
    "Log",
    "Reciprocal",
    "Rsqrt",
    "Sigmoid",
    "Sin",
    "Tanh",
]


class FloatFunction(Operator):
    """Of one tensor of floats, element by element."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class Ceil(FloatFunction, name="tosa.ceil"):
    """Rounded up."""

    __slots__ = ()


class Clamp(Operator, name="tosa.clamp"):
    """The input between min_val and max_val."""

    __slots__ = ()
    T = OneOf(INTEGER, FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    min_val: Any = attribute(NUMBER)
    max_val: Any = attribute(NUMBER)
    traits = (Tabulable(input), Role("clamped"), SameShape(input, output))


class Cos(FloatFunction, name="tosa.cos"):
    """The cosine."""

    __slots__ = ()


class Erf(FloatFunction, name="tosa.erf"):
    """The error function."""

    __slots__ = ()


class Exp(FloatFunction, name="tosa.exp"):
    """e to the power of the input."""

    __slots__ = ()


class Floor(FloatFunction, name="tosa.floor"):
    """Rounded down."""

    __slots__ = ()


class Log(FloatFunction, name="tosa.log"):
    """The natural logarithm."""

    __slots__ = ()


class Reciprocal(Operator, name="tosa.reciprocal"):
    """One over the input."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input1: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input1, output),)


class Rsqrt(FloatFunction, name="tosa.rsqrt"):
    """One over the square root."""

    __slots__ = ()


class Sigmoid(FloatFunction, name="tosa.sigmoid"):
    """1 / (1 + e^-input)."""

    __slots__ = ()


class Sin(FloatFunction, name="tosa.sin"):
    """The sine."""

    __slots__ = ()


class Tanh(FloatFunction, name="tosa.tanh"):
    """The hyperbolic tangent."""

    __slots__ = ()
