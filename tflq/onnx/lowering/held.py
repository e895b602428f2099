"""The forms in which a tensor of the integer form exists in ONNX: equal numbers, in several element types and layouts.

Runtimes compute in float32 and int32, and on images with channels first. A tensor is cast, moved and transposed only
where something reads it in another form: what a CONV gives stays float32 with channels first up to the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, f32, i32
from tflq.light import NamedTuple
from tflq.onnx.lowering.builder import OnnxBuilder

EXACT: Final = 1 << 24
"""float32 holds all whole numbers up to this one."""


Again: TypeAlias = Callable[[np.ndarray, bool], "Value | None"]
"""A sum of products in float32 plus a number for each channel, or with the other sign; None if that is not exact."""


class Form(NamedTuple):
    """How a tensor's numbers are held: the element type, what is taken off them, whether channels are the second dim
    instead of the last one."""

    element: ScalarType
    offset: int = 0
    first: bool = False


class Held:
    """One tensor in all its forms. `low`, `high`: bounds of its numbers."""

    __slots__ = ("again", "channels", "forms", "high", "low", "source")

    def __init__(self, form: Form, value: Value, low: int, high: int, source: Value | None = None) -> None:
        self.forms = {form: value}
        self.low = low
        self.high = high
        self.source = source
        """The constant that it is."""
        self.channels: tuple[np.ndarray, np.ndarray] | None = None
        """Bounds of each channel, int64, where they are known."""
        self.again: Again | None = None
        """The sum that it is, made once more with other constants."""

    @property
    def rank(self) -> int:
        return len(next(iter(self.forms.values())).type.shape or ())

    @property
    def is_exact(self) -> bool:
        """Whether float32 holds its numbers."""
        return self.low >= -EXACT and self.high <= EXACT

    @property
    def first(self) -> bool:
        """Whether it exists with channels first only."""
        return all(form.first for form in self.forms)

    def get(self, b: OnnxBuilder, wanted: Form) -> Value:
        """The tensor in a form, made from the nearest one that there is."""
        found = self.forms.get(wanted)
        if found is None:
            found = self._made(b, wanted) if self.source is None else _constant(b, self.source, wanted)
            self.forms[wanted] = found
        return found

    def _made(self, b: OnnxBuilder, wanted: Form) -> Value:
        nearest = max(self.forms, key=lambda form: _nearness(form, wanted))
        x = self.forms[nearest]
        if nearest.first != wanted.first:
            x = turned(b, x, first=wanted.first)
            self.forms[nearest._replace(first=wanted.first)] = x
        if nearest.element != wanted.element:
            if nearest.element.is_float and not wanted.element.is_float:  # less nothing, so that narrow types hold it
                x, nearest = _moved(b, x, nearest.offset), nearest._replace(offset=0)
            elif nearest.offset != wanted.offset and not wanted.element.is_float and wanted.element.bits < 32:
                x = _moved(b, b.cast(x, i32), nearest.offset - wanted.offset)
                nearest = nearest._replace(offset=wanted.offset)
            x = b.cast(x, wanted.element)
            self.forms[Form(wanted.element, nearest.offset, wanted.first)] = x
        return _moved(b, x, nearest.offset - wanted.offset)


def _nearness(form: Form, wanted: Form) -> tuple[bool, ...]:
    """How little is to do to get from one form to another: layout costs most, then a cast, then a sum."""
    return (
        form.first == wanted.first,
        form.element == wanted.element,
        form.offset == wanted.offset,
        form.element.is_float == wanted.element.is_float,
        form.element.bits <= 16,
    )


def _moved(b: OnnxBuilder, x: Value, number: int) -> Value:
    """x + number."""
    return b.add(x, b.like(number, x)) if number else x


def turned(b: OnnxBuilder, x: Value, *, first: bool) -> Value:
    """x with channels as its second dim, or from there as its last one."""
    rank = len(x.type.shape or ())
    spatial = range(1, rank - 1) if first else range(2, rank)
    return b.transpose(x, (0, rank - 1, *spatial) if first else (0, *spatial, 1))


def _constant(b: OnnxBuilder, source: Value, wanted: Form) -> Value:
    """A constant in a form, stored in the smallest type that holds it."""
    array = source.array
    if wanted.first:
        array = np.moveaxis(array, -1, 1)
    if wanted.element.is_float and source.type.storage.is_float:
        return b.constant(array, wanted.element)
    wide = array.astype(np.int64) - wanted.offset
    if wanted.element == f32 and np.abs(wide).max(initial=0) > EXACT:
        raise Refused(f"float32 does not hold the numbers of the constant '{source.name}'")
    return b.stored(wide, wanted.element)


def cheapest(held: Held) -> Form:
    """The form in which a tensor is best moved: one that exists, narrow if there are several."""
    return min(held.forms, key=lambda form: (form.first, form.element.bits, form.offset != 0))


def channel_row(b: OnnxBuilder, numbers: np.ndarray, element: ScalarType, rank: int, *, first: bool) -> Value:
    """A constant of one number, or of one for each channel."""
    row = np.atleast_1d(numbers)
    if (row == row[0]).all():
        return b.constant(row[0], element)
    shaped = row.reshape(-1, *(1,) * (rank - 2)) if first else row
    return b.stored(shaped, element) if row.dtype.kind in "iu" else b.constant(shaped, element)
