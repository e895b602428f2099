"""Structural equality of modules: two are equal if a writer would put the same model down for both.

Values and buffers are compared by what they hold and by who shares them: the values of one module map one to
one to the values of the other, and so do the buffers, so two constants that share a buffer equal only two that do.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tflq.ir.attributes import TypedArray, TypedFloat, TypedInt, TypedString
from tflq.ir.core import Block, Buffer, Function, Module, Op, Signature, Value

__all__ = ["attribute_key", "difference", "modules_equal"]


def attribute_key(value: Any) -> Hashable:
    """What an attribute is compared and hashed by; equal keys mean equal attributes.

    Told apart, unlike by `==`: `True` and `1`, `1.0` and `1`, `0.0` and `-0.0`, lists and tuples, arrays by dtype.
    A NaN equals itself.
    """
    kind = value.__class__
    if kind is str or kind is bool:
        return (kind is bool, value)
    if kind is int:
        return ("int", value)
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


def modules_equal(a: Module, b: Module) -> bool:
    """Whether the modules hold the same model."""
    return difference(a, b) is None


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
        yield from self.lengths(f"{place} operators", a.ops, b.ops)
        for index, (op_a, op_b) in enumerate(zip(a.ops, b.ops, strict=True)):
            yield from self.op(f"{place}, operator {index} ({op_a.name})", op_a, op_b)
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
        yield from self.lengths(f"{place} operators", a.ops, b.ops)
        for index, (op_a, op_b) in enumerate(zip(a.ops, b.ops, strict=True)):
            yield from self.op(f"{place}, operator {index} ({op_a.name})", op_a, op_b)

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
