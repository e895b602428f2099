"""Nested dicts → bytes, by the layout tables: the inverse of `codec.py`.

A flatbuffer is built from its end, children before parents, so that every offset is known when it is written.
Places are counted from the end of the file: an object's `end` is the number of bytes from its first one to there. The
file's length becomes a multiple of 16, so alignment counts the same from both sides. Vtables are written once each. Big
vectors are kept as the views they are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from operator import sub
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.flatbuffer.codec import NUMPY_TYPES
from tflq.flatbuffer.layout import SCALAR_CODES, TFLITE, Field, Schema
from tflq.light import dataclass

__all__ = ["ALIGNMENT", "Encoder", "Piece", "Template", "Written", "encode", "string_bytes", "template"]

ALIGNMENT: Final = 16
"""Alignment of constants in a file, and of the file's length."""

Piece: TypeAlias = bytes | bytearray | memoryview

_PADS = [bytes(n) for n in range(ALIGNMENT)]
_UINT32 = struct.Struct("<I").pack
_INT32 = struct.Struct("<i").pack


@dataclass(frozen=True, slots=True)
class Template:
    """Inline layout of a table with certain fields there; `pack` takes the vtable's distance, then `slots` in order.

    `row` has the slots with the places of those that hold an offset, 0 for numbers.
    """

    vtable: bytes
    pack: Any
    size: int  # without the vtable's distance
    align: int
    slots: tuple[int, ...]
    offsets: dict[int, int]  # slot -> place in the table
    row: tuple[tuple[int, int], ...]


@cache
def template(name: str, present: frozenset[int], schema: Schema = TFLITE) -> Template:
    """The layout of a table with the slots `present`: largest fields first, so that none needs padding."""
    fields = sorted((schema.table(name).fields[slot] for slot in present), key=lambda f: (-f.size, f.slot))
    offsets, at = {}, 4
    for field in fields:
        offsets[field.slot] = at
        at += field.size
    count = max(present, default=-1) + 1
    vtable = struct.pack(f"<{count + 2}H", 4 + 2 * count, at, *(offsets.get(slot, 0) for slot in range(count)))
    codes = "".join("I" if f.is_offset else SCALAR_CODES[f.scalar] for f in fields)
    align = max((f.size for f in fields), default=4)
    pack = struct.Struct(f"<i{codes}").pack
    row = tuple((f.slot, offsets[f.slot] if f.is_offset else 0) for f in fields)
    return Template(vtable, pack, at - 4, max(align, 4), tuple(f.slot for f in fields), offsets, row)


@cache
def _vector_pack(code: str, count: int) -> Any:
    return struct.Struct(f"<I{count}{code}").pack


class Written(int):
    """The `end` of an object already written, in the place of what an offset field leads to."""

    __slots__ = ()


def string_bytes(text: str) -> bytes:
    """A string as a file has it: its size, and a zero byte at least up to whole words."""
    data = text.encode()
    size = len(data)
    return _UINT32(size) + data + _PADS[4 - size % 4]


class Encoder:
    """Collects the pieces of a flatbuffer, last first. `end` is how many bytes it has, always a multiple of 4."""

    def __init__(self, schema: Schema = TFLITE) -> None:
        self.schema = schema
        self.chunks: list[Piece] = []
        self.end = 0
        self._vtables: dict[bytes, int] = {}
        self._strings: dict[str, int] = {}
        self._templates: dict[tuple[Any, ...], Template] = {}
        self._last = template(schema.root, frozenset(), schema)

    def reserve(self, size: int, align: int) -> int:
        """Pads so that `size` more bytes begin aligned; the `end` they will have."""
        pad = -(self.end + size) % align
        if pad:
            self.chunks.append(_PADS[pad])
        return self.end + pad + size

    def bytes_vector(self, data: np.ndarray, align: int = 4) -> int:
        """A vector of bytes, kept as a view; its `end`."""
        size = data.size
        end = self.reserve(size, max(align, 4)) + 4
        self.chunks.append(data.data)
        self.chunks.append(_UINT32(size))
        self.end = end
        return end

    def vector(self, scalar: str, values: Sequence[Any] | np.ndarray, align: int = 4) -> int:
        """A vector of numbers; its `end`."""
        if isinstance(values, np.ndarray):
            data = np.ascontiguousarray(values, NUMPY_TYPES[scalar]).reshape(-1).view(np.uint8)
            end = self.bytes_vector(data, align)
            self.chunks[-1] = _UINT32(values.size)
            return end
        chunk = _vector_pack(SCALAR_CODES[scalar], len(values))(len(values), *values)
        self.end = self.reserve(len(chunk) - 4, align) + 4
        self.chunks.append(chunk)
        return self.end

    def offsets(self, ends: Iterable[int]) -> int:
        """A vector of offsets to objects already written."""
        places = list(ends)
        count = len(places)
        self.end = self.reserve(4 * count, 4) + 4
        own = range(self.end - 4, self.end - 4 - 4 * count, -4)
        self.chunks.append(_vector_pack("I", count)(count, *map(sub, own, places)))
        return self.end

    def string(self, text: str) -> int:
        """A string; its `end`."""
        data = string_bytes(text)
        self.chunks.append(data)
        self.end += len(data)
        return self.end

    def shared_string(self, text: str) -> int:
        """A string, written when first asked for; its `end`."""
        end = self._strings.get(text)
        if end is None:
            end = self._strings[text] = self.string(text)
        return end

    def strings(self, texts: Iterable[str]) -> int:
        """A vector of strings, each written when first asked for."""
        return self.offsets([self.shared_string(text) for text in texts])

    def vtable(self, data: bytes) -> int:
        """The `end` of a vtable, written when first asked for."""
        end = self._vtables.get(data)
        if end is None:
            end = self._vtables[data] = self.reserve(len(data), 4)
            self.chunks.append(data)
            self.end = end
        return end

    def table(self, name: str, values: Mapping[str, Any]) -> int:
        """A table and all below it; its `end`. Numbers at their default and None are left out."""
        found: dict[int, Any] = {}
        schema = self.schema
        for own, slot, kind, default, field in schema.table(name).entries:
            value = values.get(own)
            if value is None:
                continue
            if kind == "scalar" or kind == "enum":
                if kind == "enum":
                    value = schema.enum(field.type).values[value]
                if value == default:
                    continue
                found[slot] = value
            elif kind == "union":
                member, content = value
                found[slot - 1] = schema.union(field.type).values[member]
                found[slot] = content if isinstance(content, Written) else self.table(member, content)
            else:
                found[slot] = self.reference(field, value)
        return self.of_slots(name, found)

    def of_slots(self, name: str, values: Mapping[int, Any]) -> int:
        """A table from the numbers of its slots in order, and the `end`s of what is already written; its `end`."""
        present = name, *values
        shape = self._templates.get(present)
        if shape is None:
            shape = self._templates[present] = template(name, frozenset(values), self.schema)
        return self.pack(shape, values)

    def reference(self, field: Field, value: Any) -> int:
        """What an offset field leads to; its `end`."""
        if field.kind == "string":
            return self.string(value)
        if isinstance(value, Written):
            return value
        if field.kind == "table":
            return self.table(field.type, value)
        if field.kind == "tables":
            ends = [item if isinstance(item, Written) else self.table(field.type, item) for item in reversed(value)]
            return self.offsets(reversed(ends))
        if field.kind == "strings":
            return self.strings(value)
        if field.kind == "enums":
            members = self.schema.enum(field.type).values
            value = [members[v] for v in value]
        return self.vector(field.scalar, value, field.align)

    def pack(self, shape: Template, values: Mapping[int, Any]) -> int:
        """A table from its slots' numbers, and the `end`s of what is already written; its `end`."""
        vtable = self.vtable(shape.vtable)
        end = self.end = self.reserve(shape.size, shape.align) + 4
        row = [end - at - values[slot] if at else values[slot] for slot, at in shape.row]
        self.chunks.append(shape.pack(vtable - end, *row))
        self._last = shape
        return end

    def open_last(self, slot: int) -> tuple[bytearray, int]:
        """The last table written by `pack`, to be changed, and the place in it of a slot."""
        chunk = self.chunks[-1] = bytearray(self.chunks[-1])
        return chunk, self._last.offsets[slot]

    def finish(self, root: int) -> None:
        """Writes the head: the offset of the root table and the identifier."""
        end = self.reserve(8, ALIGNMENT)
        self.chunks.append(_UINT32(end - root) + self.schema.identifier)
        self.end = end

    def pieces(self) -> Iterable[Piece]:
        """The file's bytes, in order."""
        return reversed(self.chunks)


def encode(values: Mapping[str, Any], name: str = "", schema: Schema = TFLITE) -> bytes:
    """The flatbuffer of a root table given as nested dicts."""
    encoder = Encoder(schema)
    encoder.finish(encoder.table(name or schema.root, values))
    return b"".join(encoder.pieces())
