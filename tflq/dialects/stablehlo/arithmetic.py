"""Arithmetic of two tensors, element by element."""

from __future__ import annotations

from tflq.dialects.declare import Operator, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.dialects.stablehlo.rules import elementwise, one_kind
from tflq.ir.core import Value

__all__ = [
    "Add",
    "And",
    "Binary",
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


class Binary(Operator):
    """Of two tensors, element by element."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (declared, elementwise, one_kind)


class Add(Binary, name="stablehlo.add"):
    """The sum; of booleans, whether one is true."""

    __slots__ = ()


class Subtract(Binary, name="stablehlo.subtract"):
    """The difference."""

    __slots__ = ()


class Multiply(Binary, name="stablehlo.multiply"):
    """The product; of booleans, whether both are true."""

    __slots__ = ()


class Divide(Binary, name="stablehlo.divide"):
    """The quotient; of integers, without its fraction."""

    __slots__ = ()


class Remainder(Binary, name="stablehlo.remainder"):
    """What division leaves, with the sign of the dividend."""

    __slots__ = ()


class Maximum(Binary, name="stablehlo.maximum"):
    """The greater."""

    __slots__ = ()


class Minimum(Binary, name="stablehlo.minimum"):
    """The lesser."""

    __slots__ = ()


class Power(Binary, name="stablehlo.power"):
    """The power."""

    __slots__ = ()


class And(Binary, name="stablehlo.and"):
    """Bits that both have."""

    __slots__ = ()


class Or(Binary, name="stablehlo.or"):
    """Bits that one of them has."""

    __slots__ = ()


class Xor(Binary, name="stablehlo.xor"):
    """Bits that differ."""

    __slots__ = ()
