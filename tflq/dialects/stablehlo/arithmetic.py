"""Arithmetic of two tensors, element by element."""

from __future__ import annotations

from tflq.dialects.declare import Operator, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.stablehlo.rules import elementwise, one_kind
from tflq.ir.core import Value

__all__ = [
    "Add",
    "And",
    "Divide",
    "Maximum",
    "Minimum",
    "Multiply",
    "Or",
    "Power",
    "Remainder",
    "Subtract",
    "Xor",
]


class Add(Operator, name="stablehlo.add"):
    """The sum; of booleans, whether one is true."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (elementwise(2), one_kind)


class Subtract(Operator, name="stablehlo.subtract"):
    """The difference."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (elementwise(2), one_kind)


class Multiply(Operator, name="stablehlo.multiply"):
    """The product; of booleans, whether both are true."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (elementwise(2), one_kind)


class Divide(Operator, name="stablehlo.divide"):
    """The quotient; of integers, without its fraction."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (elementwise(2), one_kind)


class Remainder(Operator, name="stablehlo.remainder"):
    """What division leaves, with the sign of the dividend."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (elementwise(2), one_kind)


class Maximum(Operator, name="stablehlo.maximum"):
    """The greater."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (elementwise(2), one_kind)


class Minimum(Operator, name="stablehlo.minimum"):
    """The lesser."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (elementwise(2), one_kind)


class Power(Operator, name="stablehlo.power"):
    """The power."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (elementwise(2), one_kind)


class And(Operator, name="stablehlo.and"):
    """Bits that both have."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (elementwise(2), one_kind)


class Or(Operator, name="stablehlo.or"):
    """Bits that one of them has."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (elementwise(2), one_kind)


class Xor(Operator, name="stablehlo.xor"):
    """Bits that differ."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (elementwise(2), one_kind)
