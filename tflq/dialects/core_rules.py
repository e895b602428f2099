"""What ops of MLIR's core dialects (arith, math, tensor, linalg, shape, func) share: element types, and constraints on
them, those of MLIR's own verifiers.

Integers are signless, and of any width. A value is a scalar (`BareType`) or a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from tflq.dialects.declare import FLOAT, Kind, OneOf, Operator, Slot, Types, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.dialects.stablehlo.rules import agree
from tflq.ir.attributes import Opaque
from tflq.ir.core import Value
from tflq.ir.print_types import type_text
from tflq.ir.types import BareType, i1, i2, i4, i8, i16, i32, i64, index
from tflq.ir.verifier import Check

FIXED: Final = Types(i1, i2, i4, i8, i16, i32, i64, widths=("int",), text="a signless integer")
"""Signless integers, of any width."""
SIGNLESS: Final = Types(FIXED, index, text="a signless integer or index")
"""Signless integers of any width, and index."""
FLOATS: Final = Types(FLOAT, widths=("float",), text="a float")
BOOLEAN: Final = Types(i1)
INDEX: Final = Types(index)
WORD: Final = Types(SIGNLESS, FLOATS, text="a signless integer, index or a float")

FLAGS: Final = Kind("flags", lambda value: isinstance(value, Opaque))
"""`#arith.fastmath<nnan>`, `#arith.overflow<nsw>`: what the op may take for granted. No evaluator needs them."""


def _slotted(op: Operator) -> Iterator[tuple[Slot, Value]]:
    for slot in (*op.operand_slots, *op.result_slots):
        for value in slot.values(op):
            yield slot, value


def elementwise(op: Any) -> str | None:
    """operands and results must have the same shape: all are scalars, or all are tensors whose shapes agree"""
    return None if one_shape(*op.tensors) else elementwise.__doc__


def one_shape(*values: Value) -> bool:
    """Whether values are all scalars, or tensors whose shapes agree."""
    types = [value.type for value in values]
    if len({isinstance(type, BareType) for type in types}) > 1:
        return False
    shapes = [type.shape for type in types]
    return all(agree(one, other) for place, one in enumerate(shapes) for other in shapes[place + 1 :])


def scalars(*names: str) -> Check:
    """The constraint that the values of these slots are scalars, no tensors."""

    def check(op: Any) -> str | None:
        for slot, value in _slotted(op):
            if slot.name in names and not isinstance(value.type, BareType):
                return f"'{slot.name}' must be a scalar, and is {type_text(value.type)}"
        return None

    return check


def all_tensors(*names: str) -> Check:
    """The constraint that the values of these slots are tensors."""

    def check(op: Any) -> str | None:
        for slot, value in _slotted(op):
            if slot.name in names and isinstance(value.type, BareType):
                return f"'{slot.name}' must be a tensor, and is {type_text(value.type)}"
        return None

    return check


# Elementwise ops of arith and math.


_ONE = OneOf(FLOATS)


class Elementwise(Operator):
    """Element by element."""

    constraints: ClassVar[tuple[Check, ...]] = (declared, elementwise)


class Flagged(Elementwise):
    """Of floats, with flags."""

    fastmath: Opaque | None = attribute(FLAGS, default=None)


class OfFloat(Flagged):
    """Of one float."""

    input: Value = operand(_ONE)
    result: Value = result_(_ONE)


class OfTwoFloats(Flagged):
    """Of two floats."""

    lhs: Value = operand(_ONE)
    rhs: Value = operand(_ONE)
    result: Value = result_(_ONE)
