"""An operator's tensors among each other: element types, broadcasting, shapes of operands that hold one item per dim.

An interpreter computes result shapes anew and disregards what a file says of them; a conversion relies on it. So a
file whose stated shapes are not those that an interpreter would find is refused, wherever they can be known: unknown
dims agree with everything. Source: the Prepare functions of tflite/kernels; `ComputePaddingHeightWidth` in
kernels/padding.h.
"""

from __future__ import annotations

from typing import Any, Final

from tflq.dialects.declare import Operator, Slot, Trait
from tflq.dialects.inference import STATED, Dims, Misfit, NotInferred, Stated, product
from tflq.dialects.inference import text as _text
from tflq.dialects.traits.operands import OfSlots
from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, Shape
from tflq.ir.verifier import Notes
from tflq.numerics.convolution import window


def _differ(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one != other


class _Shapes(OfSlots):
    """A trait of the shapes of operands and a result, the last one. `strict`: a file that states others is refused;
    else they are inferred anew, as an interpreter does."""

    __slots__ = ("_sources", "strict")

    def __init__(self, *slots: Any, strict: bool = True) -> None:
        super().__init__(*slots)
        self.strict = strict
        self._sources = tuple(slot for slot in self.slots if not slot.is_result)

    def operands(self, op: Operator) -> list[Value]:
        """The operands that the result's shape follows from."""
        given = op.operands
        if len(given) == len(self._sources) == len(op.operand_slots) and None not in given:
            return given  # type: ignore[return-value]
        return [v for slot in self._sources for v in slot.values(op)]


class SameElementType(OfSlots):
    """These are of one element type; with `unless_quantized`, quantized ones of any, which all stand for real
    numbers."""

    __slots__ = ("unless_quantized",)

    def __init__(self, *slots: Any, unless_quantized: bool = False) -> None:
        super().__init__(*slots)
        self.unless_quantized = unless_quantized

    def check(self, op: Operator, notes: Notes) -> None:
        values = [v for slot in self.slots for v in slot.values(op)]
        if self.unless_quantized and all(v.type.quantized for v in values):
            return
        for value in values[1:]:
            if value.type.storage is not values[0].type.storage:
                first = values[0]
                notes.fail_op(op, f"'{first.name}' is {first.type.storage} and '{value.name}' is {value.type.storage}")


class ElementTypes(Trait):
    """An operand or result is of one of these element types."""

    __slots__ = ("slot", "types")

    def __init__(self, slot: Any, *types: ScalarType) -> None:
        self.slot: Final[Slot] = slot
        self.types = tuple(t.name for t in types)

    def check(self, op: Operator, notes: Notes) -> None:
        value = self.slot.value(op)
        if value is not None and value.type.storage.name not in self.types:
            notes.fail_op(
                op, f"{self.slot.name} '{value.name}' is {value.type.storage}, not one of {', '.join(self.types)}"
            )


class SameShape(_Shapes):
    """These are of one shape."""

    def infer(self, op: Operator, site: Stated) -> Shape:
        return site.common(self.operands(op))

    def check(self, op: Operator, notes: Notes) -> None:
        if not self.strict:
            return
        values = [v for slot in self.slots for v in slot.values(op) if v.type.shape is not None]
        for value in values[1:]:
            one, other = values[0].type.shape, value.type.shape
            if one is other or one == other or one is None or other is None:
                continue
            if len(one) != len(other) or any(map(_differ, one, other)):
                stated = f"'{values[0].name}' is {_text(one)} and '{value.name}' {_text(other)}"
                notes.fail_op(op, f"{stated}; they must be of one shape")


class Elementwise(SameShape):
    """These are of one shape, and each element of the result follows from those at its place in the operands."""


class Broadcasts(_Shapes):
    """The operands broadcast to the result, and each of its elements follows from one of each."""

    def infer(self, op: Operator, site: Stated) -> Dims:
        return site.broadcast(self.operands(op))

    def check(self, op: Operator, notes: Notes) -> None:
        if not self.strict:
            return
        result, operands = op.results[0].type.shape, self.operands(op)
        if result is None or all(v.type.shape == result for v in operands):
            return
        try:
            expected = self.infer(op, STATED)
        except Misfit as misfit:
            notes.fail_op(op, str(misfit))
        except NotInferred:
            return
        stated = " and ".join(_text(v.type.shape) for v in operands)
        if len(result) != len(expected):
            notes.fail_op(op, f"{stated} broadcast to rank {len(expected)}, but the result is {_text(result)}")
        if any(map(_differ, expected, result)):
            notes.fail_op(op, f"{stated} do not broadcast to the result, {_text(result)}")


class OnePerDim(Trait):
    """`items` has a row for each dim of `of`: one number, or with `pairs` two."""

    __slots__ = ("items", "of", "tail")

    def __init__(self, items: Any, of: Any, *, pairs: bool = False) -> None:
        self.items: Final[Slot] = items
        self.of: Final[Slot] = of
        self.tail = (2,) if pairs else ()

    def check(self, op: Operator, notes: Notes) -> None:
        items, value = self.items.value(op), self.of.value(op)
        if items is None or value is None or value.type.rank is None or items.type.shape is None:
            return
        _has_shape(op, notes, self.items, items, (value.type.rank, *self.tail))


class HasShape(Trait):
    """An operand has this very shape."""

    __slots__ = ("shape", "slot")

    def __init__(self, slot: Any, *shape: int) -> None:
        self.slot: Final[Slot] = slot
        self.shape = shape

    def check(self, op: Operator, notes: Notes) -> None:
        items = self.slot.value(op)
        if items is not None and items.type.shape is not None:
            _has_shape(op, notes, self.slot, items, self.shape)


def _has_shape(op: Op, notes: Notes, slot: Slot, items: Value, expected: tuple[int, ...]) -> None:
    shape = items.type.shape or ()
    if len(shape) != len(expected) or any(map(_differ, shape, expected)):
        notes.fail_op(op, f"{slot.name} '{items.name}' is {_text(shape)}, where {_text(expected)} is expected")


class FilterChannels(Trait):
    """Dim `output` of the filter counts the channels of the result and of the bias, dim `input` those of the input:
    of a group, or, where both are one dim, each times a multiplier."""

    __slots__ = ("bias", "data", "filter", "group_dim", "output_dim")

    def __init__(self, data: Any, filter: Any, bias: Any, *, output: int, input: int) -> None:
        self.data: Final[Slot] = data
        self.filter: Final[Slot] = filter
        self.bias: Final[Slot] = bias
        self.output_dim = output
        self.group_dim = input

    def check(self, op: Operator, notes: Notes) -> None:
        data, weights, result = self.data.value(op), self.filter.value(op), op.results[0]
        if data is None or weights is None or weights.type.shape is None:
            return
        shape = weights.type.shape
        for value in (data, weights, result):
            if value.type.rank is not None and value.type.rank != 4:
                notes.fail_op(op, f"'{value.name}' is of rank {value.type.rank}, not 4")
        made = shape[self.output_dim]
        if result.type.shape is not None and _differ(made, result.type.shape[3]):
            notes.fail_op(
                op, f"filter {_text(shape)} gives {made} channels, but the result is {_text(result.type.shape)}"
            )
        channels, group = None if data.type.shape is None else data.type.shape[3], shape[self.group_dim]
        if channels is not None and group is not None and not self._fits(channels, group):
            notes.fail_op(op, f"filter {_text(shape)} does not fit the {channels} channels of '{data.name}'")
        bias = self.bias.value(op)
        if bias is not None and bias.type.is_static and made is not None:
            count = product(bias.type.shape or ())
            if count != made:
                notes.fail_op(op, f"bias '{bias.name}' has {count} elements for {made} channels")

    def _fits(self, channels: int, group: int) -> bool:
        """Groups divide the input's channels; a depthwise filter is a multiple of them."""
        whole, part = (group, channels) if self.group_dim == self.output_dim else (channels, group)
        return part > 0 and whole % part == 0


class Window(Trait):
    """Height and width of the result follow from those of a window: a filter OHWI, or else the attributes
    `filter_height` and `filter_width`."""

    __slots__ = ("data", "filter")

    def __init__(self, data: Any, filter: Any = None) -> None:
        self.data: Final[Slot] = data
        self.filter: Final[Slot | None] = filter

    def check(self, op: Operator, notes: Notes) -> None:
        data, result = self.data.value(op), op.results[0]
        weights = None if self.filter is None else self.filter.value(op)
        if data is None or data.type.shape is None or result.type.shape is None:
            return
        if len(data.type.shape) != 4 or len(result.type.shape) != 4:
            shapes = f"'{data.name}' is {_text(data.type.shape)} and '{result.name}' {_text(result.type.shape)}"
            notes.fail_op(op, f"{shapes}, not of rank 4")
        if weights is not None and weights.type.rank != 4:
            return
        given = op.attributes
        for axis, letter, word in ((1, "h", "height"), (2, "w", "width")):
            size = given.get(f"filter_{word}", 0) if weights is None else (weights.type.shape or ())[axis]
            source, target = data.type.shape[axis], result.type.shape[axis]
            if size is None or source is None:
                continue
            dilation = given.get(f"dilation_{letter}_factor", 1)
            found = window(source, size, given.get(f"stride_{letter}", 0), dilation, given.get("padding", "VALID"))
            expected = 0 if found is None or found.output is None else found.output
            if _differ(max(expected, 0), target):
                notes.fail_op(op, f"its {word} is {target}, but an interpreter computes {expected}")
