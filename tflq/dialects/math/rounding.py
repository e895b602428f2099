"""Floats rounded to whole ones, and what else is exact of one float."""

from __future__ import annotations

from tflq.dialects.core_rules import FLAGS, FLOATS, declared, elementwise
from tflq.dialects.declare import OneOf, Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.ir.attributes import Opaque
from tflq.ir.core import Value

__all__ = ["AbsF", "Ceil", "Floor", "Round", "RoundEven", "Trunc"]


_ONE = OneOf(FLOATS)


class _Function(Operator):
    """Of one float."""

    __slots__ = ()
    input: Value = operand(_ONE)
    result: Value = result_(_ONE)
    fastmath: Opaque | None = attribute(FLAGS, default=None)
    constraints = (declared, elementwise)


class AbsF(_Function, name="math.absf"):
    """|input|"""

    __slots__ = ()


class Ceil(_Function, name="math.ceil"):
    """rounded up"""

    __slots__ = ()


class Floor(_Function, name="math.floor"):
    """rounded down"""

    __slots__ = ()


class Round(_Function, name="math.round"):
    """rounded to the nearest, halves away from zero"""

    __slots__ = ()


class RoundEven(_Function, name="math.roundeven"):
    """rounded to the nearest, halves to even"""

    __slots__ = ()


class Trunc(_Function, name="math.trunc"):
    """rounded toward zero"""

    __slots__ = ()
