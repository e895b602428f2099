"""Attributes and constant operands that say where or how many: zero strides, axes outside the rank, bad permutations.

Source: the Prepare functions of tflite/kernels, by way of the traits in `schema/tfl.toml`. An attribute that is
missing because its options table is missing is 0 for an interpreter, and so it is here.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Final

import numpy as np

from tflq.flatbuffer.layout import options_of, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tflq.flatbuffer.verify_notes import Site
    from tflq.ir.core import Value

    Check = Callable[[Site, tuple[str, ...]], None]

__all__ = ["CHECKS", "verify_options"]

_MOST: Final = 1 << 16
"""The largest stride, dilation, filter or block: products of two with a dim still fit an int32 or nearly so."""


def verify_options(site: Site) -> None:
    """The options table is that of the operator, or is left out where an operator can do without."""
    op = site.op
    if "options" not in op.info or op.name == "tfl.custom":
        return
    given = op.info["options"]
    expected = options_of(op.name.removeprefix("tfl.").upper())
    if given is not None:
        site.fail(f"has {given} where {expected or 'no options'} belongs")
    if expected is not None and table(expected).fields and not any(t.name == "spare" for t in site.schema.traits):
        site.warn(f"has no {expected}; its attributes are taken to be 0")


def _positive(site: Site, names: tuple[str, ...]) -> None:
    for name in names:
        value = site.attribute(name)
        if value <= 0:
            site.fail(f"{name} is {value}, not positive")
        if value > _MOST:
            site.fail(f"{name} is {value}, more than a kernel can count with")


def _finite(site: Site, names: tuple[str, ...]) -> None:
    for name in names:
        value = site.attribute(name)
        if not isfinite(value):
            site.fail(f"{name} is {value}, not a finite number")


def _exclusive(site: Site, names: tuple[str, ...]) -> None:
    if all(site.attribute(name) for name in names):
        site.fail(f"{' and '.join(names)} exclude each other")


def _ignored(site: Site, names: tuple[str, ...]) -> None:
    for name in names:
        value = site.attribute(name)
        if value <= 0:
            site.warn(f"{name} is {value}; interpreters disregard it and count channels")


def _axis(site: Site, arguments: tuple[str, ...]) -> None:
    name, of, *more = arguments
    value = site.value(of)
    if value is None or value.type.rank is None:
        return
    rank = value.type.rank + len(more)
    axis = site.attribute(name)
    if not -rank <= axis < max(rank, 1):
        site.fail(f"{name} {axis} is not an axis of rank {rank} ('{value.name}')")


def _constant(site: Site, name: str) -> np.ndarray | None:
    """A constant operand's elements, None if it is left out, not constant or not stored element by element."""
    value: Value | None = site.value(name)
    if value is None or not value.is_constant or not value.type.storage.is_integer or "sparsity" in value.info:
        return None
    return value.array


def _axes(site: Site, arguments: tuple[str, ...]) -> None:
    constant, of = arguments
    axes, value = _constant(site, constant), site.value(of)
    if axes is None or value is None or value.type.rank is None:
        return
    rank = value.type.rank
    bad = (axes < -rank) | (axes >= max(rank, 1))
    if bad.any():
        site.fail(f"{constant} {axes[bad].flat[0]} is not an axis of rank {rank} ('{value.name}')")


def _permutation(site: Site, arguments: tuple[str, ...]) -> None:
    constant, of = arguments
    order, value = _constant(site, constant), site.value(of)
    if order is None or value is None or value.type.rank is None:
        return
    rank = value.type.rank
    counted = np.where(order < 0, order + rank, order)
    if sorted(counted.reshape(-1).tolist()) != list(range(rank)):
        listed = order.reshape(-1)[:12].tolist()
        site.fail(f"{constant} {listed} is not a permutation of {rank} dims ('{value.name}')")


def _natural(site: Site, names: tuple[str, ...]) -> None:
    for name in names:
        values = _constant(site, name)
        if values is not None and values.size and values.min() < 0:
            site.fail(f"{name} has the negative element {values.min()}")


def _nonzero(site: Site, names: tuple[str, ...]) -> None:
    for name in names:
        values = _constant(site, name)
        if values is not None and not values.all():
            site.fail(f"{name} has an element 0")


def _index(site: Site, arguments: tuple[str, ...]) -> None:
    constant, of, attribute = arguments
    indices, value = _constant(site, constant), site.value(of)
    if indices is None or value is None or not value.type.shape or not indices.size:
        return
    dim = value.type.shape[site.attribute(attribute)]
    if indices.min() < 0 or (dim is not None and indices.max() >= dim):
        bad = indices.min() if indices.min() < 0 else indices.max()
        site.fail(f"{constant} has {bad}, outside the {dim if dim is not None else 'unknown'} of '{value.name}'")


def _count(site: Site, arguments: tuple[str, ...]) -> None:
    attribute, what = arguments
    values = site.op.results if what == "results" else site.op.operands
    stated = site.attribute(attribute)
    if stated != len(values):
        site.fail(f"{attribute} is {stated}, but there are {len(values)} {what}")


CHECKS: Final[dict[str, Check]] = {
    "positive": _positive,
    "finite": _finite,
    "exclusive": _exclusive,
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
