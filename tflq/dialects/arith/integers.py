"""Arithmetic of two integers, modulo their width; which are signed is the op's to say."""

from __future__ import annotations

from tflq.dialects.core_rules import FLAGS, SIGNLESS, elementwise
from tflq.dialects.declare import OneOf, Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.ir.attributes import Opaque
from tflq.ir.core import Value

__all__ = [
    "AddI",
    "AndI",
    "CeilDivSI",
    "CeilDivUI",
    "DivSI",
    "DivUI",
    "FloorDivSI",
    "MaxSI",
    "MaxUI",
    "MinSI",
    "MinUI",
    "MulI",
    "OrI",
    "RemSI",
    "RemUI",
    "ShLI",
    "ShRSI",
    "ShRUI",
    "SubI",
    "XOrI",
]


_ONE = OneOf(SIGNLESS)


class _Integers(Operator):
    """Of two integers."""

    __slots__ = ()
    lhs: Value = operand(_ONE)
    rhs: Value = operand(_ONE)
    result: Value = result_(_ONE)
    constraints = (declared, elementwise)


class AddI(_Integers, name="arith.addi"):
    """lhs + rhs, modulo the width"""

    __slots__ = ()
    overflow: Opaque | None = attribute(FLAGS, default=None, key="overflowFlags")


class SubI(_Integers, name="arith.subi"):
    """lhs - rhs, modulo the width"""

    __slots__ = ()
    overflow: Opaque | None = attribute(FLAGS, default=None, key="overflowFlags")


class MulI(_Integers, name="arith.muli"):
    """lhs * rhs, modulo the width"""

    __slots__ = ()
    overflow: Opaque | None = attribute(FLAGS, default=None, key="overflowFlags")


class DivSI(_Integers, name="arith.divsi"):
    """lhs / rhs of signed integers, toward zero; undefined for rhs 0, and where the quotient overflows"""

    __slots__ = ()
    exact: object = attribute(default=None, key="isExact")


class DivUI(_Integers, name="arith.divui"):
    """lhs / rhs of unsigned integers, toward zero; undefined for rhs 0"""

    __slots__ = ()
    exact: object = attribute(default=None, key="isExact")


class CeilDivSI(_Integers, name="arith.ceildivsi"):
    """lhs / rhs of signed integers, rounded up; undefined as divsi"""

    __slots__ = ()


class CeilDivUI(_Integers, name="arith.ceildivui"):
    """lhs / rhs of unsigned integers, rounded up; undefined for rhs 0"""

    __slots__ = ()


class FloorDivSI(_Integers, name="arith.floordivsi"):
    """lhs / rhs of signed integers, rounded down; undefined as divsi"""

    __slots__ = ()


class RemSI(_Integers, name="arith.remsi"):
    """what signed division toward zero leaves, with the sign of lhs; undefined for rhs 0"""

    __slots__ = ()


class RemUI(_Integers, name="arith.remui"):
    """what unsigned division leaves; undefined for rhs 0"""

    __slots__ = ()


class AndI(_Integers, name="arith.andi"):
    """bits that both have"""

    __slots__ = ()


class OrI(_Integers, name="arith.ori"):
    """bits that one of them has"""

    __slots__ = ()


class XOrI(_Integers, name="arith.xori"):
    """bits that differ"""

    __slots__ = ()


class ShLI(_Integers, name="arith.shli"):
    """lhs * 2^rhs, modulo the width; poison where rhs, unsigned, is the width or more"""

    __slots__ = ()
    overflow: Opaque | None = attribute(FLAGS, default=None, key="overflowFlags")


class ShRSI(_Integers, name="arith.shrsi"):
    """lhs / 2^rhs of a signed lhs, rounded down; poison where rhs, unsigned, is the width or more"""

    __slots__ = ()
    exact: object = attribute(default=None, key="isExact")


class ShRUI(_Integers, name="arith.shrui"):
    """lhs / 2^rhs of an unsigned lhs, rounded down; poison where rhs, unsigned, is the width or more"""

    __slots__ = ()
    exact: object = attribute(default=None, key="isExact")


class MaxSI(_Integers, name="arith.maxsi"):
    """the greater of signed integers"""

    __slots__ = ()


class MaxUI(_Integers, name="arith.maxui"):
    """the greater of unsigned integers"""

    __slots__ = ()


class MinSI(_Integers, name="arith.minsi"):
    """the lesser of signed integers"""

    __slots__ = ()


class MinUI(_Integers, name="arith.minui"):
    """the lesser of unsigned integers"""

    __slots__ = ()
