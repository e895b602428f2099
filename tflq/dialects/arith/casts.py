"""Conversions between element types."""

from __future__ import annotations

from tflq.dialects.core_rules import FIXED, FLAGS, FLOATS, SIGNLESS, WORD, elementwise
from tflq.dialects.declare import Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.ir.attributes import Opaque
from tflq.ir.core import Value
from tflq.ir.op_checks import constraint
from tflq.ir.types import index

__all__ = [
    "Bitcast",
    "ExtF",
    "ExtSI",
    "ExtUI",
    "FPToSI",
    "FPToUI",
    "IndexCast",
    "IndexCastUI",
    "SIToFP",
    "TruncF",
    "TruncI",
    "UIToFP",
]


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


class ExtSI(Operator, name="arith.extsi"):
    """the signed integer in a wider type"""

    __slots__ = ()
    input: Value = operand(FIXED)
    output: Value = result_(FIXED)
    constraints = (declared, elementwise, _widens)


class ExtUI(Operator, name="arith.extui"):
    """the unsigned integer in a wider type"""

    __slots__ = ()
    input: Value = operand(FIXED)
    output: Value = result_(FIXED)
    constraints = (declared, elementwise, _widens)


class TruncI(Operator, name="arith.trunci"):
    """the integer modulo the width of a narrower type"""

    __slots__ = ()
    input: Value = operand(FIXED)
    output: Value = result_(FIXED)
    constraints = (declared, elementwise, _narrows)
    overflow: Opaque | None = attribute(FLAGS, default=None, key="overflowFlags")


class ExtF(Operator, name="arith.extf"):
    """the float in a wider type"""

    __slots__ = ()
    input: Value = operand(FLOATS)
    output: Value = result_(FLOATS)
    constraints = (declared, elementwise, _widens)
    fastmath: Opaque | None = attribute(FLAGS, default=None)


class TruncF(Operator, name="arith.truncf"):
    """the nearest float of a narrower type, ties to even"""

    __slots__ = ()
    input: Value = operand(FLOATS)
    output: Value = result_(FLOATS)
    constraints = (declared, elementwise, _narrows)
    fastmath: Opaque | None = attribute(FLAGS, default=None)
    rounding: int | None = attribute(default=None, key="roundingmode")


class SIToFP(Operator, name="arith.sitofp"):
    """the nearest float to a signed integer, ties to even"""

    __slots__ = ()
    input: Value = operand(FIXED)
    output: Value = result_(FLOATS)
    constraints = (declared, elementwise)


class UIToFP(Operator, name="arith.uitofp"):
    """the nearest float to an unsigned integer, ties to even"""

    __slots__ = ()
    input: Value = operand(FIXED)
    output: Value = result_(FLOATS)
    constraints = (declared, elementwise)


class FPToSI(Operator, name="arith.fptosi"):
    """the integer part, as a signed integer; poison where the type does not hold it"""

    __slots__ = ()
    input: Value = operand(FLOATS)
    output: Value = result_(FIXED)
    constraints = (declared, elementwise)


class FPToUI(Operator, name="arith.fptoui"):
    """the integer part, as an unsigned integer; poison where the type does not hold it"""

    __slots__ = ()
    input: Value = operand(FLOATS)
    output: Value = result_(FIXED)
    constraints = (declared, elementwise)


class IndexCast(Operator, name="arith.index_cast"):
    """a signed integer as an index, or an index as an integer: extended by its sign, or modulo the width"""

    __slots__ = ()
    input: Value = operand(SIGNLESS)
    output: Value = result_(SIGNLESS)
    constraints = (declared, elementwise, _one_index)


class IndexCastUI(Operator, name="arith.index_castui"):
    """as index_cast; extended by zeros"""

    __slots__ = ()
    input: Value = operand(SIGNLESS)
    output: Value = result_(SIGNLESS)
    constraints = (declared, elementwise, _one_index)


class Bitcast(Operator, name="arith.bitcast"):
    """the same bits in a type of the same width"""

    __slots__ = ()
    input: Value = operand(WORD)
    output: Value = result_(WORD)
    constraints = (declared, elementwise, _as_wide)
