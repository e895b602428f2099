"""Properties of operators wherever they occur, in traits: effects and calls, options of files, the sources of
elements, memory, and the types of an operator's tensors. Those of quantization parameters are in `parameters`.

An attribute that is missing because its options table is missing is 0 for an interpreter, and so it is here. Source:
the Prepare functions of tflite/kernels. Which tensors share memory, and when their size is known: arena_planner.cc,
`inplace_operator` of the kernels, SetTensorToDynamic and SetTensorToPersistentRo.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

import numpy as np

from tflq.dialects.declare import Attribute, Operator, Slot, Trait
from tflq.dialects.inference import DECLARED_SHAPES, DeclaredShapes, Dims, Misfit, NotInferred, product
from tflq.dialects.inference import text as _text
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, Shape, i32, i64
from tflq.ir.verifier import Notes

# Effects, and the functions that an operator runs.


class Atomic(Trait):
    """It is one unit to passes: what is inside of it stays as it is until it is inlined."""


class Annotates(Trait):
    """Its result is its operand: it only says something of that, for passes to read."""


class Impure(Trait):
    """It does more than compute its results, or they differ from run to run: it is neither removed nor merged."""


class Calls(Trait):
    """It runs functions of its module; these attributes name them by index.

    inputs: the operands that it copies to the functions' arguments, as it copies their results to its own; none if the
    functions say only how to combine elements.
    """

    __slots__ = ("attributes", "inputs")

    def __init__(self, *attributes: Any, inputs: Any = None) -> None:
        self.attributes: Final[tuple[Attribute, ...]] = attributes
        self.inputs: Final[Slot | None] = inputs

    def called(self, op: Op) -> Iterator[tuple[str, int]]:
        """The functions that an op names: the attribute and the index."""
        for attribute in self.attributes:
            declared = op.attributes.get(attribute.key)
            indices = () if declared is None else (declared,) if isinstance(declared, int) else declared
            yield from ((attribute.key, int(index)) for index in indices)


class ComputesInFloat(Trait):
    """Its reference kernel computes in float even on integers."""


class StaysQuantized(Trait):
    """It keeps its quantized tensors in the integer form; `reason` says why."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason: Final = reason


class Recurrent(Trait):
    """It keeps a state in variable tensors, which `reset_all_variables()` resets."""


class Unquantized(Trait):
    """It has no quantized signature; `reason` says why none of its tensors holds numbers that could be scaled."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason: Final = reason


class Undescribed(Trait):
    """Its tensors say what its options say: a file may leave the options out."""


class ConstantOperands(Trait):
    """TOSA takes these as constant operands, in this order after the others: attributes, and the result's `shape`.

    Each has an element type: a scalar type, that of an operand or result, or `index` for a shape.
    """

    __slots__ = ("types",)

    def __init__(self, **types: Any) -> None:
        self.types: Final[Mapping[str, ScalarType | Slot]] = types


class OfSlots(Trait):
    """A trait of several operands and results."""

    __slots__ = ("slots",)

    def __init__(self, *slots: Any) -> None:
        self.slots: Final[tuple[Slot, ...]] = slots


# Attributes and constant operands that say where or how many: zero strides, axes outside the rank, bad permutations.


_MOST: Final = 1 << 16
"""The largest stride, dilation, filter or block: products of two with a dim still fit an int32 or nearly so."""


def check_attribute(attribute: Attribute, op: Op, notes: Notes) -> None:
    """An attribute of a file against its declaration."""
    name, value = attribute.key, attribute.as_read(op)
    if attribute.finite and not isfinite(value):
        notes.fail_op(op, f"{name} is {value}, not a finite number")
    if attribute.positive and value <= 0:
        notes.fail_op(op, f"{name} is {value}, not positive")
    if attribute.positive and value > _MOST:
        notes.fail_op(op, f"{name} is {value}, more than a kernel can count with")
    if attribute.among and value and value not in attribute.among:
        notes.fail_op(op, f"{name} is {value}, but the kernel takes only {' or '.join(attribute.among)}")
    if attribute.unread and value <= 0:
        notes.warn_op(op, f"{name} is {value}, and interpreters count channels instead", remedy=f"state {name}")


class Exclusive(Trait):
    """Flags that cannot all be set."""

    __slots__ = ("attributes",)

    def __init__(self, *attributes: Any) -> None:
        self.attributes: Final[tuple[Attribute, ...]] = attributes

    def check(self, op: Operator, notes: Notes) -> None:
        if all(a.as_read(op) for a in self.attributes):
            notes.fail_op(op, f"{' and '.join(a.key for a in self.attributes)} exclude each other")


class Counts(Trait):
    """An attribute is the number of a variadic operand's or result's values."""

    __slots__ = ("attribute", "slot")

    def __init__(self, attribute: Any, slot: Any) -> None:
        self.attribute: Final[Attribute] = attribute
        self.slot: Final[Slot] = slot

    def check(self, op: Operator, notes: Notes) -> None:
        values = op.results if self.slot.is_result else op.operands
        count = self.attribute.as_read(op)
        if count != len(values):
            kind = "results" if self.slot.is_result else "operands"
            notes.fail_op(op, f"{self.attribute.key} is {count}, but there are {len(values)} {kind}")


class Axis(Trait):
    """An attribute is an axis of a value, or with `more=1` of a value with one more dim."""

    __slots__ = ("attribute", "more", "of")

    def __init__(self, attribute: Any, of: Any, *, more: int = 0) -> None:
        self.attribute: Final[Attribute] = attribute
        self.of: Final[Slot] = of
        self.more = more

    def check(self, op: Operator, notes: Notes) -> None:
        value = self.of.value(op)
        if value is None or value.type.rank is None:
            return
        rank = value.type.rank + self.more
        axis = self.attribute.as_read(op)
        if not -rank <= axis < max(rank, 1):
            notes.fail_op(op, f"{self.attribute.key} {axis} is not an axis of rank {rank} ('{value.name}')")


def _constant(op: Op, slot: Slot) -> np.ndarray | None:
    """A constant operand's elements, None if it is left out, not constant or not stored element by element."""
    value = slot.value(op)
    if value is None or not value.is_constant or not value.type.storage.is_integer or "sparsity" in value.info:
        return None
    return value.array


class Axes(Trait):
    """A constant operand holds axes of a value."""

    __slots__ = ("axes", "of")

    def __init__(self, axes: Any, of: Any) -> None:
        self.axes: Final[Slot] = axes
        self.of: Final[Slot] = of

    def check(self, op: Operator, notes: Notes) -> None:
        axes, value = _constant(op, self.axes), self.of.value(op)
        if axes is None or value is None or value.type.rank is None:
            return
        rank = value.type.rank
        bad = (axes < -rank) | (axes >= max(rank, 1))
        if bad.any():
            notes.fail_op(op, f"{self.axes.name} {axes[bad].flat[0]} is not an axis of rank {rank} ('{value.name}')")


class Permutation(Trait):
    """A constant operand holds a permutation of a value's dims."""

    __slots__ = ("of", "order")

    def __init__(self, order: Any, of: Any) -> None:
        self.order: Final[Slot] = order
        self.of: Final[Slot] = of

    def check(self, op: Operator, notes: Notes) -> None:
        order, value = _constant(op, self.order), self.of.value(op)
        if order is None or value is None or value.type.rank is None:
            return
        rank = value.type.rank
        counted = np.where(order < 0, order + rank, order)
        if sorted(counted.reshape(-1).tolist()) != list(range(rank)):
            listed = order.reshape(-1)[:12].tolist()
            what = f"{self.order.name} {listed} is not a permutation of {rank} dims ('{value.name}')"
            if order.size == rank and not ((counted < 0) | (counted >= rank)).any():
                what += ": LiteRT 2.3 takes elements of wrong places, even outside of it; other releases refuse it"
            notes.fail_op(op, what)


class NonNegative(OfSlots):
    """Constant operands without negative elements."""

    def check(self, op: Operator, notes: Notes) -> None:
        for slot in self.slots:
            values = _constant(op, slot)
            if values is not None and values.size and values.min() < 0:
                notes.fail_op(op, f"{slot.name} has the negative element {values.min()}")


class NoZeros(OfSlots):
    """Constant operands without zeros."""

    def check(self, op: Operator, notes: Notes) -> None:
        for slot in self.slots:
            values = _constant(op, slot)
            if values is not None and not values.all():
                notes.fail_op(op, f"{slot.name} has an element 0")


class Indexed(Trait):
    """Where a bit of a mask is set, a begin is an index of a dim: inside of it, and its stride is not negative. Kernels
    clamp the index and write nothing then."""

    __slots__ = ("begin", "mask", "of", "other_masks", "strides")

    def __init__(self, begin: Any, strides: Any, mask: Any, of: Any, *other_masks: Any) -> None:
        self.begin: Final[Slot] = begin
        self.strides: Final[Slot] = strides
        self.mask: Final[Attribute] = mask
        self.of: Final[Slot] = of
        self.other_masks: Final[tuple[Attribute, ...]] = other_masks

    def check(self, op: Operator, notes: Notes) -> None:
        begin, strides, value = _constant(op, self.begin), _constant(op, self.strides), self.of.value(op)
        mask, moved = self.mask.as_read(op), any(other.as_read(op) for other in self.other_masks)
        if not mask or moved or value is None or value.type.shape is None:
            return
        for place, dim in enumerate(value.type.shape):
            if not mask >> place & 1:
                continue
            if strides is not None and place < strides.size and strides.flat[place] < 0:
                notes.fail_op(op, f"{self.mask.key} takes one element of dim {place}, but its stride is negative")
            if begin is None or dim is None or place >= begin.size:
                continue
            index = int(begin.flat[place])
            if not -dim <= index < dim:
                notes.fail_op(op, f"{self.begin.name} {index} is outside of dim {place} of {value.type}")


# Where the elements of a result come from, and what it is called.


class Tabulable(OfSlots):
    """Elementwise arithmetic of integers, of which a table of all values may be made: each element of the result
    follows from the elements of these operands at its place; they broadcast. Another operand is a table already.

    Not so functions of floats, whose last bit is the kernel's, and bitwise ops, which lowerings join with others.
    """


class WithinRange(OfSlots):
    """Each element of the result is an element of one of these operands, so its range is theirs."""


class MovesElements(OfSlots):
    """Each element of the results is an element of these operands, or a constant around them. The other operands say
    where."""

    def moves(self, index: int) -> bool:
        """Whether the elements of the operand at an index are moved."""
        return any(slot.index == index or (slot.variadic and index > slot.index) for slot in self.slots)


class Surrounded(Trait):
    """Around the elements that it moves stand zeros, or what an attribute says. `zero_point`: its quantized kernels put
    the zero point there, the others a stored 0."""

    __slots__ = ("attribute", "zero_point")

    def __init__(self, attribute: Any = None, *, zero_point: bool = False) -> None:
        self.attribute: Final[Attribute | None] = attribute
        self.zero_point = zero_point


class Role(Trait):
    """The last part of the result's name, after that of the operator in the model: `conv1/accumulator`."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text: Final = text


# Memory that an interpreter gives operands and results: which of them share it, and when their size is known.


class View(OfSlots):
    """The result is in the memory of this operand."""


class InPlace(OfSlots):
    """The result may be written over one of these operands, if nothing else reads it."""


class SizedBy(OfSlots):
    """The size of its results follows from the values of these operands: where they are not known before a run, the
    results have no memory until then."""


class PersistentIfConstant(OfSlots):
    """The result is computed once, and keeps its memory, where this operand is a constant."""


class ComputedEarly(Trait):
    """Its kernel computes the results before a run where all operands are known then."""


class ReadsShapes(ComputedEarly):
    """It reads the shapes of its operands alone: its kernel computes the results before a run, whatever the elements
    are."""


# An operator's tensors among each other: element types, broadcasting, shapes of operands that hold one item per dim.
#
# An interpreter computes result shapes anew and disregards what a file says of them; a conversion relies on it. So a
# file whose stated shapes are not those that an interpreter would find is refused, wherever they can be known: unknown
# dims agree with everything. Source: the Prepare functions of tflite/kernels; `ComputePaddingHeightWidth` in
# kernels/padding.h.


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
        operands = op.operands
        if len(operands) == len(self._sources) == len(op.operand_slots) and None not in operands:
            return operands  # type: ignore[return-value]
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


_OF_QUANTIZATION: Final = frozenset(("quantization", "min", "max", "zero_point", "quantized_dimension"))
"""Entries of `Value.info` that say more of a tensor's quantization."""


_COUNTS: Final = {"INT32": i32, "INT64": i64}


class SetsElementType(Trait):
    """Its kernel gives the result an element type, whatever a file states: this one, or that of an attribute, if it is
    INT32 or INT64. What reads a file states that one."""

    __slots__ = ("element", "result")

    def __init__(self, result: Any, element: Any) -> None:
        self.result: Final[Slot] = result
        self.element: Final[ScalarType | Attribute] = element

    def restate(self, op: Operator, notes: Notes) -> None:
        """Gives the result the element type that its kernel sets."""
        value, declared = self.result.value(op), self.element
        element = _COUNTS.get(declared.as_read(op)) if isinstance(declared, Attribute) else declared
        if value is None or element is None or value.type.element is element:
            return
        what = f"'{value.name}' is stated as {value.type.storage}, and the kernel makes it {element}"
        notes.warn_op(op, what, remedy=f"state {element}")
        value.type = value.type.with_element(element)
        value.info = {key: item for key, item in value.info.items() if key not in _OF_QUANTIZATION}


class SameShape(_Shapes):
    """These are of one shape."""

    def infer(self, op: Operator, site: DeclaredShapes) -> Shape:
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
                shapes = f"'{values[0].name}' is {_text(one)} and '{value.name}' {_text(other)}"
                notes.fail_op(op, f"{shapes}; they must be of one shape")


class Elementwise(SameShape):
    """These are of one shape, and each element of the result follows from those at its place in the operands."""


class Broadcasts(_Shapes):
    """The operands broadcast to the result, and each of its elements follows from one of each."""

    def infer(self, op: Operator, site: DeclaredShapes) -> Dims:
        return site.broadcast(self.operands(op))

    def check(self, op: Operator, notes: Notes) -> None:
        if not self.strict:
            return
        result, operands = op.results[0].type.shape, self.operands(op)
        if result is None or all(v.type.shape == result for v in operands):
            return
        try:
            expected = self.infer(op, DECLARED_SHAPES)
        except Misfit as misfit:
            notes.fail_op(op, str(misfit))
        except NotInferred:
            return
        shapes = " and ".join(_text(v.type.shape) for v in operands)
        if len(result) != len(expected):
            notes.fail_op(op, f"{shapes} broadcast to rank {len(expected)}, but the result is {_text(result)}")
        if any(map(_differ, expected, result)):
            notes.fail_op(op, f"{shapes} do not broadcast to the result, {_text(result)}")


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


class OneElement(OfSlots):
    """Each of these holds one element."""

    def check(self, op: Operator, notes: Notes) -> None:
        for value in (v for slot in self.slots for v in slot.values(op)):
            count = product(value.type.shape or ())
            if count is not None and count != 1:
                notes.fail_op(op, f"'{value.name}' has {count} elements, not one")


class RankWithin(Trait):
    """An operand has at least `low` dims, and at most `high`: kernels of every release refuse others."""

    __slots__ = ("high", "low", "slot")

    def __init__(self, slot: Any, low: int, high: int | None = None) -> None:
        self.slot: Final[Slot] = slot
        self.low = low
        self.high = high

    def check(self, op: Operator, notes: Notes) -> None:
        value = self.slot.value(op)
        rank = None if value is None else value.type.rank
        if value is None or rank is None or (self.low <= rank and (self.high is None or rank <= self.high)):
            return
        bound = f"at least {self.low}" if rank < self.low else f"at most {self.high}"
        notes.fail_op(op, f"'{value.name}' is of rank {rank}, and its kernels take {bound} dims")


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
    shape = items.type.dims
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
        out_channels = shape[self.output_dim]
        if result.type.shape is not None and _differ(out_channels, result.type.shape[3]):
            notes.fail_op(
                op, f"filter {_text(shape)} gives {out_channels} channels, but the result is {_text(result.type.shape)}"
            )
        channels, group = None if data.type.shape is None else data.type.shape[3], shape[self.group_dim]
        if channels is not None and group is not None and not self._fits(channels, group):
            notes.fail_op(op, f"filter {_text(shape)} does not fit the {channels} channels of '{data.name}'")
        bias = self.bias.value(op)
        if bias is not None and bias.type.is_static and out_channels is not None:
            count = product(bias.type.dims)
            if count != out_channels:
                notes.fail_op(op, f"bias '{bias.name}' has {count} elements for {out_channels} channels")

    def _fits(self, channels: int, group: int) -> bool:
        """Groups divide the input's channels; a depthwise filter is a multiple of them."""
        whole, part = (group, channels) if self.group_dim == self.output_dim else (channels, group)
        return part > 0 and whole % part == 0


class Window(Trait):
    """Height and width of the result are those that `infer` gives, by windows of the data's."""

    __slots__ = ("data",)

    def __init__(self, data: Any) -> None:
        self.data: Final[Slot] = data

    def check(self, op: Operator, notes: Notes) -> None:
        data, result = self.data.value(op), op.results[0]
        if data is None or data.type.shape is None or result.type.shape is None:
            return
        if len(data.type.shape) != 4 or len(result.type.shape) != 4:
            shapes = f"'{data.name}' is {_text(data.type.shape)} and '{result.name}' {_text(result.type.shape)}"
            notes.fail_op(op, f"{shapes}, not of rank 4")
        try:
            expected = op.infer(DECLARED_SHAPES)
        except (Misfit, NotInferred):
            return
        assert isinstance(expected, tuple)
        for axis, word in ((1, "height"), (2, "width")):
            if _differ(expected[axis], result.type.shape[axis]):
                actual = f"its {word} is {result.type.shape[axis]}"
                notes.fail_op(op, f"{actual}, but an interpreter computes {expected[axis]}")
