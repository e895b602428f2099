"""Functions, and the module that holds them: everything that a model file holds; and whether two modules are equal.

A `Function` is a TFLite subgraph: arguments, an ordered list of ops in SSA form, and the values it returns. A pass
builds a new op list and replaces values in one sweep (`Function.replace`).
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from tflq.ir.attributes import TypedArray, TypedFloat, TypedInt, TypedString
from tflq.ir.facts import Facts
from tflq.ir.ops import Block, Buffer, Op, Value


class Function(Facts):
    """One subgraph. `tensors` is the tensor table of the file it was read from, in order, unused ones included.

    What `users`, `values` and `ops_of` answer is not to be changed: while passes run, it is kept from one to the next
    (`keep_facts`). Other ops, inputs or outputs drop it, and the pass manager does after a pass that changed something.
    A pass that asks again after it has changed operands or results by itself says `changed()` before.
    """

    def __init__(
        self,
        name: str | None,
        inputs: list[Value],
        outputs: list[Value],
        ops: list[Op],
        tensors: list[Value] | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.ops = ops
        self.tensors: list[Value] = [] if tensors is None else tensors
        self.info: Mapping[str, Any] = {} if info is None else info

    def __repr__(self) -> str:
        return f"<Function '{self.name or ''}' of {len(self.ops)} ops>"


class Signature:
    """A named entry point: (name, value) pairs of `function`'s inputs and outputs."""

    def __init__(
        self,
        key: str | None,
        function: int,
        inputs: list[tuple[str | None, Value]] | None,
        outputs: list[tuple[str | None, Value]] | None,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        self.key = key
        self.function = function
        self.inputs = inputs
        self.outputs = outputs
        self.info: Mapping[str, Any] = {} if info is None else info

    @property
    def values(self) -> list[Value]:
        """The values of its inputs and outputs."""
        return [value for _, value in (*(self.inputs or ()), *(self.outputs or ()))]

    def with_outputs(self, replacements: Mapping[Value, Value]) -> Signature:
        """The signature with the values that its function returns now, by those it returned."""
        if self.outputs is None:
            return self
        outputs = [(name, replacements.get(value, value)) for name, value in self.outputs]
        return Signature(self.key, self.function, self.inputs, outputs, self.info)


class Metadata:
    """A named blob."""

    def __init__(self, name: str | None, buffer: Buffer) -> None:
        self.name = name
        self.buffer = buffer

    @classmethod
    def of(cls, name: str, text: bytes) -> Metadata:
        """A blob of these bytes."""
        return cls(name, Buffer.of(np.frombuffer(text, np.uint8)))


Item = TypeVar("Item")


class Record:
    """At most one object of each class. It does not belong to the model: not printed, not compared, not written."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: dict[type, object] = {}

    def note(self, item: object) -> None:
        """Notes an object, and forgets the one of its class."""
        self._items[type(item)] = item

    def find(self, kind: type[Item]) -> Item | None:
        """The object of a class."""
        match = self._items.get(kind)
        assert match is None or isinstance(match, kind)
        return match

    def join(self, other: Record) -> None:
        """Notes what another record has beyond this one."""
        self._items = other._items | self._items


class Module:
    """Everything that a model file holds: returned by `tflq.read`. Two modules are equal if they hold the same model.

    Attributes:
        functions: The subgraphs.
        signatures: The signatures; None if the file has no table of them.
        metadata: The metadata; None if the file has no table of it.
        description: The file's description.
        version: The version of the file's schema.
        buffers: The table of buffers as it was read. New constants bring their own.
        operator_codes: The table of operator codes as it was read: the fields of each row.
        info: Further fields of the file.
        source: Path of the file.
        warnings: Harmless defects that were found on reading.
        record: What passes noted.

    Example:
        ```python
        module = tflq.read("model.tflite")
        print(module.main.inputs, len(list(module.ops())))
        ```
    """

    def __init__(
        self,
        functions: list[Function],
        signatures: list[Signature] | None = None,
        metadata: list[Metadata] | None = None,
        description: str | None = None,
        version: int = 3,
        buffers: list[Buffer] | None = None,
        operator_codes: list[Mapping[str, Any]] | None = None,
        info: Mapping[str, Any] | None = None,
        source: str = "",
        warnings: list[str] | None = None,
        record: Record | None = None,
    ) -> None:
        self.functions = functions
        self.signatures = signatures
        self.metadata = metadata
        self.description = description
        self.version = version
        self.buffers = [] if buffers is None else buffers
        self.operator_codes = [] if operator_codes is None else operator_codes
        self.info: Mapping[str, Any] = {} if info is None else info
        self.source = source
        self.warnings = [] if warnings is None else warnings
        self.record = Record() if record is None else record

    def metadata_of(self, name: str) -> bytes | None:
        """The metadata of a name.

        Args:
            name: The name.

        Returns:
            The bytes; None if there are none.
        """
        return next((m.buffer.data.tobytes() for m in self.metadata or () if m.name == name), None)

    def __repr__(self) -> str:
        ops = sum(len(function.ops) for function in self.functions)
        return f"<Module '{self.source}' of {len(self.functions)} functions, {ops} ops>"

    def __eq__(self, other: object) -> bool:
        """Structural: whether both hold the same model."""
        return self is other or (isinstance(other, Module) and difference(self, other) is None)

    __hash__ = object.__hash__

    @property
    def main(self) -> Function:
        """The first function, which an interpreter runs."""
        return self.functions[0]

    def ops(self) -> Iterable[Op]:
        """The ops of all functions, in order."""
        return (op for function in self.functions for op in function.ops)


# Structural equality.


_INT: Final = frozenset((int,))


def attribute_key(value: Any) -> Hashable:
    """The key by which an attribute is compared and hashed; equal keys mean equal attributes.

    Told apart, unlike by `==`: `True` and `1`, `1.0` and `1`, `0.0` and `-0.0`, lists and tuples, arrays by dtype.
    A NaN equals itself.
    """
    kind = value.__class__
    if kind is str or kind is bool:
        return (kind is bool, value)
    if kind is int:
        return ("int", value)
    if kind is tuple:
        return ("ints", value) if _INT.issuperset(map(type, value)) else (False, tuple(map(attribute_key, value)))
    if kind is np.ndarray:
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, (TypedInt, TypedFloat, TypedString)):
        return ("typed", value.type, attribute_key(value.plain))
    if value is None or isinstance(value, (str, bytes)):
        return (False, value)
    if isinstance(value, np.generic):
        return ("scalar", value.dtype.str, value.tobytes())
    if isinstance(value, int):
        return ("int", int(value))
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, TypedArray):
        return ("array", value.element, value.type, value.shape, value.tobytes())
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, Mapping):
        return ("dict", frozenset((key, attribute_key(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return (isinstance(value, list), tuple(attribute_key(item) for item in value))
    if isinstance(value, Buffer):
        return ("buffer", value.data.tobytes(), attribute_key(value.external))
    return ("object", value)


def difference(a: Module, b: Module) -> str | None:
    """The first difference between two modules as a sentence with its place, or None if they are equal."""
    return next(_Comparison().module(a, b), None)


class _Comparison:
    """One walk over two modules in step; every method yields differences, found lazily."""

    def __init__(self) -> None:
        self.values: dict[Value, Value] = {}
        self.values_back: dict[Value, Value] = {}
        self.buffers: dict[Buffer, Buffer] = {}
        self.buffers_back: dict[Buffer, Buffer] = {}

    def module(self, a: Module, b: Module) -> Iterator[str]:
        for field in ("version", "description", "source", "info", "operator_codes", "warnings"):
            yield from self.attribute(field, getattr(a, field), getattr(b, field))
        yield from self.lengths("buffers", a.buffers, b.buffers)
        for index, (left, right) in enumerate(zip(a.buffers, b.buffers, strict=True)):
            yield from self.buffer(f"buffer {index}", left, right)
        yield from self.lengths("functions", a.functions, b.functions)
        for index, (f, g) in enumerate(zip(a.functions, b.functions, strict=True)):
            yield from self.function(f"function {index}", f, g)
        yield from self.signatures(a.signatures, b.signatures)
        yield from self.lengths("metadata", a.metadata, b.metadata)
        for index, (m, n) in enumerate(zip(a.metadata or [], b.metadata or [], strict=True)):
            yield from self.attribute(f"metadata {index} name", m.name, n.name)
            yield from self.buffer(f"metadata {index}", m.buffer, n.buffer)

    def signatures(self, a: list[Signature] | None, b: list[Signature] | None) -> Iterator[str]:
        yield from self.lengths("signatures", a, b)
        for index, (s, t) in enumerate(zip(a or [], b or [], strict=True)):
            place = f"signature {index}"
            yield from self.attribute(place, [s.key, s.function, s.info], [t.key, t.function, t.info])
            for side in ("inputs", "outputs"):
                left, right = getattr(s, side), getattr(t, side)
                yield from self.lengths(f"{place} {side}", left, right)
                for (name_a, value_a), (name_b, value_b) in zip(left or [], right or [], strict=True):
                    yield from self.attribute(f"{place} {side}", name_a, name_b)
                    yield from self.value(f"{place} {side} '{name_a}'", value_a, value_b)

    def function(self, place: str, a: Function, b: Function) -> Iterator[str]:
        yield from self.attribute(f"{place} name", a.name, b.name)
        yield from self.attribute(f"{place} info", a.info, b.info)
        yield from self.sequence(f"{place} input", a.inputs, b.inputs)
        yield from self.ops(place, a.ops, b.ops)
        yield from self.sequence(f"{place} output", a.outputs, b.outputs)
        yield from self.sequence(f"{place} tensor", a.tensors, b.tensors)

    def op(self, place: str, a: Op, b: Op) -> Iterator[str]:
        if a.name != b.name:
            yield f"{place}: is {b.name} in the other"
        yield from self.sequence(f"{place} operand", a.operands, b.operands)
        yield from self.sequence(f"{place} result", a.results, b.results)
        yield from self.sequence(f"{place} intermediate", a.intermediates, b.intermediates)
        yield from self.attribute(f"{place} attributes", a.attributes, b.attributes)
        yield from self.attribute(f"{place} info", a.info, b.info)
        if a.regions or b.regions:
            yield from self.blocks(place, a, b)
        if a.location != b.location:
            yield f"{place}: location {a.location} against {b.location}"

    def blocks(self, place: str, a: Op, b: Op) -> Iterator[str]:
        yield from self.lengths(f"{place} regions", a.regions, b.regions)
        for index, (left, right) in enumerate(zip(a.regions, b.regions, strict=True)):
            yield from self.lengths(f"{place} region {index} blocks", left.blocks, right.blocks)
            for number, (x, y) in enumerate(zip(left.blocks, right.blocks, strict=True)):
                yield from self.block(f"{place} region {index} block {number}", x, y)

    def block(self, place: str, a: Block, b: Block) -> Iterator[str]:
        yield from self.sequence(f"{place} argument", a.arguments, b.arguments)
        yield from self.ops(place, a.ops, b.ops)

    def ops(self, place: str, a: Sequence[Op], b: Sequence[Op]) -> Iterator[str]:
        yield from self.lengths(f"{place} operators", a, b)
        for index, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from self.op(f"{place}, operator {index} ({left.name})", left, right)

    def sequence(self, place: str, a: Sequence[Value | None], b: Sequence[Value | None]) -> Iterator[str]:
        yield from self.lengths(f"{place}s", a, b)
        for index, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from self.value(f"{place} {index}", left, right)

    def value(self, place: str, a: Value | None, b: Value | None) -> Iterator[str]:
        if a is None or b is None:
            if a is not b:
                yield f"{place}: {a} against {b}"
            return
        if self.values.get(a) is b:
            return
        if a in self.values or b in self.values_back:
            yield f"{place}: '{a.name}' and '{b.name}' are tensors in different places"
            return
        self.values[a] = b
        self.values_back[b] = a
        if a.name != b.name:
            yield f"{place}: name '{a.name}' against '{b.name}'"
        if a.type != b.type:
            yield f"{place} '{a.name}': type {a.type} against {b.type}"
        yield from self.attribute(f"{place} '{a.name}' info", a.info, b.info)
        yield from self.buffer(f"{place} '{a.name}'", a.buffer, b.buffer)

    def buffer(self, place: str, a: Buffer | None, b: Buffer | None) -> Iterator[str]:
        if a is None or b is None:
            if a is not b:
                yield f"{place}: {a} against {b}"
            return
        if self.buffers.get(a) is b:
            return
        if a in self.buffers or b in self.buffers_back:
            yield f"{place}: shares its buffer with different tensors"
            return
        self.buffers[a] = b
        self.buffers_back[b] = a
        if not np.array_equal(a.data, b.data):
            yield f"{place}: the data differs"
        yield from self.attribute(f"{place} external", a.external, b.external)

    def attribute(self, place: str, a: Any, b: Any) -> Iterator[str]:
        if a is b or attribute_key(a) == attribute_key(b):
            return
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            for key in sorted(a.keys() | b.keys(), key=str):
                if key not in a or key not in b:
                    yield f"{place}: only one has '{key}'"
                else:
                    yield from self.attribute(f"{place}, {key}", a[key], b[key])
        elif isinstance(a, (list, tuple)) and type(a) is type(b) and len(a) == len(b):
            for index, (left, right) in enumerate(zip(a, b, strict=True)):
                yield from self.attribute(f"{place}, {index}", left, right)
        elif isinstance(a, Value) and isinstance(b, Value):
            yield from self.value(place, a, b)
        else:
            yield f"{place}: {a!r} against {b!r}"

    def lengths(self, place: str, a: Sequence[object] | None, b: Sequence[object] | None) -> Iterator[str]:
        if (a is None) != (b is None) or len(a or ()) != len(b or ()):
            count_a, count_b = ("none" if s is None else str(len(s)) for s in (a, b))
            yield f"{place}: {count_a} against {count_b}"
