"""What elementwise ops of floats share in arith and math: operands of one type, and flags."""

from __future__ import annotations

from tflq.dialects.core_rules import FLAGS, FLOATS, elementwise
from tflq.dialects.declare import OneOf, Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.ir.attributes import Opaque
from tflq.ir.core import Value

__all__ = ["OfFloat", "OfTwoFloats"]

_ONE = OneOf(FLOATS)


class OfFloat(Operator):
    """Of one float."""

    __slots__ = ()
    input: Value = operand(_ONE)
    result: Value = result_(_ONE)
    fastmath: Opaque | None = attribute(FLAGS, default=None)
    constraints = (declared, elementwise)


class OfTwoFloats(Operator):
    """Of two floats."""

    __slots__ = ()
    lhs: Value = operand(_ONE)
    rhs: Value = operand(_ONE)
    result: Value = result_(_ONE)
    fastmath: Opaque | None = attribute(FLAGS, default=None)
    constraints = (declared, elementwise)
