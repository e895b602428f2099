"""Bytes of a flatbuffer ↔ nested dicts, by the layout tables.

A table is a dict with every field of its layout: numbers with their default if absent, enums as the names of their
members, strings and tables as `str` and dict, or None if absent; a union is `(member, dict)`. A vector is a tuple, a
vector of tables a list; uint8 vectors and long ones are numpy views into the bytes. An absent vector (None) differs
from an empty one, so that what is written is what was read.

Decoding: each distinct vtable is compiled once; one `struct` call then reads the inline part of a table. Nothing is
checked here but that fields do not overlap; `structure.check` has done the rest.

Encoding: a flatbuffer is built from its end, children before parents, so that every offset is known when it is written.
Places are counted from the end of the file: the `end` of an object is the number of bytes from its first byte to there.
The length of a file becomes a multiple of 16, so that alignment is the same from both sides. A vtable is written once.
Big vectors are kept as the views that they are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from operator import add, sub
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.base.errors import InvalidModelError
from tflq.formats.flatbuffer.layout import SCALAR_CODES, SCALAR_SIZES, TFLITE, Field, Schema

LONG_VECTOR: Final = 1024
"""Longer vectors become numpy views."""
_LONG_PARAMETERS: Final = {"float32": 32, "int64": 32}
"""Such lengths for the types of scales and zero points."""

NUMPY_TYPES: Final = {name: np.dtype(f"<{code}") for name, code in SCALAR_CODES.items()}

_UINT32 = struct.Struct("<I")
_INT32 = struct.Struct("<i")
_UINT16 = struct.Struct("<H")

Reader = Callable[[int], Any]


@cache
def _vector_struct(code: str, count: int) -> struct.Struct:
    return struct.Struct(f"<{count}{code}")


class _Plan:
    """The steps that read a table with one particular vtable. Indices count the results of `unpack_from`."""

    __slots__ = ("defaults", "enums", "numbers", "offsets", "unions", "unpack_from")

    def __init__(self, unpack_from: Callable[[memoryview, int], tuple[Any, ...]]) -> None:
        self.unpack_from = unpack_from
        self.defaults: dict[str, Any] = {}
        self.numbers: list[tuple[int, str]] = []
        self.enums: list[tuple[int, str, dict[int, str]]] = []
        self.offsets: list[tuple[int, str, int, Reader]] = []
        self.unions: list[tuple[int, int, str, int, dict[int, str]]] = []


class Decoder:
    """Decodes tables out of one file's bytes."""

    def __init__(self, data: memoryview, schema: Schema = TFLITE) -> None:
        self.data = data
        self.schema = schema
        self._array = np.frombuffer(data, np.uint8)
        self._plans: dict[tuple[str, int], _Plan] = {}
        self._strings: dict[int, str] = {}

    def root(self, name: str = "") -> dict[str, Any]:
        """The root table, of layout `name` or of the schema's root."""
        return self.table(name or self.schema.root, _UINT32.unpack_from(self.data, 0)[0])

    def table(self, name: str, position: int) -> dict[str, Any]:
        """The table at a position. InvalidModelError if its fields overlap."""
        vtable = position - _INT32.unpack_from(self.data, position)[0]
        plan = self._plans.get((name, vtable))
        if plan is None:
            plan = self._plans[name, vtable] = self._compile(name, vtable)
        inline = plan.unpack_from(self.data, position)
        out = plan.defaults.copy()
        for index, key in plan.numbers:
            out[key] = inline[index]
        for index, key, names in plan.enums:
            out[key] = names[inline[index]]
        for index, key, offset, read in plan.offsets:
            out[key] = read(position + offset + inline[index])
        for code, index, key, offset, names in plan.unions:
            member = names[inline[code]]
            out[key] = member, self.table(member, position + offset + inline[index])
        return out

    def _compile(self, name: str, vtable: int) -> _Plan:
        size = _UINT16.unpack_from(self.data, vtable)[0]
        slots = struct.unpack_from(f"<{size // 2 - 2}H", self.data, vtable + 4)
        fields = self.schema.table(name).fields
        enum = self.schema.enum
        offsets = dict(enumerate(slots))
        present = sorted(((offsets[f.slot], f) for f in fields if offsets.get(f.slot)), key=lambda pair: pair[0])
        index = {f.slot: i for i, (_, f) in enumerate(present)}
        plan = _Plan(struct.Struct(_inline_format(name, present)).unpack_from)
        for known in fields:
            at, offset = index.get(known.slot), offsets.get(known.slot, 0)
            if known.kind == "union_type":
                continue
            plan.defaults[known.name] = None
            if at is not None and known.kind == "union":
                members = self.schema.union(known.type).names
                plan.unions.append((index[known.slot - 1], at, known.name, offset, members))
            elif at is None:
                is_enum = known.kind == "enum"
                plan.defaults[known.name] = (
                    enum(known.type).names[int(known.default or 0)] if is_enum else known.default
                )
            elif known.kind == "enum":
                plan.enums.append((at, known.name, enum(known.type).names))
            elif known.kind == "scalar":
                plan.numbers.append((at, known.name))
            else:
                reader = getattr(self, f"_{known.kind}_reader")  # one of those below
                plan.offsets.append((at, known.name, offset, reader(known)))
        return plan

    def _string_reader(self, _: Field) -> Reader:
        data, length = self.data, _UINT32.unpack_from

        def read(position: int) -> str:
            start = position + 4
            return str(data[start : start + length(data, position)[0]], "utf-8")

        return read

    def _table_reader(self, field: Field) -> Reader:
        return partial(self.table, field.type)

    def _tables_reader(self, field: Field) -> Reader:
        table_at, kind, targets = self.table, field.type, self._targets
        return lambda position: [table_at(kind, at) for at in targets(position)]

    def _strings_reader(self, field: Field) -> Reader:
        """A string that is named from many places is one object."""
        known, one, targets = self._strings, self._string_reader(field), self._targets

        def read(position: int) -> tuple[str, ...]:
            out: list[str] = []
            for at in targets(position):
                text = known.get(at)
                if text is None:
                    text = known[at] = one(at)
                out.append(text)
            return tuple(out)

        return read

    def _targets(self, position: int) -> Iterable[int]:
        """Where the references of a vector lead."""
        count = _UINT32.unpack_from(self.data, position)[0]
        start = position + 4
        offsets = _vector_struct("I", count).unpack_from(self.data, start)
        return map(add, range(start, start + 4 * count, 4), offsets)

    def _enums_reader(self, field: Field) -> Reader:
        numbers, names = self._vector_reader(field), self.schema.enum(field.type).names
        return lambda position: tuple([names[number] for number in numbers(position)])

    def _vector_reader(self, field: Field) -> Reader:
        data, array, length, scalar = self.data, self._array, _UINT32.unpack_from, field.scalar
        code, size, dtype = SCALAR_CODES[scalar], SCALAR_SIZES[scalar], NUMPY_TYPES[scalar]
        longest = -1 if scalar == "uint8" else _LONG_PARAMETERS.get(scalar, LONG_VECTOR)

        def read(position: int) -> Any:
            count = length(data, position)[0]
            start = position + 4
            if count > longest:
                return array[start : start + count * size].view(dtype)
            return _vector_struct(code, count).unpack_from(data, start)

        return read


def _inline_format(name: str, present: list[tuple[int, Field]]) -> str:
    """The `struct` format of the inline part of a table, from its start."""
    parts, end = ["<"], 0
    for offset, known in present:
        if offset < end:
            raise InvalidModelError(f"{name}.{known.name}", "fields overlap")
        parts.append(f"{offset - end}x{'I' if known.is_offset else SCALAR_CODES[known.scalar]}")
        end = offset + known.size
    return "".join(parts)


def decode(data: bytes | bytearray | memoryview, name: str = "", schema: Schema = TFLITE) -> dict[str, Any]:
    """The root table of a flatbuffer as nested dicts."""
    view = memoryview(data).cast("B").toreadonly()
    return Decoder(view, schema).root(name)


ALIGNMENT: Final = 16
"""Of constants in a file, and of the length of the file."""

_LARGE: Final = 1 << 12
_MOST: Final = 1 << 12
"""Chunks of fewer bytes are written together, at most so many."""

Piece: TypeAlias = bytes | bytearray | memoryview

_PADS = [bytes(n) for n in range(ALIGNMENT)]


class Template:
    """The inline layout of a table that has certain fields. `pack` takes the distance of the vtable, then the fields in
    the order of `slots`. `row`: each slot with the place of the offset that it holds, or 0 for a number.
    """

    __slots__ = ("align", "offsets", "pack", "row", "size", "slots", "vtable")

    def __init__(
        self,
        vtable: bytes,
        pack: Any,
        size: int,
        align: int,
        slots: tuple[int, ...],
        offsets: dict[int, int],
        row: tuple[tuple[int, int], ...],
    ) -> None:
        self.vtable: Final = vtable
        self.pack: Final = pack
        self.size: Final = size  # without the vtable's distance
        self.align: Final = align
        self.slots: Final = slots
        self.offsets: Final = offsets  # slot -> place in the table
        self.row: Final = row


@cache
def template(name: str, present: frozenset[int], schema: Schema = TFLITE) -> Template:
    """The layout of a table with the slots `present`: large fields first, so that none needs padding."""
    fields = sorted((schema.table(name).fields[slot] for slot in present), key=lambda f: (-f.size, f.slot))
    offsets, at = {}, 4
    for entry in fields:
        offsets[entry.slot] = at
        at += entry.size
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
    """The `end` of an object that is already written; it stands for the object in what is encoded."""

    __slots__ = ()


def string_bytes(text: str) -> bytes:
    """A string as a file has it: its size, its bytes, and at least one zero byte up to a whole word."""
    data = text.encode()
    size = len(data)
    return _UINT32.pack(size) + data + _PADS[4 - size % 4]


class Encoder:
    """Collects the pieces of a flatbuffer, last first. `end`: how many bytes it has so far, a multiple of 4."""

    def __init__(self, schema: Schema = TFLITE) -> None:
        self.schema = schema
        self.chunks: list[Piece] = []
        self.end = 0
        self._vtables: dict[bytes, int] = {}
        self._strings: dict[str, int] = {}
        self._templates: dict[tuple[Any, ...], Template] = {}
        self._last = template(schema.root, frozenset(), schema)

    def reserve(self, size: int, align: int) -> int:
        """Pads so that `size` more bytes will begin aligned; returns the `end` that they will have."""
        pad = -(self.end + size) % align
        if pad:
            self.chunks.append(_PADS[pad])
        return self.end + pad + size

    def bytes_vector(self, data: np.ndarray, align: int) -> int:
        """A vector of bytes, kept as a view; its `end`."""
        size = data.size
        end = self.reserve(size, max(align, 4)) + 4
        self.chunks.append(data.data)
        self.chunks.append(_UINT32.pack(size))
        self.end = end
        return end

    def vector(self, scalar: str, values: Sequence[Any] | np.ndarray, align: int = 4) -> int:
        """A vector of numbers; its `end`."""
        if isinstance(values, np.ndarray):
            data = np.ascontiguousarray(values, NUMPY_TYPES[scalar]).reshape(-1).view(np.uint8)
            end = self.bytes_vector(data, align)
            self.chunks[-1] = _UINT32.pack(values.size)
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
        references = range(self.end - 4, self.end - 4 - 4 * count, -4)
        self.chunks.append(_vector_pack("I", count)(count, *map(sub, references, places)))
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

    def shared_strings(self, texts: Iterable[str]) -> list[int]:
        """The `end` of each string, written when first asked for."""
        known = self._strings
        return [known[text] if text in known else self.shared_string(text) for text in texts]

    def strings(self, texts: Iterable[str]) -> int:
        """A vector of strings, each written when first asked for."""
        return self.offsets(self.shared_strings(texts))

    def known_strings(self, texts: Sequence[str]) -> list[int] | None:
        """The `end` of each shared string; None if one is not written yet."""
        known = self._strings
        ends = [known[text] for text in texts if text in known]
        return ends if len(ends) == len(texts) else None

    def known_vtable(self, data: bytes) -> int | None:
        """The `end` of a vtable that is already written."""
        return self._vtables.get(data)

    def vtable(self, data: bytes) -> int:
        """The `end` of a vtable, written when first asked for."""
        end = self._vtables.get(data)
        if end is None:
            end = self._vtables[data] = self.reserve(len(data), 4)
            self.chunks.append(data)
            self.end = end
        return end

    def table(self, name: str, values: Mapping[str, Any]) -> int:
        """A table and everything below it; its `end`. None, and numbers at their default, are left out."""
        slots: dict[int, Any] = {}
        schema = self.schema
        for field_name, slot, kind, default, entry in schema.table(name).entries:
            value = values.get(field_name)
            if value is None:
                continue
            if kind == "scalar" or kind == "enum":
                if kind == "enum":
                    value = schema.enum(entry.type).values[value]
                if value == default:
                    continue
                slots[slot] = value
            elif kind == "union":
                member, content = value
                slots[slot - 1] = schema.union(entry.type).values[member]
                slots[slot] = content if isinstance(content, Written) else self.table(member, content)
            else:
                slots[slot] = self.reference(entry, value)
        return self.of_slots(name, slots)

    def of_slots(self, name: str, values: Mapping[int, Any]) -> int:
        """Packs a table, like `pack`, by the name of the table."""
        present = name, *values
        shape = self._templates.get(present)
        if shape is None:
            shape = self._templates[present] = template(name, frozenset(values), self.schema)
        return self.pack(shape, values)

    def reference(self, field: Field, value: Any) -> int:
        """Writes the object that an offset field refers to. Returns its `end`."""
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
        """A table, from the value of each slot: a number, or the `end` of what is already written; its `end`."""
        vtable = self.vtable(shape.vtable)
        end = self.end = self.reserve(shape.size, shape.align) + 4
        row = [end - at - values[slot] if at else values[slot] for slot, at in shape.row]
        self.chunks.append(shape.pack(vtable - end, *row))
        self._last = shape
        return end

    def open_last(self, slot: int) -> tuple[bytearray, int]:
        """The last table that `pack` wrote, so that it can be changed, and the place of a slot in it."""
        chunk = self.chunks[-1] = bytearray(self.chunks[-1])
        return chunk, self._last.offsets[slot]

    def finish(self, root: int) -> None:
        """Writes the head: the offset of the root table and the identifier."""
        end = self.reserve(8, ALIGNMENT)
        self.chunks.append(_UINT32.pack(end - root) + self.schema.identifier)
        self.end = end

    def pieces(self) -> Iterable[Piece]:
        """The file's bytes, in order: large constants as they are, what is between them joined."""
        chunks = self.chunks[::-1]
        begin = 0
        for at in (*[at for at, size in enumerate(map(len, chunks)) if size >= _LARGE], len(chunks)):
            yield from (b"".join(chunks[first : min(first + _MOST, at)]) for first in range(begin, at, _MOST))
            yield from chunks[at : at + 1]
            begin = at + 1


def encode(values: Mapping[str, Any], name: str = "", schema: Schema = TFLITE) -> bytes:
    """The flatbuffer of a root table given as nested dicts."""
    encoder = Encoder(schema)
    encoder.finish(encoder.table(name or schema.root, values))
    return b"".join(encoder.pieces())
