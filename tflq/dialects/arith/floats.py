"""Arithmetic of floats, each op rounded once, to the nearest value of the type, ties to even."""

from __future__ import annotations

from tflq.dialects.core_rules import FLAGS, FLOATS, declared, elementwise
from tflq.dialects.declare import OneOf, Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.ir.attributes import Opaque
from tflq.ir.core import Value

__all__ = ["AddF", "DivF", "MaxNumF", "MaximumF", "MinNumF", "MinimumF", "MulF", "NegF", "RemF", "SubF"]


_ONE = OneOf(FLOATS)


class _Floats(Operator):
    """Of two floats."""

    __slots__ = ()
    lhs: Value = operand(_ONE)
    rhs: Value = operand(_ONE)
    result: Value = result_(_ONE)
    fastmath: Opaque | None = attribute(FLAGS, default=None)
    constraints = (declared, elementwise)


class AddF(_Floats, name="arith.addf"):
    """lhs + rhs"""

    __slots__ = ()


class SubF(_Floats, name="arith.subf"):
    """lhs - rhs"""

    __slots__ = ()


class MulF(_Floats, name="arith.mulf"):
    """lhs * rhs"""

    __slots__ = ()


class DivF(_Floats, name="arith.divf"):
    """lhs / rhs"""

    __slots__ = ()


class RemF(_Floats, name="arith.remf"):
    """what division of lhs by rhs, toward zero, leaves: exact, with the sign of lhs; NaN for rhs 0"""

    __slots__ = ()


class MaximumF(_Floats, name="arith.maximumf"):
    """the greater; NaN if one is NaN; 0 is greater than -0"""

    __slots__ = ()


class MinimumF(_Floats, name="arith.minimumf"):
    """the lesser; NaN if one is NaN; -0 is less than 0"""

    __slots__ = ()


class MaxNumF(_Floats, name="arith.maxnumf"):
    """the greater; the other one if one is NaN"""

    __slots__ = ()


class MinNumF(_Floats, name="arith.minnumf"):
    """the lesser; the other one if one is NaN"""

    __slots__ = ()


class NegF(Operator, name="arith.negf"):
    """-input, of 0 and NaN, too"""

    __slots__ = ()
    input: Value = operand(_ONE)
    result: Value = result_(_ONE)
    fastmath: Opaque | None = attribute(FLAGS, default=None)
    constraints = (declared, elementwise)
