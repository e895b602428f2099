"""What a shape rule sees of one operator, and the registry of rules.

    @shape("tfl.conv_2d")
    def conv_2d(site: Site) -> Shape:
        ...

A rule answers the result's shape, or a list with one for each result. A dim is None where it is not known, a shape is
None where not even its rank is. `NotInferred` says why nothing can be said, `Misfit` why an interpreter refuses the
operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tflq.ir.core import Op, Value
from tflq.ir.types import Shape
from tflq.registering import Registry
from tflq.shapes.known import Known

__all__ = [
    "Caller",
    "Dims",
    "Misfit",
    "NotInferred",
    "Rule",
    "Site",
    "agree",
    "product",
    "shape",
    "text",
]

Dims: TypeAlias = tuple[int | None, ...]
Rule: TypeAlias = "Callable[[Site], Shape | list[Shape]]"
Caller: TypeAlias = Callable[
    [int, Sequence[Shape], Sequence[Known | None]], tuple[Sequence[Shape], Sequence[Known | None]]
]
"""Infers a function of the module for given arguments: shapes and known elements of its results."""

shape: Final[Registry[Rule]] = Registry(
    "tflq.shapes",
    {
        "tfl.activation": ("elementwise",),
        "tfl.arithmetic": ("elementwise",),
        "tfl.bits": ("elementwise",),
        "tfl.casts": ("elementwise",),
        "tfl.comparison": ("elementwise", "indexing"),
        "tfl.control": ("control",),
        "tfl.convolution": ("windows",),
        "tfl.indexing": ("elementwise", "indexing", "products", "slicing"),
        "tfl.matmul": ("products",),
        "tfl.movement": ("elementwise", "indexing", "movement", "slicing"),
        "tfl.normalization": ("elementwise",),
        "tfl.pooling": ("indexing", "windows"),
        "tfl.random": ("indexing", "products"),
        "tfl.recurrent": ("recurrent",),
        "tfl.reduction": ("elementwise", "indexing", "products"),
        "tfl.resize": ("windows",),
        "tfl.shape": ("indexing",),
        "tfl.signal": ("elementwise", "products"),
        "tfl.stablehlo": ("control", "elementwise", "slicing", "stablehlo"),
        "tfl.state": ("indexing", "state"),
        "tfl.unary": ("elementwise",),
    },
)
"""The rule of each operator."""


class NotInferred(Exception):  # noqa: N818 - an answer of a rule
    """Result shapes do not follow from the operands; the message is a clause that says why."""


class Misfit(NotInferred):
    """No interpreter runs the operator on operands of these shapes."""


@dataclass
class Site:
    """An operator with the shapes of its operands and what is known of their elements."""

    op: Op
    shapes: Sequence[Shape]
    known: Sequence[Known | None]
    call: Caller
    results: Sequence[Known | None] = ()
    """Known elements of the results, where a rule finds them on its way."""

    @property
    def attributes(self) -> dict[str, Any]:
        return self.op.attributes

    def has(self, index: int) -> bool:
        """Whether an optional operand is there."""
        return self.op.optional(index) is not None

    def value(self, index: int) -> Value:
        found = self.op.optional(index)
        if found is None:
            raise NotInferred(f"operand {index} is missing")
        return found

    def dims(self, index: int = 0, rank: int | None = None, least: int = 0) -> Dims:
        """The shape of an operand, of a rank if that is given, else of so many dims at least."""
        value = self.value(index)
        found = self.shapes[index]
        if found is None:
            raise NotInferred(f"the rank of '{value.name}' is not known")
        if rank is not None and len(found) != rank:
            raise Misfit(f"'{value.name}' is {text(found)}, not of rank {rank}")
        if len(found) < least:
            raise Misfit(f"'{value.name}' is {text(found)}, and has to have {least} dims at least")
        return found

    def ints(self, index: int, count: int | None = None) -> list[int | None]:
        """The elements of an operand that holds sizes, axes or indices, None for one that is not known.

        `count`: how many there must be.
        """
        value = self.value(index)
        known = self.known[index]
        if known is not None:
            found = known.elements()
        else:
            total = product(self.dims(index))
            if total is None:
                raise NotInferred(f"the elements of '{value.name}' are not known before the model runs")
            found = [None] * total
        if count is not None and len(found) != count:
            raise Misfit(f"'{value.name}' has {len(found)} elements, where {count} are expected")
        return found

    def whole(self, index: int, count: int | None = None) -> list[int]:
        """The elements of such an operand, all of them."""
        found = self.ints(index, count)
        known = [v for v in found if v is not None]
        if len(known) != len(found):
            raise NotInferred(f"the elements of '{self.value(index).name}' are not known before the model runs")
        return known

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from 0."""
        if not -rank <= axis < rank:
            raise Misfit(f"axis {axis} is outside a rank of {rank}")
        return axis % rank


def product(dims: Iterable[int | None]) -> int | None:
    """How many elements; None if a dim is not known."""
    total = 1
    for dim in dims:
        if dim is None:
            return None
        total *= dim
    return total


def agree(one: int | None, other: int | None, what: str) -> int | None:
    """The dim that both must be."""
    if one is not None and other is not None and one != other:
        raise Misfit(f"{what}: {one} and {other} differ")
    return other if one is None else one


def text(dims: Shape) -> str:
    return "of unknown rank" if dims is None else f"[{', '.join('?' if d is None else str(d) for d in dims)}]"
