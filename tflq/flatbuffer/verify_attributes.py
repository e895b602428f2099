"""Attributes and constant operands that say where or how many: zero strides, axes outside the rank, bad permutations.

Source: the Prepare functions of tflite/kernels, by way of the traits in `schema/tfl.toml`. An attribute that is
missing because its options table is missing is 0 for an interpreter, and so it is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tflq.flatbuffer.layout import options_of, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tflq.flatbuffer.verify_notes import Notes
    from tflq.flatbuffer.verify_schema import OpSchema
    from tflq.ir.core import Op, Value

    Check = Callable[[Op, OpSchema, tuple[str, ...], Notes], None]

__all__ = ["CHECKS", "verify_options"]


def verify_options(op: Op, schema: OpSchema, notes: Notes) -> None:
    """The options table is that of the operator, or is left out where an operator can do without."""
    if "options" not in op.info or op.name == "tfl.custom":
        return
    given = op.info["options"]
    expected = options_of(op.name.removeprefix("tfl.").upper())
    if given is not None:
        notes.fail_op(op, f"has {given} where {expected or 'no options'} belongs")
    if expected is not None and table(expected).fields and not any(t.name == "spare" for t in schema.traits):
        notes.warn_op(op, f"has no {expected}; its attributes are taken to be 0")


def _positive(op: Op, schema: OpSchema, names: tuple[str, ...], notes: Notes) -> None:
    for name in names:
        value = op.attributes.get(name, 0)
        if value <= 0:
            notes.fail_op(op, f"{name} is {value}, not positive")


def _ignored(op: Op, schema: OpSchema, names: tuple[str, ...], notes: Notes) -> None:
    for name in names:
        value = op.attributes.get(name, 0)
        if value <= 0:
            notes.warn_op(op, f"{name} is {value}; interpreters disregard it and count channels")


def _axis(op: Op, schema: OpSchema, arguments: tuple[str, ...], notes: Notes) -> None:
    name, of, *more = arguments
    value = schema.value(op, of)
    if value is None or value.type.rank is None:
        return
    rank = value.type.rank + len(more)
    axis = op.attributes.get(name, 0)
    if not -rank <= axis < max(rank, 1):
        notes.fail_op(op, f"{name} {axis} is not an axis of rank {rank} ('{value.name}')")


def _constant(op: Op, schema: OpSchema, name: str) -> np.ndarray | None:
    """A constant operand's elements, None if it is left out, not constant or not stored element by element."""
    value: Value | None = schema.value(op, name)
    if value is None or not value.is_constant or not value.type.storage.is_integer or "sparsity" in value.info:
        return None
    return value.array


def _axes(op: Op, schema: OpSchema, arguments: tuple[str, ...], notes: Notes) -> None:
    constant, of = arguments
    axes, value = _constant(op, schema, constant), schema.value(op, of)
    if axes is None or value is None or value.type.rank is None:
        return
    rank = value.type.rank
    bad = (axes < -rank) | (axes >= max(rank, 1))
    if bad.any():
        notes.fail_op(op, f"{constant} {axes[bad].flat[0]} is not an axis of rank {rank} ('{value.name}')")


def _permutation(op: Op, schema: OpSchema, arguments: tuple[str, ...], notes: Notes) -> None:
    constant, of = arguments
    order, value = _constant(op, schema, constant), schema.value(op, of)
    if order is None or value is None or value.type.rank is None:
        return
    if sorted(order.reshape(-1).tolist()) != list(range(value.type.rank)):
        listed = order.reshape(-1)[:12].tolist()
        notes.fail_op(op, f"{constant} {listed} is not a permutation of {value.type.rank} dims ('{value.name}')")


def _natural(op: Op, schema: OpSchema, names: tuple[str, ...], notes: Notes) -> None:
    for name in names:
        values = _constant(op, schema, name)
        if values is not None and values.size and values.min() < 0:
            notes.fail_op(op, f"{name} has the negative element {values.min()}")


def _nonzero(op: Op, schema: OpSchema, names: tuple[str, ...], notes: Notes) -> None:
    for name in names:
        values = _constant(op, schema, name)
        if values is not None and not values.all():
            notes.fail_op(op, f"{name} has an element 0")


def _index(op: Op, schema: OpSchema, arguments: tuple[str, ...], notes: Notes) -> None:
    constant, of, attribute = arguments
    indices, value = _constant(op, schema, constant), schema.value(op, of)
    if indices is None or value is None or not value.type.shape or not indices.size:
        return
    dim = value.type.shape[op.attributes.get(attribute, 0)]
    if indices.min() < 0 or (dim is not None and indices.max() >= dim):
        bad = indices.min() if indices.min() < 0 else indices.max()
        notes.fail_op(
            op, f"{constant} has {bad}, outside the {dim if dim is not None else 'unknown'} of '{value.name}'"
        )


def _count(op: Op, schema: OpSchema, arguments: tuple[str, ...], notes: Notes) -> None:
    attribute, what = arguments
    values = op.results if what == "results" else op.operands
    stated = op.attributes.get(attribute, 0)
    if stated != len(values):
        notes.fail_op(op, f"{attribute} is {stated}, but there are {len(values)} {what}")


CHECKS: Final[dict[str, Check]] = {
    "positive": _positive,
    "ignored": _ignored,
    "axis": _axis,
    "axes": _axes,
    "permutation": _permutation,
    "natural": _natural,
    "nonzero": _nonzero,
    "index": _index,
    "count": _count,
}
"""Trait -> its check; a check raises for a defect."""
