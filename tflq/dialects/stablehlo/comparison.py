"""Comparison and choice, element by element."""

from __future__ import annotations

import re

from tflq.dialects.declare import Operator, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.declared import declared
from tflq.dialects.stablehlo.rules import agree, elementwise
from tflq.ir.core import Value
from tflq.ir.op_checks import constraint
from tflq.ir.types import i1

__all__ = ["Clamp", "Compare", "Select"]

_DIRECTION = re.compile(r"EQ|NE|GE|GT|LE|LT")


@constraint
def _compared(op: Compare) -> bool:
    """the operands must have the same element type, and the result is of i1"""
    return op.lhs.type.element == op.rhs.type.element and op.result.type.element == i1


@constraint
def _directed(op: Compare) -> bool:
    """'comparison_direction' must be one of EQ, NE, GE, GT, LE and LT"""
    return bool(op.direction)


@constraint
def _chosen(op: Select) -> bool:
    """'pred' must be of i1, a scalar or of the shape of the others, which must have the type of the result"""
    made = op.result.type
    same = op.on_true.type.element == op.on_false.type.element == made.element
    shapes = agree(op.on_true.type.shape, made.shape) and agree(op.on_false.type.shape, made.shape)
    return (
        same
        and shapes
        and op.pred.type.element == i1
        and (op.pred.type.rank == 0 or agree(op.pred.type.shape, made.shape))
    )


@constraint
def _bounded(op: Clamp) -> bool:
    """'min' and 'max' must have the operand's element type, and be scalars or of its shape"""
    given, made = op.input.type, op.result.type
    bounds = all(b.rank == 0 or agree(b.shape, given.shape) for b in (op.min.type, op.max.type))
    return bounds and agree(given.shape, made.shape) and op.min.type.element == op.max.type.element == given.element


class Compare(Operator, name="stablehlo.compare"):
    """Whether two values compare as `comparison_direction` says."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    result: Value = result_()
    constraints = (declared, elementwise, _compared, _directed)

    @property
    def direction(self) -> str:
        """EQ, NE, GE, GT, LE or LT; "" if it is not stated."""
        stated = self.attributes.get("comparison_direction")
        found = _DIRECTION.search(str(getattr(stated, "text", stated)).replace("comparison_direction", ""))
        return found[0] if found else ""


class Select(Operator, name="stablehlo.select"):
    """One of two values."""

    __slots__ = ()
    pred: Value = operand()
    on_true: Value = operand()
    on_false: Value = operand()
    result: Value = result_()
    constraints = (declared, _chosen)


class Clamp(Operator, name="stablehlo.clamp"):
    """A value within bounds."""

    __slots__ = ()
    min: Value = operand()
    input: Value = operand()
    max: Value = operand()
    result: Value = result_()
    constraints = (declared, _bounded)
