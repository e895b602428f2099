"""Functions of floats, clamps."""

from __future__ import annotations

from typing import Any, TypeAlias

from tflq.dialects.declare import FLOAT, INTEGER, NUMBER, OneOf, Operator, attribute, operand, result
from tflq.dialects.traits.elements import Role, Tabulable
from tflq.dialects.traits.types import Elementwise
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


class Ceil(Operator, name="tosa.ceil"):
    """Rounded up."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class Clamp(Operator, name="tosa.clamp"):
    """The input between min_val and max_val."""

    __slots__ = ()
    T = OneOf(INTEGER, FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    min_val: Any = attribute(NUMBER)
    max_val: Any = attribute(NUMBER)
    traits = (Tabulable(input), Role("clamped"))


class Cos(Operator, name="tosa.cos"):
    """The cosine."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class Erf(Operator, name="tosa.erf"):
    """The error function."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class Exp(Operator, name="tosa.exp"):
    """e to the power of the input."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class Floor(Operator, name="tosa.floor"):
    """Rounded down."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class Log(Operator, name="tosa.log"):
    """The natural logarithm."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class Reciprocal(Operator, name="tosa.reciprocal"):
    """One over the input."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input1: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input1, output),)


class Rsqrt(Operator, name="tosa.rsqrt"):
    """One over the square root."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class Sigmoid(Operator, name="tosa.sigmoid"):
    """1 / (1 + e^-input)."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class Sin(Operator, name="tosa.sin"):
    """The sine."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


class Tanh(Operator, name="tosa.tanh"):
    """The hyperbolic tangent."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (Elementwise(input, output),)


FloatFunction: TypeAlias = Ceil | Cos | Erf | Exp | Floor | Log | Rsqrt | Sigmoid | Sin | Tanh
"""Functions of one float."""
