"""MLIR's `arith`: arithmetic, comparisons and conversions of scalars and, element by element, of tensors."""

from __future__ import annotations

from typing import Final

from tflq.dialects.constraints import (
    BOOLEAN,
    FIXED,
    FLAGS,
    FLOATS,
    ONE_FLOAT,
    ONE_INTEGER,
    SIGNLESS,
    WORD,
    Elementwise,
    Flagged,
    OfFloat,
    OfTwoFloats,
    one_shape,
)
from tflq.dialects.declare import INT, Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.ir.attributes import Opaque
from tflq.ir.ops import Value
from tflq.ir.types import BareType, index
from tflq.ir.verifier import constraint

# Conversions between element types.


def _widths(op: Operator) -> tuple[int, int]:
    """Widths of operand and result in bits; a boolean is one bit."""
    source, target = (value.type.storage for value in (op.operand(0), op.result))
    return (1 if source.kind == "bool" else source.bits), (1 if target.kind == "bool" else target.bits)


@constraint("the result must be wider than the operand")
def _widens(op: Operator) -> bool:
    source, target = _widths(op)
    return source < target


@constraint("the result must be narrower than the operand")
def _narrows(op: Operator) -> bool:
    source, target = _widths(op)
    return source > target


@constraint("the result must be as wide as the operand")
def _as_wide(op: Operator) -> bool:
    source, target = _widths(op)
    return source == target


@constraint("one of operand and result must be of index, the other of an integer")
def _one_index(op: Operator) -> bool:
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


COMPARE_FLOAT: Final = tuple("false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split())
"""The tests of arith.cmpf, by the number that its attribute `predicate` holds."""
COMPARE_INTEGER: Final = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


@constraint("'predicate' must be one of the 16 of arith.cmpf, from 0 (false) to 15 (true)")
def _predicate_f(op: CmpF) -> bool:
    return 0 <= op.predicate < len(COMPARE_FLOAT)


@constraint("'predicate' must be one of the 10 of arith.cmpi, from 0 (eq) to 9 (uge)")
def _predicate_i(op: CmpI) -> bool:
    return 0 <= op.predicate < len(COMPARE_INTEGER)


@constraint("the values and the result must have one type, and the condition must be one i1, or one for each element")
def _chosen(op: Select) -> bool:
    types = {value.type.element for value in (op.true_value, op.false_value, op.result)}
    same = len(types) == 1 and one_shape(op.true_value, op.false_value, op.result)
    one = isinstance(op.condition.type, BareType)
    return same and (one or one_shape(op.condition, op.result))


class CmpI(Elementwise, name="arith.cmpi"):
    """Whether two integers compare as `predicate` says (`COMPARE_INTEGER`): signed (s), unsigned (u)."""

    lhs: Value = operand(ONE_INTEGER)
    rhs: Value = operand(ONE_INTEGER)
    result: Value = result_(BOOLEAN)
    predicate: int = attribute(INT)
    constraints = (*Elementwise.constraints, _predicate_i)


class CmpF(Flagged, name="arith.cmpf"):
    """Whether two floats compare as `predicate` says (`COMPARE_FLOAT`): neither is NaN, and (o); one is NaN, or (u)."""

    lhs: Value = operand(ONE_FLOAT)
    rhs: Value = operand(ONE_FLOAT)
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

    lhs: Value = operand(ONE_INTEGER)
    rhs: Value = operand(ONE_INTEGER)
    low: Value = result_(ONE_INTEGER)
    high: Value = result_(ONE_INTEGER)


class AddUIExtended(Elementwise, name="arith.addui_extended"):
    """sum = lhs + rhs modulo the width, overflow = whether that is not the sum of the unsigned integers"""

    lhs: Value = operand(ONE_INTEGER)
    rhs: Value = operand(ONE_INTEGER)
    sum: Value = result_(ONE_INTEGER)
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

    lhs: Value = operand(ONE_INTEGER)
    rhs: Value = operand(ONE_INTEGER)
    result: Value = result_(ONE_INTEGER)


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
