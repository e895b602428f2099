"""What TOSA demands of an op beyond element types: a law per op, which says what of it is violated.

    @law(Transpose)
    def transpose(op: Transpose, c: Context) -> Violations: yield "the reason, a clause"

A law may take for granted that the op is as its class declares it and that all ranks are known. A dim that is
not known violates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tflq.dialects.declare import Operator
from tflq.dialects.inference import STATED, Dims, Misfit, text
from tflq.ir.core import Module, Op, Value
from tflq.ir.types import TensorType
from tflq.registering import Registry
from tflq.tosa.rules import Limits

__all__ = [
    "Context",
    "Law",
    "Violations",
    "bounds",
    "dims",
    "law",
    "of_rank",
    "result_is",
    "same",
    "shape_is",
    "zero_point",
]

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


def dims(value: Value) -> Dims:
    """The dims of a value whose rank is known."""
    return value.type.shape or ()


def same(a: int | None, b: int | None) -> bool:
    """Whether two dims can be equal."""
    return a is None or b is None or a == b


def result_is(op: Operator) -> Violations:
    """The result's shape is what operands and attributes give."""
    try:
        expected = op.infer(STATED)
    except Misfit as misfit:
        yield str(misfit)
        return
    assert isinstance(expected, tuple)
    yield from shape_is(op, expected)


def shape_is(op: Op, expected: Dims) -> Violations:
    """The result's shape is this one."""
    found = dims(op.result)
    if len(found) != len(expected) or not all(map(same, found, expected)):
        yield f"the result is {text(found)}, where {text(expected)} follows from operands and attributes"


def of_rank(op: Op, *ranks: int | None) -> Violations:
    """The operands' ranks, None for any; the operator's first so many."""
    for value, rank in zip(op.operands, ranks, strict=False):
        if value is not None and rank is not None and len(dims(value)) != rank:
            yield f"operand '{value.name}' {text(dims(value))} is not of rank {rank}"


def bounds(what: str, numbers: Sequence[int], low: int | None, high: int | None = None) -> Violations:
    """Numbers of an attribute within bounds, both included."""
    least, most = min(numbers, default=0), max(numbers, default=0)
    if low is not None and numbers and least < low:
        yield f"{what} of {least}, where {low} is the least"
    if high is not None and numbers and most > high:
        yield f"{what} of {most}, where {high} is the most"


def zero_point(op: Op, name: str, value: Value) -> Violations:
    """A zero point: any of 8 bits, 0 or 32768 of ui16, else 0."""
    point, element = op.attributes[name], value.type.storage
    if element.name in ("i8", "ui8"):
        yield from bounds(name, [point], element.minimum, element.maximum)
    elif point != 0 and not (element.name == "ui16" and point == 32768):
        yield f"{name} of {point} with a tensor of {element}"
