"""What TOSA demands of an op beyond element types: that its result has the shape that `infer` says, and a law per op.

    @law(Transpose)
    def transpose(op: Transpose, c: Context) -> Violations: yield "the reason, a clause"

A law can rely on the declaration of the op's class, on known ranks, and on operands whose shapes fit each other. A dim
that is not known violates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from tflq.dialects.declare import Operator
from tflq.dialects.inference import Dims, Misfit, text
from tflq.ir.core import Module, Op, Value
from tflq.ir.types import TensorType
from tflq.light import dataclass
from tflq.registering import Registry
from tflq.tosa.rules import Limits

Violations: TypeAlias = Iterator[str]


@dataclass(frozen=True, slots=True)
class Context:
    """The module an op is in, its variables, and the limits of the target's level."""

    module: Module
    variables: Mapping[str, TensorType]
    limits: Limits


Law: TypeAlias = Callable[[Any, Context], Violations]
law: Final[Registry[Law]] = Registry("tflq.tosa.laws")
"""The law of each op."""


def violations(op: Op, context: Context) -> Violations:
    """All that TOSA forbids of an op whose ranks are known."""
    expected = None
    if isinstance(op, Operator):
        try:
            expected = op.follows()
        except Misfit as misfit:
            yield str(misfit)
            return
    if isinstance(expected, tuple):
        stated = dims(op.result)
        if stated != expected and (len(stated) != len(expected) or not all(map(same, stated, expected))):
            yield f"the result is {text(stated)}, where {text(expected)} follows from operands and attributes"
    if (own := law.get(type(op))) is not None:
        yield from own(op, context)


def dims(value: Value) -> Dims:
    """The dims of a value whose rank is known."""
    return value.type.shape or ()


def same(a: int | None, b: int | None) -> bool:
    """Whether two dims can be equal."""
    return a is None or b is None or a == b


# What laws ask for most. They return what they find: a generator that finds nothing takes four times as long.


def bounds(what: str, numbers: Sequence[int], low: int | None, high: int | None = None) -> Sequence[str]:
    """Numbers are within bounds, both included."""
    found: list[str] = []
    if numbers and low is not None and (least := min(numbers)) < low:
        found.append(f"{what} of {least}, where {low} is the least")
    if numbers and high is not None and (most := max(numbers)) > high:
        found.append(f"{what} of {most}, where {high} is the most")
    return found


def axis_of(axis: int, rank: int) -> Sequence[str]:
    """An axis counts one of the dims, from the first."""
    return () if 0 <= axis < rank else (f"axis {axis} of a tensor of rank {rank}",)


def zero_point(op: Op, name: str, value: Value) -> Sequence[str]:
    """A zero point is any number of 8 bits, 0 or 32768 for ui16, else 0."""
    point, element = op.attributes[name], value.type.storage
    if point == 0:
        return ()
    if element.name in ("i8", "ui8"):
        return bounds(name, [point], element.minimum, element.maximum)
    if element.name == "ui16" and point == 32768:
        return ()
    return (f"{name} of {point} with a tensor of {element}",)
