"""What a shape rule sees of one operator, and the registry of rules.

    @shape_of(Conv2D)
    def conv_2d(op: Conv2D, site: Site) -> Shape:
        n, h, w, channels = site.dims(op.input, 4)
        ...

A rule answers the result's shape, or a list with one for each result. A dim is None where it is not known, a shape is
None where not even its rank is. `NotInferred` says why nothing can be said, `Misfit` why an interpreter refuses the
operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from tflq.analysis.known import Known
from tflq.analysis.variables import Access
from tflq.dialects.inference import Misfit, NotInferred, Stated, product
from tflq.ir.core import Value
from tflq.ir.types import Shape
from tflq.light import dataclass
from tflq.registering import Registry

__all__ = [
    "Caller",
    "Rule",
    "Site",
    "shape_of",
]

Rule: TypeAlias = "Callable[[Any, Site], Shape | list[Shape]]"
Caller: TypeAlias = Callable[
    [int, Sequence[Shape], Sequence[Known | None]], tuple[Sequence[Shape], Sequence[Known | None]]
]
"""Infers a function of the module for given arguments: shapes and known elements of its results."""

shape_of: Final[Registry[Rule]] = Registry("tflq.shapes")
"""The rule of each operator."""


@dataclass(slots=True)
class Site(Stated):
    """What is known where an operator stands: shapes of values, their elements, and the functions that it may call."""

    inferred: Callable[[Value], Shape]
    known: Callable[[Value], Known | None]
    call: Caller
    accesses: Callable[[Value], Sequence[Access]] | None = None
    """What is done with the variables of a handle; None if their shapes may change."""
    results: Sequence[Known | None] = ()
    """Known elements of the results, where a rule finds them on its way."""

    def shape(self, value: Value) -> Shape:
        return self.inferred(value)

    def shapes(self, values: Sequence[Value | None]) -> list[Shape]:
        return [None if v is None else self.shape(v) for v in values]

    def elements(self, values: Sequence[Value | None]) -> list[Known | None]:
        return [None if v is None else self.known(v) for v in values]

    def ints(self, value: Value | None, count: int | None = None) -> list[int | None]:
        """The elements of an operand that holds sizes, axes or indices, None for one that is not known.

        `count`: how many there must be.
        """
        if value is None:
            raise NotInferred("an operand is missing")
        known = self.known(value)
        if known is not None:
            found = known.elements()
        else:
            total = product(self.dims(value))
            if total is None:
                raise NotInferred(f"the elements of '{value.name}' are not known before the model runs")
            found = [None] * total
        if count is not None and len(found) != count:
            raise Misfit(f"'{value.name}' has {len(found)} elements, where {count} are expected")
        return found

    def whole(self, value: Value, count: int | None = None) -> list[int]:
        """The elements of such an operand, if all are known."""
        found = self.ints(value, count)
        known = [v for v in found if v is not None]
        if len(known) != len(found):
            raise NotInferred(f"the elements of '{value.name}' are not known before the model runs")
        return known
