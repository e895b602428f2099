"""Functions of several floats, and of a float and an integer."""

from __future__ import annotations

from tflq.dialects.core_floats import OfTwoFloats
from tflq.dialects.core_rules import FIXED, FLAGS, FLOATS, elementwise
from tflq.dialects.declare import OneOf, Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.ir.attributes import Opaque
from tflq.ir.core import Value

__all__ = ["Atan2", "ClampF", "CopySign", "FPowI", "Fma", "PowF"]


_ONE = OneOf(FLOATS)


class Atan2(OfTwoFloats, name="math.atan2"):
    """the angle of the point (rhs, lhs)"""

    __slots__ = ()


class CopySign(OfTwoFloats, name="math.copysign"):
    """|lhs| with the sign of rhs"""

    __slots__ = ()


class PowF(OfTwoFloats, name="math.powf"):
    """lhs^rhs"""

    __slots__ = ()


class Fma(Operator, name="math.fma"):
    """a * b + c, rounded once"""

    __slots__ = ()
    a: Value = operand(_ONE)
    b: Value = operand(_ONE)
    c: Value = operand(_ONE)
    result: Value = result_(_ONE)
    fastmath: Opaque | None = attribute(FLAGS, default=None)
    constraints = (declared, elementwise)


class ClampF(Operator, name="math.clampf"):
    """value, where it is from min to max, else the nearer of the two"""

    __slots__ = ()
    value: Value = operand(_ONE)
    min: Value = operand(_ONE)
    max: Value = operand(_ONE)
    result: Value = result_(_ONE)
    fastmath: Opaque | None = attribute(FLAGS, default=None)
    constraints = (declared, elementwise)


class FPowI(Operator, name="math.fpowi"):
    """lhs^rhs of a float and a signed integer"""

    __slots__ = ()
    lhs: Value = operand(_ONE)
    rhs: Value = operand(FIXED)
    result: Value = result_(_ONE)
    fastmath: Opaque | None = attribute(FLAGS, default=None)
    constraints = (declared, elementwise)
