"""What kind of a number a float is."""

from __future__ import annotations

from tflq.dialects.core_rules import BOOLEAN, FLAGS, FLOATS, elementwise
from tflq.dialects.declare import Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.ir.attributes import Opaque
from tflq.ir.core import Value

__all__ = ["IsFinite", "IsInf", "IsNaN", "IsNormal"]


class _Question(Operator):
    """Of one float."""

    __slots__ = ()
    input: Value = operand(FLOATS)
    result: Value = result_(BOOLEAN)
    fastmath: Opaque | None = attribute(FLAGS, default=None)
    constraints = (declared, elementwise)


class IsFinite(_Question, name="math.isfinite"):
    """whether it is neither infinite nor NaN"""

    __slots__ = ()


class IsInf(_Question, name="math.isinf"):
    """whether it is infinite"""

    __slots__ = ()


class IsNaN(_Question, name="math.isnan"):
    """whether it is NaN"""

    __slots__ = ()


class IsNormal(_Question, name="math.isnormal"):
    """whether it is finite, not 0 and not subnormal"""

    __slots__ = ()
