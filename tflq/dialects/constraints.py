"""Constraints that several ops in text share: element types and shapes that must agree.

A constraint is a predicate with the sentence that the user reads when it does not hold (`tflq.ir.verifier`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from tflq.dialects.declare import FLOAT, Kind, OneOf, Operator, Slot, Types, attribute, operand
from tflq.dialects.declare import result as result_
from tflq.dialects.forms import declared
from tflq.ir.attributes import Opaque
from tflq.ir.ops import Op, Value
from tflq.ir.text.print_types import type_text
from tflq.ir.types import (
    BareType,
    ElementType,
    Shape,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i1,
    i2,
    i4,
    i8,
    i16,
    i32,
    i64,
    index,
)
from tflq.ir.verifier import Check, constraint


@constraint("operands and result must have the same shape")
def elementwise(op: Op) -> bool:
    return types_agree(op.tensors)


@constraint(
    "operands and result must have the same element type, or quantized ones of the same storage and expressed type"
)
def one_kind(op: Op) -> bool:
    kinds = {_kind(value.type.element) for value in op.tensors}
    return len(kinds) == 1


def _kind(element: ElementType) -> Any:
    if isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType)):
        return element.storage, element.expressed
    return element


def baseline(type: TensorType) -> Any:
    """The part of a quantized type that does not depend on its parameters: `baseline_element_type` of the
    specification."""
    element = type.element
    if isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType)):
        return element.storage, element.expressed, element.storage_min, element.storage_max
    return element


def is_per_axis(type: TensorType) -> bool:
    """Whether it has scales along an axis."""
    return isinstance(type.element, UniformQuantizedPerAxisType)


def is_per_tensor(type: TensorType) -> bool:
    """Whether it has one scale."""
    return isinstance(type.element, UniformQuantizedType)


def agree(one: Shape, other: Shape) -> bool:
    """Whether two shapes can be the same: unknown dims agree with everything."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def types_agree(values: Any) -> bool:
    """Whether the shapes of values can be the same."""
    shapes: Sequence[Shape] = [value.type.shape for value in values if isinstance(value, Value)]
    return all(agree(one, other) for index, one in enumerate(shapes) for other in shapes[index + 1 :])


def integers(op: Op, key: str, default: Sequence[int] | None = None) -> tuple[int, ...] | None:
    """A list of integers that an attribute holds, whichever of its spellings it has; None if it holds none."""
    listed = op.attributes.get(key)
    if listed is None:
        return None if default is None else tuple(default)
    array = np.asarray(listed)
    if array.ndim > 1 or (array.size and array.dtype.kind not in "iub"):
        return None
    return tuple(int(item) for item in array.reshape(-1))


# What ops of MLIR's core dialects share (arith, math, tensor, linalg, shape, func), as its own verifiers have it.
#
# Integers are signless, and of any width. A value is a scalar (`BareType`) or a tensor.


FIXED: Final = Types(i1, i2, i4, i8, i16, i32, i64, widths=("int",), text="a signless integer")
"""Signless integers, of any width."""
SIGNLESS: Final = Types(FIXED, index, text="a signless integer or index")
"""Signless integers of any width, and index."""
FLOATS: Final = Types(FLOAT, widths=("float",), text="a float")
BOOLEAN: Final = Types(i1)
INDEX: Final = Types(index)
WORD: Final = Types(SIGNLESS, FLOATS, text="a signless integer, index or a float")
ONE_INTEGER: Final = OneOf(SIGNLESS)
ONE_FLOAT: Final = OneOf(FLOATS)
"""These, the same for all values that are declared with it."""

FLAGS: Final = Kind("flags", lambda value: isinstance(value, Opaque))
"""`#arith.fastmath<nnan>`, `#arith.overflow<nsw>`: what the op may take for granted. No evaluator needs them."""


def _slotted(op: Operator) -> Iterator[tuple[Slot, Value]]:
    for slot in (*op.operand_slots, *op.result_slots):
        for value in slot.values(op):
            yield slot, value


@constraint("operands and results must have the same shape: all are scalars, or all are tensors whose shapes agree")
def of_one_shape(op: Any) -> bool:
    return one_shape(*op.tensors)


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


class Elementwise(Operator):
    """Element by element."""

    constraints: ClassVar[tuple[Check, ...]] = (declared, of_one_shape)


class Flagged(Elementwise):
    """Of floats, with flags."""

    fastmath: Opaque | None = attribute(FLAGS, default=None)


class OfFloat(Flagged):
    """Of one float."""

    input: Value = operand(ONE_FLOAT)
    result: Value = result_(ONE_FLOAT)


class OfTwoFloats(Flagged):
    """Of two floats."""

    lhs: Value = operand(ONE_FLOAT)
    rhs: Value = operand(ONE_FLOAT)
    result: Value = result_(ONE_FLOAT)
