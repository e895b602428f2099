"""Arithmetic of floats, each op rounded once, to the nearest value of the type, ties to even."""

from __future__ import annotations

from tflq.dialects.core_floats import OfFloat, OfTwoFloats

__all__ = ["AddF", "DivF", "MaxNumF", "MaximumF", "MinNumF", "MinimumF", "MulF", "NegF", "RemF", "SubF"]


class AddF(OfTwoFloats, name="arith.addf"):
    """lhs + rhs"""

    __slots__ = ()


class SubF(OfTwoFloats, name="arith.subf"):
    """lhs - rhs"""

    __slots__ = ()


class MulF(OfTwoFloats, name="arith.mulf"):
    """lhs * rhs"""

    __slots__ = ()


class DivF(OfTwoFloats, name="arith.divf"):
    """lhs / rhs"""

    __slots__ = ()


class RemF(OfTwoFloats, name="arith.remf"):
    """what division of lhs by rhs, toward zero, leaves: exact, with the sign of lhs; NaN for rhs 0"""

    __slots__ = ()


class MaximumF(OfTwoFloats, name="arith.maximumf"):
    """the greater; NaN if one is NaN; 0 is greater than -0"""

    __slots__ = ()


class MinimumF(OfTwoFloats, name="arith.minimumf"):
    """the lesser; NaN if one is NaN; -0 is less than 0"""

    __slots__ = ()


class MaxNumF(OfTwoFloats, name="arith.maxnumf"):
    """the greater; the other one if one is NaN"""

    __slots__ = ()


class MinNumF(OfTwoFloats, name="arith.minnumf"):
    """the lesser; the other one if one is NaN"""

    __slots__ = ()


class NegF(OfFloat, name="arith.negf"):
    """-input, of 0 and NaN, too"""

    __slots__ = ()
