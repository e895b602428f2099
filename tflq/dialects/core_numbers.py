"""Numbers in MLIR's core dialects: `arith` and `math`, arithmetic and functions on scalars and, element by element, on
tensors; and `fxpmath`, arithmetic of real numbers as fixed-point units have it.
"""

from __future__ import annotations

from math import isnan
from typing import Any, ClassVar, Final

from tflq.dialects.constraints import (
    BOOLEAN,
    FIXED,
    FLAGS,
    FLOATS,
    SIGNLESS,
    WORD,
    Elementwise,
    Flagged,
    OfFloat,
    OfTwoFloats,
    one_shape,
)
from tflq.dialects.constraints import agree as shapes_agree
from tflq.dialects.declare import FLOAT, INT, QUANTIZED, Kind, OneOf, Operator, Types, attribute, operand, words
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.dialects.inference import Dims, Misfit, Stated, agree
from tflq.dialects.inference import text as shape_text
from tflq.dialects.traits import Broadcasts, SameShape
from tflq.ir.attributes import Opaque
from tflq.ir.core import Value
from tflq.ir.types import BareType, ElementType, ScalarType, i8, i16, i32, index
from tflq.ir.verifier import Check, constraint

# Conversions between element types.


def _widths(op: Operator) -> tuple[int, int]:
    """Those of operand and result; a boolean is one bit."""
    source, target = (value.type.storage for value in (op.operand(0), op.result))
    return (1 if source.kind == "bool" else source.bits), (1 if target.kind == "bool" else target.bits)


@constraint
def _widens(op: Operator) -> bool:
    """the result must be wider than the operand"""
    source, target = _widths(op)
    return source < target


@constraint
def _narrows(op: Operator) -> bool:
    """the result must be narrower than the operand"""
    source, target = _widths(op)
    return source > target


@constraint
def _as_wide(op: Operator) -> bool:
    """the result must be as wide as the operand"""
    source, target = _widths(op)
    return source == target


@constraint
def _one_index(op: Operator) -> bool:
    """one of operand and result must be of index, the other of an integer"""
    return (op.operand(0).type.storage == index) != (op.result.type.storage == index)


class _Widened(Elementwise):
    """An integer in a wider type."""

    input: Value = operand(FIXED)
    output: Value = result_(FIXED)
    constraints = (*Elementwise.constraints, _widens)


class ExtSI(_Widened, name="arith.extsi"):
    """the signed integer in a wider type"""


class ExtUI(_Widened, name="arith.extui"):
    """the unsigned integer in a wider type"""


class TruncI(Elementwise, name="arith.trunci"):
    """the integer modulo the width of a narrower type"""

    input: Value = operand(FIXED)
    output: Value = result_(FIXED)
    constraints = (*Elementwise.constraints, _narrows)
    overflow: Opaque | None = attribute(FLAGS, default=None, key="overflowFlags")


class ExtF(Flagged, name="arith.extf"):
    """the float in a wider type"""

    input: Value = operand(FLOATS)
    output: Value = result_(FLOATS)
    constraints = (*Elementwise.constraints, _widens)


class TruncF(Flagged, name="arith.truncf"):
    """the nearest float of a narrower type, ties to even"""

    input: Value = operand(FLOATS)
    output: Value = result_(FLOATS)
    constraints = (*Elementwise.constraints, _narrows)
    rounding: int | None = attribute(default=None, key="roundingmode")


class _ToFloat(Elementwise):
    """An integer as a float."""

    input: Value = operand(FIXED)
    output: Value = result_(FLOATS)


class SIToFP(_ToFloat, name="arith.sitofp"):
    """the nearest float to a signed integer, ties to even"""


class UIToFP(_ToFloat, name="arith.uitofp"):
    """the nearest float to an unsigned integer, ties to even"""


class _ToInteger(Elementwise):
    """A float as an integer."""

    input: Value = operand(FLOATS)
    output: Value = result_(FIXED)


class FPToSI(_ToInteger, name="arith.fptosi"):
    """the integer part, as a signed integer; poison where the type does not hold it"""


class FPToUI(_ToInteger, name="arith.fptoui"):
    """the integer part, as an unsigned integer; poison where the type does not hold it"""


class _Indexed(Elementwise):
    """An integer as an index, or an index as an integer."""

    input: Value = operand(SIGNLESS)
    output: Value = result_(SIGNLESS)
    constraints = (*Elementwise.constraints, _one_index)


class IndexCast(_Indexed, name="arith.index_cast"):
    """a signed integer as an index, or an index as an integer: extended by its sign, or modulo the width"""


class IndexCastUI(_Indexed, name="arith.index_castui"):
    """as index_cast; extended by zeros"""


class Bitcast(Elementwise, name="arith.bitcast"):
    """the same bits in a type of the same width"""

    input: Value = operand(WORD)
    output: Value = result_(WORD)
    constraints = (*Elementwise.constraints, _as_wide)


# Comparison of two values, and the choice of one of them.


_INTEGER: Final = OneOf(SIGNLESS)
_FLOAT: Final = OneOf(FLOATS)

COMPARE_FLOAT: Final = tuple("false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split())
"""What arith.cmpf tests, by the number that its attribute `predicate` holds."""
COMPARE_INTEGER: Final = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


@constraint
def _predicate_f(op: CmpF) -> bool:
    """'predicate' must be one of the 16 of arith.cmpf, from 0 (false) to 15 (true)"""
    return 0 <= op.predicate < len(COMPARE_FLOAT)


@constraint
def _predicate_i(op: CmpI) -> bool:
    """'predicate' must be one of the 10 of arith.cmpi, from 0 (eq) to 9 (uge)"""
    return 0 <= op.predicate < len(COMPARE_INTEGER)


@constraint
def _chosen(op: Select) -> bool:
    """the values and the result must have one type, and the condition must be one i1, or one for each element"""
    types = {value.type.element for value in (op.true_value, op.false_value, op.result)}
    same = len(types) == 1 and one_shape(op.true_value, op.false_value, op.result)
    one = isinstance(op.condition.type, BareType)
    return same and (one or one_shape(op.condition, op.result))


class CmpI(Elementwise, name="arith.cmpi"):
    """Whether two integers compare as `predicate` says (`COMPARE_INTEGER`): signed (s), unsigned (u)."""

    lhs: Value = operand(_INTEGER)
    rhs: Value = operand(_INTEGER)
    result: Value = result_(BOOLEAN)
    predicate: int = attribute(INT)
    constraints = (*Elementwise.constraints, _predicate_i)


class CmpF(Flagged, name="arith.cmpf"):
    """Whether two floats compare as `predicate` says (`COMPARE_FLOAT`): neither is NaN, and (o); one is NaN, or (u)."""

    lhs: Value = operand(_FLOAT)
    rhs: Value = operand(_FLOAT)
    result: Value = result_(BOOLEAN)
    predicate: int = attribute(INT)
    constraints = (*Elementwise.constraints, _predicate_f)


class Select(Operator, name="arith.select"):
    """true_value where the condition holds, else false_value"""

    condition: Value = operand(BOOLEAN)
    true_value: Value = operand()
    false_value: Value = operand()
    result: Value = result_()
    constraints = (declared, _chosen)


# Integer arithmetic whose result is wider than its operands: in two values.


class _Wide(Elementwise):
    """The whole product of two integers, in two parts of their width."""

    lhs: Value = operand(_INTEGER)
    rhs: Value = operand(_INTEGER)
    low: Value = result_(_INTEGER)
    high: Value = result_(_INTEGER)


class AddUIExtended(Elementwise, name="arith.addui_extended"):
    """sum = lhs + rhs modulo the width, overflow = whether that is not the sum of the unsigned integers"""

    lhs: Value = operand(_INTEGER)
    rhs: Value = operand(_INTEGER)
    sum: Value = result_(_INTEGER)
    overflow: Value = result_(BOOLEAN)


class MulSIExtended(_Wide, name="arith.mulsi_extended"):
    """high * 2^width + low = lhs * rhs of signed integers"""


class MulUIExtended(_Wide, name="arith.mului_extended"):
    """high * 2^width + low = lhs * rhs of unsigned integers"""


# Arithmetic of floats, each op rounded once, to the nearest value of the type, ties to even.


class AddF(OfTwoFloats, name="arith.addf"):
    """lhs + rhs"""


class SubF(OfTwoFloats, name="arith.subf"):
    """lhs - rhs"""


class MulF(OfTwoFloats, name="arith.mulf"):
    """lhs * rhs"""


class DivF(OfTwoFloats, name="arith.divf"):
    """lhs / rhs"""


class RemF(OfTwoFloats, name="arith.remf"):
    """what division of lhs by rhs, toward zero, leaves: exact, with the sign of lhs; NaN for rhs 0"""


class MaximumF(OfTwoFloats, name="arith.maximumf"):
    """the greater; NaN if one is NaN; 0 is greater than -0"""


class MinimumF(OfTwoFloats, name="arith.minimumf"):
    """the lesser; NaN if one is NaN; -0 is less than 0"""


class MaxNumF(OfTwoFloats, name="arith.maxnumf"):
    """the greater; the other one if one is NaN"""


class MinNumF(OfTwoFloats, name="arith.minnumf"):
    """the lesser; the other one if one is NaN"""


class NegF(OfFloat, name="arith.negf"):
    """-input, of 0 and NaN, too"""


# Arithmetic of two integers, modulo their width; which are signed is the op's to say.


class _Integers(Elementwise):
    """Of two integers."""

    lhs: Value = operand(_INTEGER)
    rhs: Value = operand(_INTEGER)
    result: Value = result_(_INTEGER)


class _Wrapping(_Integers):
    """Arithmetic that wraps; its flags say that it does not."""

    overflow: Opaque | None = attribute(FLAGS, default=None, key="overflowFlags")


class _Dividing(_Integers):
    """A quotient; its flag says that nothing is left over."""

    exact: object = attribute(default=None, key="isExact")


class AddI(_Wrapping, name="arith.addi"):
    """lhs + rhs, modulo the width"""


class SubI(_Wrapping, name="arith.subi"):
    """lhs - rhs, modulo the width"""


class MulI(_Wrapping, name="arith.muli"):
    """lhs * rhs, modulo the width"""


class DivSI(_Dividing, name="arith.divsi"):
    """lhs / rhs of signed integers, toward zero; undefined for rhs 0, and where the quotient overflows"""


class DivUI(_Dividing, name="arith.divui"):
    """lhs / rhs of unsigned integers, toward zero; undefined for rhs 0"""


class CeilDivSI(_Integers, name="arith.ceildivsi"):
    """lhs / rhs of signed integers, rounded up; undefined as divsi"""


class CeilDivUI(_Integers, name="arith.ceildivui"):
    """lhs / rhs of unsigned integers, rounded up; undefined for rhs 0"""


class FloorDivSI(_Integers, name="arith.floordivsi"):
    """lhs / rhs of signed integers, rounded down; undefined as divsi"""


class RemSI(_Integers, name="arith.remsi"):
    """what signed division toward zero leaves, with the sign of lhs; undefined for rhs 0"""


class RemUI(_Integers, name="arith.remui"):
    """what unsigned division leaves; undefined for rhs 0"""


class AndI(_Integers, name="arith.andi"):
    """bits that both have"""


class OrI(_Integers, name="arith.ori"):
    """bits that one of them has"""


class XOrI(_Integers, name="arith.xori"):
    """bits that differ"""


class ShLI(_Wrapping, name="arith.shli"):
    """lhs * 2^rhs, modulo the width; poison where rhs, unsigned, is the width or more"""


class ShRSI(_Dividing, name="arith.shrsi"):
    """lhs / 2^rhs of a signed lhs, rounded down; poison where rhs, unsigned, is the width or more"""


class ShRUI(_Dividing, name="arith.shrui"):
    """lhs / 2^rhs of an unsigned lhs, rounded down; poison where rhs, unsigned, is the width or more"""


class MaxSI(_Integers, name="arith.maxsi"):
    """the greater of signed integers"""


class MaxUI(_Integers, name="arith.maxui"):
    """the greater of unsigned integers"""


class MinSI(_Integers, name="arith.minsi"):
    """the lesser of signed integers"""


class MinUI(_Integers, name="arith.minui"):
    """the lesser of unsigned integers"""


# The `math` dialect.


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

    input: Value = operand(_INTEGER)
    result: Value = result_(_INTEGER)


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

    lhs: Value = operand(_INTEGER)
    rhs: Value = operand(_INTEGER)
    result: Value = result_(_INTEGER)


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

    a: Value = operand(_FLOAT)
    b: Value = operand(_FLOAT)
    c: Value = operand(_FLOAT)
    result: Value = result_(_FLOAT)


class ClampF(Flagged, name="math.clampf"):
    """value, where it is from min to max, else the nearer of the two"""

    value: Value = operand(_FLOAT)
    min: Value = operand(_FLOAT)
    max: Value = operand(_FLOAT)
    result: Value = result_(_FLOAT)


class FPowI(Flagged, name="math.fpowi"):
    """lhs^rhs of a float and a signed integer"""

    lhs: Value = operand(_FLOAT)
    rhs: Value = operand(FIXED)
    result: Value = result_(_FLOAT)


# The `fxpmath` dialect: arithmetic of real numbers as fixed-point units have it, and of the integers that carry it out.
#
# Real ops take floats and quantized types. A quantized operand is the real number that it stands for; a quantized
# result is the nearest step, half away from zero, within the storage range, where NaN counts as 0. Every real op
# clamps its result to [`clamp_min`, `clamp_max`], where these are given. The pass `raise-real-math` makes them of
# TFLite's floats, `lower-real-math` makes ops on integers of them (docs/numerics.md).
#
# Source: the quantization framework proposed for MLIR (docs/proposals.md), which names the ops; the names here are
# those of its classes without Op, in small letters.


REAL: Final = Types(FLOAT, QUANTIZED, text="a float or a quantized type")
_BOUND: Final = Kind("a float that is a number", lambda value: isinstance(value, float) and not isnan(value))


# What holds of every op.


def _inferred(op: Any) -> str | None:
    """The shape of the result must be the one that follows from the operands."""
    try:
        shape = op.follows()
    except Misfit as misfit:
        return str(misfit)
    assert not isinstance(shape, list)
    stated = op.result.type.shape
    if shapes_agree(shape, stated):
        return None
    return f"the result is {shape_text(stated)}, and {shape_text(shape)} follows from the operands"


def _expressed(element: ElementType) -> ScalarType | None:
    return element if isinstance(element, ScalarType) else getattr(element, "expressed", None)


@constraint
def _one_real(op: Operator) -> bool:
    """operands and result must be of one float type, or quantized and express it"""
    return len({_expressed(value.type.element) for value in op.tensors}) == 1


@constraint
def _ordered(op: Any) -> bool:
    """clamp_min must not be above clamp_max"""
    return op.clamp_min is None or op.clamp_max is None or bool(op.clamp_min <= op.clamp_max)


# Real numbers.


class RealMath(Operator):
    """Of real numbers; the result is clamped."""

    clamp_min: float | None = attribute(_BOUND, default=None)
    clamp_max: float | None = attribute(_BOUND, default=None)
    constraints: ClassVar[tuple[Check, ...]] = (declared, _one_real, _inferred, _ordered)


class RealBinary(RealMath):
    """Of two tensors that broadcast, element by element."""

    lhs: Value = operand(REAL)
    rhs: Value = operand(REAL)
    output: Value = result_(REAL)
    traits = (Broadcasts(lhs, rhs, output),)


class RealAddEw(RealBinary, name="fxpmath.real_add_ew"):
    """clamp(lhs + rhs)"""


class RealSubEw(RealBinary, name="fxpmath.real_sub_ew"):
    """clamp(lhs - rhs)"""


class RealMulEw(RealBinary, name="fxpmath.real_mul_ew"):
    """clamp(lhs * rhs)"""


class RealDivEw(RealBinary, name="fxpmath.real_div_ew"):
    """clamp(lhs / rhs); by 0 as IEEE 754 has it: an infinity with the sign of lhs, stored as the end of the range on
    that side, and for 0 / 0 NaN, stored as 0"""


OPCODES: Final = (
    *("IDENTITY", "TANH", "SIGMOID", "EXP", "LOG", "NEG", "RSQRT"),
    *("SIN", "SQUARE", "SQRT", "CMPZ", "CMPNZ", "CMPLZ", "CMPGZ"),
)
"""The functions of `real_unary`. The last four compare with 0 (equal, not equal, less, greater): 1.0 or 0.0."""


class RealUnary(RealMath, name="fxpmath.real_unary"):
    """clamp(f(input)), f by `opcode`; the CMP functions compare with 0 and give 1.0 or 0.0"""

    input: Value = operand(REAL)
    output: Value = result_(REAL)
    opcode: str = attribute(words(*OPCODES))
    traits = (SameShape(input, output),)


class RealMatmul(RealMath, name="fxpmath.real_matmul"):
    """clamp(sum over k of lhs[..., k] * rhs[k, n])"""

    lhs: Value = operand(REAL)
    rhs: Value = operand(REAL)
    output: Value = result_(REAL)

    def infer(self, site: Stated) -> Dims:
        return _product(site, self.operand(0), self.operand(1))


class RealMatmulBias(RealMath, name="fxpmath.real_matmul_bias"):
    """clamp(sum over k of lhs[..., k] * rhs[k, n] + bias[n])"""

    lhs: Value = operand(REAL)
    rhs: Value = operand(REAL)
    bias: Value = operand(REAL)
    output: Value = result_(REAL)

    def infer(self, site: Stated) -> Dims:
        *rows, units = _product(site, self.lhs, self.rhs)
        return (*rows, agree(units, site.dims(self.bias, 1)[0], "the bias and the columns of rhs"))


def _product(site: Stated, lhs: Value, rhs: Value) -> Dims:
    *rows, length = site.dims(lhs, least=1)
    inner, units = site.dims(rhs, 2)
    agree(length, inner, "the last dim of lhs and the rows of rhs")
    return (*rows, units)


# Integers.


_T: Final = OneOf(i8, i16, i32)


@constraint
def _exponent(op: Any) -> bool:
    """exponent must be from 0 to 31"""
    return 0 <= op.exponent <= 31


@constraint
def _held(op: Any) -> bool:
    """clamp_min and clamp_max must be integers of the element type"""
    storage = op.result.type.storage
    return all(storage.minimum <= bound <= storage.maximum for bound in (op.clamp_min, op.clamp_max))


class RoundingDivideByPot(Operator, name="fxpmath.rounding_divide_by_pot"):
    """input / 2^exponent, rounded to nearest, half away from zero"""

    input: Value = operand(_T)
    output: Value = result_(_T)
    exponent: int = attribute(INT)
    traits = (SameShape(input, output),)
    constraints = (declared, _inferred, _exponent)


class SaturatingAdd(Operator, name="fxpmath.saturating_add"):
    """clamp(lhs + rhs), the sum as if the type held it; the operands broadcast"""

    lhs: Value = operand(_T)
    rhs: Value = operand(_T)
    output: Value = result_(_T)
    clamp_min: int = attribute(INT)
    clamp_max: int = attribute(INT)
    traits = (Broadcasts(lhs, rhs, output),)
    constraints = (declared, _inferred, _ordered, _held)


class SaturatingRoundingDoublingHighMul(Operator, name="fxpmath.saturating_rounding_doubling_high_mul"):
    """lhs * rhs / 2^(w - 1) in a type of w bits, rounded to nearest, half up; the least integer times itself, which the
    type does not hold, is the greatest. The operands broadcast"""

    lhs: Value = operand(_T)
    rhs: Value = operand(_T)
    output: Value = result_(_T)
    traits = (Broadcasts(lhs, rhs, output),)
    constraints = (declared, _inferred)


class Matmul(Operator, name="fxpmath.matmul"):
    """sum over k of (lhs[..., k] - lhs_zero_point) * (rhs[k, n] - rhs_zero_point), which wraps"""

    lhs: Value = operand(i8)
    rhs: Value = operand(i8)
    output: Value = result_(i32)
    lhs_zero_point: int = attribute(INT)
    rhs_zero_point: int = attribute(INT)
    constraints = (declared, _inferred)

    def infer(self, site: Stated) -> Dims:
        return _product(site, self.lhs, self.rhs)
