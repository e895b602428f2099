"""What ops of MLIR's core dialects (arith, math, tensor, linalg, shape, func) share: element types, and the constraints
on them, which are those of MLIR's own verifiers.

Integers are signless, and of any width. A value is a scalar (`BareType`) or a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from tflq.dialects.declare import FLOAT, Kind, Operator, Slot, Types
from tflq.dialects.stablehlo.rules import agree
from tflq.ir.attributes import Opaque
from tflq.ir.core import Value
from tflq.ir.print_types import type_text
from tflq.ir.types import BareType, ElementType, ScalarType, i1, i2, i4, i8, i16, i32, i64, index

__all__ = [
    *("BOOLEAN", "FIXED", "FLAGS", "FLOATS", "INDEX", "SIGNLESS", "WORD", "Check"),
    *("all_tensors", "constraint", "declared", "elementwise", "one_shape", "scalars"),
]

Check: TypeAlias = Callable[[Any], str | None]
"""The reason why an op is invalid, or None."""

FIXED: Final = Types(i1, i2, i4, i8, i16, i32, i64)
"""Signless integers, of any width."""
SIGNLESS: Final = Types(FIXED, index)
"""Signless integers of any width, and index."""
FLOATS: Final = FLOAT
BOOLEAN: Final = Types(i1)
INDEX: Final = Types(index)
WORD: Final = Types(SIGNLESS, FLOATS)

FLAGS: Final = Kind("flags", lambda value: isinstance(value, Opaque))
"""`#arith.fastmath<nnan>`, `#arith.overflow<nsw>`: what the op may take for granted. No evaluator needs them."""


def constraint(predicate: Callable[[Any], bool]) -> Check:
    """The check whose reason is the docstring of a predicate that does not hold."""
    sentence: Final = " ".join((predicate.__doc__ or "").split())
    return lambda op: None if predicate(op) else sentence


def declared(op: Any) -> str | None:
    """Operands, results and attributes are as the class declares them: their number, element types, kinds."""
    for kind, slots, values in (
        ("operand", op.operand_slots, op.operands),
        ("result", op.result_slots, op.results),
    ):
        if (reason := _counted(kind, slots, values)) is not None:
            return reason
    bound: dict[int, str] = {}
    for slot, value in _slotted(op):
        if slot.types and (reason := _typed(slot, value, bound)) is not None:
            return reason
    for attribute in op.attribute_slots.values():
        if attribute.key not in op.attributes:
            if attribute.required:
                return f"it has no attribute '{attribute.key}'"
            continue
        held = op.attributes[attribute.key]
        if attribute.kind is not None and not attribute.kind.holds(held):
            return f"attribute '{attribute.key}' is {held!r}, not {attribute.kind}"
    return None


def _counted(kind: str, slots: Sequence[Slot], values: Sequence[Value | None]) -> str | None:
    """What is wrong with the number of operands or results."""
    fewest = sum(not slot.variadic for slot in slots)
    many = any(slot.variadic for slot in slots)
    if len(values) < fewest or (len(values) > fewest and not many):
        expected = f"{fewest} or more" if many else str(fewest)
        return f"it has {len(values)} {kind}(s), and {expected} are declared"
    return f"a {kind} is left out" if None in values else None


def _slotted(op: Operator) -> Iterator[tuple[Slot, Value]]:
    for slot in (*op.operand_slots, *op.result_slots):
        for value in slot.values(op):
            yield slot, value


def _typed(slot: Slot, value: Value, bound: dict[int, str]) -> str | None:
    element, allowed = value.type.element, slot.types[0]
    if not _admits(allowed, element):
        return f"'{slot.name}' is {type_text(value.type)}, not of {_said(allowed)}"
    name = str(element)
    if allowed.bound and bound.setdefault(id(allowed), name) != name:
        return f"'{slot.name}' is of {name}, not of {bound[id(allowed)]} like the other values of one type"
    return None


def _admits(allowed: Types, element: ElementType) -> bool:
    """Whether an element type is one of those, which stand for those of other widths, too."""
    if not isinstance(element, ScalarType):
        return False
    if element.name in allowed.names:
        return True
    if element.kind == "int":
        return FIXED.names <= allowed.names
    return element.is_float and FLOATS.names <= allowed.names


def _said(allowed: Types) -> str:
    listed = ((FLOATS, "floats"), (SIGNLESS, "signless integers or index"), (FIXED, "signless integers"))
    words: list[str] = []
    rest = set(allowed.names)
    for types, text in listed:
        if types.names <= rest:
            words.append(text)
            rest -= types.names
    return " or ".join([*words, *sorted(rest)])


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
