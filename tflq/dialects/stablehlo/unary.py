"""Functions of one tensor, element by element."""

from __future__ import annotations

from tflq.dialects.declare import Operator, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.dialects.stablehlo.rules import elementwise, one_kind
from tflq.ir.core import Value

__all__ = [
    "Abs",
    "Ceil",
    "Cosine",
    "Exponential",
    "Floor",
    "Log",
    "Logistic",
    "Negate",
    "Not",
    "RoundNearestAfz",
    "RoundNearestEven",
    "Rsqrt",
    "Sign",
    "Sine",
    "Sqrt",
    "Tanh",
    "Unary",
]


class Unary(Operator):
    """Of one tensor, element by element."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (declared, elementwise, one_kind)


class Abs(Unary, name="stablehlo.abs"):
    """The absolute value."""

    __slots__ = ()


class Negate(Unary, name="stablehlo.negate"):
    """The value with the other sign."""

    __slots__ = ()


class Not(Unary, name="stablehlo.not"):
    """Every bit the other way."""

    __slots__ = ()


class Sign(Unary, name="stablehlo.sign"):
    """-1, 0 or 1."""

    __slots__ = ()


class Ceil(Unary, name="stablehlo.ceil"):
    """The next integer up."""

    __slots__ = ()


class Floor(Unary, name="stablehlo.floor"):
    """The next integer down."""

    __slots__ = ()


class RoundNearestEven(Unary, name="stablehlo.round_nearest_even"):
    """The nearest integer, of two the even one."""

    __slots__ = ()


class RoundNearestAfz(Unary, name="stablehlo.round_nearest_afz"):
    """The nearest integer, of two the one away from zero."""

    __slots__ = ()


class Exponential(Unary, name="stablehlo.exponential"):
    """e to the power of it."""

    __slots__ = ()


class Log(Unary, name="stablehlo.log"):
    """The natural logarithm."""

    __slots__ = ()


class Logistic(Unary, name="stablehlo.logistic"):
    """1 / (1 + exp(-x))"""

    __slots__ = ()


class Sqrt(Unary, name="stablehlo.sqrt"):
    """The square root."""

    __slots__ = ()


class Rsqrt(Unary, name="stablehlo.rsqrt"):
    """1 / sqrt(x)"""

    __slots__ = ()


class Tanh(Unary, name="stablehlo.tanh"):
    """The hyperbolic tangent."""

    __slots__ = ()


class Cosine(Unary, name="stablehlo.cosine"):
    """The cosine."""

    __slots__ = ()


class Sine(Unary, name="stablehlo.sine"):
    """The sine."""

    __slots__ = ()
