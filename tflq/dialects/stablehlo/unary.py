"""Functions of one tensor, element by element."""

from __future__ import annotations

from tflq.dialects.declare import Operator, operand
from tflq.dialects.declare import result as result_
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
]


class Abs(Operator, name="stablehlo.abs"):
    """The absolute value."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class Negate(Operator, name="stablehlo.negate"):
    """The value with the other sign."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class Not(Operator, name="stablehlo.not"):
    """Every bit the other way."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class Sign(Operator, name="stablehlo.sign"):
    """-1, 0 or 1."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class Ceil(Operator, name="stablehlo.ceil"):
    """The next integer up."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class Floor(Operator, name="stablehlo.floor"):
    """The next integer down."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class RoundNearestEven(Operator, name="stablehlo.round_nearest_even"):
    """The nearest integer, of two the even one."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class RoundNearestAfz(Operator, name="stablehlo.round_nearest_afz"):
    """The nearest integer, of two the one away from zero."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class Exponential(Operator, name="stablehlo.exponential"):
    """e to the power of it."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class Log(Operator, name="stablehlo.log"):
    """The natural logarithm."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class Logistic(Operator, name="stablehlo.logistic"):
    """1 / (1 + exp(-x))"""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class Sqrt(Operator, name="stablehlo.sqrt"):
    """The square root."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class Rsqrt(Operator, name="stablehlo.rsqrt"):
    """1 / sqrt(x)"""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class Tanh(Operator, name="stablehlo.tanh"):
    """The hyperbolic tangent."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class Cosine(Operator, name="stablehlo.cosine"):
    """The cosine."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)


class Sine(Operator, name="stablehlo.sine"):
    """The sine."""

    __slots__ = ()
    input: Value = operand()
    result: Value = result_()
    constraints = (elementwise(1), one_kind)
