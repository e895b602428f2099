"""Functions of integers."""

from __future__ import annotations

from tflq.dialects.core_rules import SIGNLESS, elementwise
from tflq.dialects.declare import OneOf, Operator, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.ir.core import Value

__all__ = ["AbsI", "CtLz", "CtPop", "CtTz", "IPowI"]


_ONE = OneOf(SIGNLESS)


class _Bits(Operator):
    """Of one integer."""

    __slots__ = ()
    input: Value = operand(_ONE)
    result: Value = result_(_ONE)
    constraints = (declared, elementwise)


class AbsI(_Bits, name="math.absi"):
    """|input| of a signed integer, modulo the width: the least one stays"""

    __slots__ = ()


class CtLz(_Bits, name="math.ctlz"):
    """how many bits are 0 above the highest that is 1"""

    __slots__ = ()


class CtPop(_Bits, name="math.ctpop"):
    """how many bits are 1"""

    __slots__ = ()


class CtTz(_Bits, name="math.cttz"):
    """how many bits are 0 below the lowest that is 1"""

    __slots__ = ()


class IPowI(Operator, name="math.ipowi"):
    """lhs^rhs of signed integers, modulo the width; the integer part where rhs is negative"""

    __slots__ = ()
    lhs: Value = operand(_ONE)
    rhs: Value = operand(_ONE)
    result: Value = result_(_ONE)
    constraints = (declared, elementwise)
