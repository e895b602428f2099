"""Comparison of two values, and the choice of one of them."""

from __future__ import annotations

from typing import Final

from tflq.dialects.core_rules import BOOLEAN, FLAGS, FLOATS, SIGNLESS, elementwise, one_shape
from tflq.dialects.declare import INT, OneOf, Operator, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.ir.attributes import Opaque
from tflq.ir.core import Value
from tflq.ir.op_checks import constraint
from tflq.ir.types import BareType

__all__ = ["COMPARE_FLOAT", "COMPARE_INTEGER", "CmpF", "CmpI", "Select"]


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


class CmpI(Operator, name="arith.cmpi"):
    """Whether two integers compare as `predicate` says (`COMPARE_INTEGER`): signed (s), unsigned (u)."""

    __slots__ = ()
    lhs: Value = operand(_INTEGER)
    rhs: Value = operand(_INTEGER)
    result: Value = result_(BOOLEAN)
    predicate: int = attribute(INT)
    constraints = (declared, elementwise, _predicate_i)


class CmpF(Operator, name="arith.cmpf"):
    """Whether two floats compare as `predicate` says (`COMPARE_FLOAT`): neither is NaN, and (o); one is NaN, or (u)."""

    __slots__ = ()
    lhs: Value = operand(_FLOAT)
    rhs: Value = operand(_FLOAT)
    result: Value = result_(BOOLEAN)
    predicate: int = attribute(INT)
    fastmath: Opaque | None = attribute(FLAGS, default=None)
    constraints = (declared, elementwise, _predicate_f)


class Select(Operator, name="arith.select"):
    """true_value where the condition holds, else false_value"""

    __slots__ = ()
    condition: Value = operand(BOOLEAN)
    true_value: Value = operand()
    false_value: Value = operand()
    result: Value = result_()
    constraints = (declared, _chosen)
