"""MLIR's `math`: functions of scalars and, element by element, of tensors."""

from __future__ import annotations

from tflq.dialects.constraints import (
    BOOLEAN,
    FIXED,
    FLOATS,
    ONE_FLOAT,
    ONE_INTEGER,
    Elementwise,
    Flagged,
    OfFloat,
    OfTwoFloats,
)
from tflq.dialects.declare import operand
from tflq.dialects.declare import result as result_
from tflq.ir.ops import Value

# What kind of a number a float is.


class Question(Flagged):
    """Of one float."""

    input: Value = operand(FLOATS)
    result: Value = result_(BOOLEAN)


class IsFinite(Question, name="math.isfinite"):
    """whether it is neither infinite nor NaN"""


class IsInf(Question, name="math.isinf"):
    """whether it is infinite"""


class IsNaN(Question, name="math.isnan"):
    """whether it is NaN"""


class IsNormal(Question, name="math.isnormal"):
    """whether it is finite, not 0 and not subnormal"""


# Functions of one float. But for the square root, the last bit is not the specification's to say.


class Acos(OfFloat, name="math.acos"):
    """the arc cosine"""


class Acosh(OfFloat, name="math.acosh"):
    """the inverse hyperbolic cosine"""


class Asin(OfFloat, name="math.asin"):
    """the arc sine"""


class Asinh(OfFloat, name="math.asinh"):
    """the inverse hyperbolic sine"""


class Atan(OfFloat, name="math.atan"):
    """the arc tangent"""


class Atanh(OfFloat, name="math.atanh"):
    """the inverse hyperbolic tangent"""


class Cbrt(OfFloat, name="math.cbrt"):
    """the cube root"""


class Cos(OfFloat, name="math.cos"):
    """the cosine"""


class Cosh(OfFloat, name="math.cosh"):
    """the hyperbolic cosine"""


class Erf(OfFloat, name="math.erf"):
    """the error function"""


class Erfc(OfFloat, name="math.erfc"):
    """1 less the error function"""


class Exp(OfFloat, name="math.exp"):
    """e^input"""


class Exp2(OfFloat, name="math.exp2"):
    """2^input"""


class ExpM1(OfFloat, name="math.expm1"):
    """e^input - 1"""


class Log(OfFloat, name="math.log"):
    """the natural logarithm"""


class Log10(OfFloat, name="math.log10"):
    """the logarithm to base 10"""


class Log1p(OfFloat, name="math.log1p"):
    """the natural logarithm of 1 + input"""


class Log2(OfFloat, name="math.log2"):
    """the logarithm to base 2"""


class Rsqrt(OfFloat, name="math.rsqrt"):
    """1 / the square root"""


class Sin(OfFloat, name="math.sin"):
    """the sine"""


class Sinh(OfFloat, name="math.sinh"):
    """the hyperbolic sine"""


class Sqrt(OfFloat, name="math.sqrt"):
    """the square root, rounded once"""


class Tan(OfFloat, name="math.tan"):
    """the tangent"""


class Tanh(OfFloat, name="math.tanh"):
    """the hyperbolic tangent"""


# Functions of integers.


class _Bits(Elementwise):
    """Of one integer."""

    input: Value = operand(ONE_INTEGER)
    result: Value = result_(ONE_INTEGER)


class AbsI(_Bits, name="math.absi"):
    """|input| of a signed integer, modulo the width: the least one stays"""


class CtLz(_Bits, name="math.ctlz"):
    """how many bits are 0 above the highest that is 1"""


class CtPop(_Bits, name="math.ctpop"):
    """how many bits are 1"""


class CtTz(_Bits, name="math.cttz"):
    """how many bits are 0 below the lowest that is 1"""


class IPowI(Elementwise, name="math.ipowi"):
    """lhs^rhs of signed integers, modulo the width; the integer part where rhs is negative"""

    lhs: Value = operand(ONE_INTEGER)
    rhs: Value = operand(ONE_INTEGER)
    result: Value = result_(ONE_INTEGER)


# Floats rounded to whole ones, and what else is exact of one float.


class AbsF(OfFloat, name="math.absf"):
    """|input|"""


class Ceil(OfFloat, name="math.ceil"):
    """rounded up"""


class Floor(OfFloat, name="math.floor"):
    """rounded down"""


class Round(OfFloat, name="math.round"):
    """rounded to the nearest, halves away from zero"""


class RoundEven(OfFloat, name="math.roundeven"):
    """rounded to the nearest, halves to even"""


class Trunc(OfFloat, name="math.trunc"):
    """rounded toward zero"""


# Functions of several floats, and of a float and an integer.


class Atan2(OfTwoFloats, name="math.atan2"):
    """the angle of the point (rhs, lhs)"""


class CopySign(OfTwoFloats, name="math.copysign"):
    """|lhs| with the sign of rhs"""


class PowF(OfTwoFloats, name="math.powf"):
    """lhs^rhs"""


class Fma(Flagged, name="math.fma"):
    """a * b + c, rounded once"""

    a: Value = operand(ONE_FLOAT)
    b: Value = operand(ONE_FLOAT)
    c: Value = operand(ONE_FLOAT)
    result: Value = result_(ONE_FLOAT)


class ClampF(Flagged, name="math.clampf"):
    """value, where it is from min to max, else the nearer of the two"""

    value: Value = operand(ONE_FLOAT)
    min: Value = operand(ONE_FLOAT)
    max: Value = operand(ONE_FLOAT)
    result: Value = result_(ONE_FLOAT)


class FPowI(Flagged, name="math.fpowi"):
    """lhs^rhs of a float and a signed integer"""

    lhs: Value = operand(ONE_FLOAT)
    rhs: Value = operand(FIXED)
    result: Value = result_(ONE_FLOAT)
