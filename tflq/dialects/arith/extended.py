"""Integer arithmetic whose result is wider than its operands: in two values."""

from __future__ import annotations

from tflq.dialects.core_rules import BOOLEAN, SIGNLESS, elementwise
from tflq.dialects.declare import OneOf, Operator, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.ir.core import Value

__all__ = ["AddUIExtended", "MulSIExtended", "MulUIExtended"]


_ONE = OneOf(SIGNLESS)


class _Wide(Operator):
    """The whole product of two integers, in two parts of their width."""

    __slots__ = ()
    lhs: Value = operand(_ONE)
    rhs: Value = operand(_ONE)
    low: Value = result_(_ONE)
    high: Value = result_(_ONE)
    constraints = (declared, elementwise)


class AddUIExtended(Operator, name="arith.addui_extended"):
    """sum = lhs + rhs modulo the width, overflow = whether that is not the sum of the unsigned integers"""

    __slots__ = ()
    lhs: Value = operand(_ONE)
    rhs: Value = operand(_ONE)
    sum: Value = result_(_ONE)
    overflow: Value = result_(BOOLEAN)
    constraints = (declared, elementwise)


class MulSIExtended(_Wide, name="arith.mulsi_extended"):
    """high * 2^width + low = lhs * rhs of signed integers"""

    __slots__ = ()


class MulUIExtended(_Wide, name="arith.mului_extended"):
    """high * 2^width + low = lhs * rhs of unsigned integers"""

    __slots__ = ()
