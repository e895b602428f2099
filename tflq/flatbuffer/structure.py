"""The check of every offset, count and union of a flatbuffer, before anything else reads its bytes.

The format (flatbuffers "Internals" page; the C++ `flatbuffers::Verifier` checks the same): little-endian; the file
starts with the root's uoffset and the identifier at byte 4. A table starts with an soffset to its vtable,
`vtable = table − soffset`; a vtable is uint16s: its size, the table's size, then per slot the field's place in the
table or 0 where the field is absent. A reference is a uint32 counted from its own place; a vector or string is a
uint32 count and its elements, a string ends in NUL. A union is a type slot followed by a value slot.

The check walks the schema breadth first, all tables of one field at once as numpy arrays (a *wave*), so its cost hardly
depends on what a file holds. The schema has no recursive table, which bounds the depth. The size of the file bounds the
number of tables, of vtables and of referenced bytes, so that overlapping vectors cannot multiply work or memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from tflq.errors import InvalidModelError
from tflq.flatbuffer.layout import SCALAR_SIZES, TFLITE, Field, Schema, TableLayout
from tflq.numerics.unary import distinct

if TYPE_CHECKING:
    from collections.abc import Iterator

_SMALLEST = 12  # root reference, identifier and the root's soffset
_MOST_TABLES = 150_000
"""Tables that any file may have, and one more for every `table_bytes`. Reading one takes up to about 1 KiB."""
_MOST_VTABLES = 20_000
"""Distinct vtables that any file may have: writers share them, and a reader prepares for each."""


def check(data: memoryview, schema: Schema = TFLITE) -> None:
    """InvalidModelError unless every reference in `data`, the bytes of a whole file, stays inside it and is aligned."""
    size = len(data)
    if (identifier := bytes(data[4:8])) != schema.identifier or size < _SMALLEST:
        from tflq.flatbuffer.identify import foreign_error

        if identifier != schema.identifier and (error := foreign_error(data)) is not None:
            raise error
        reason = f"bytes 4 to 7 are {identifier!r}, where {schema.what} has {schema.identifier!r}"
        if size < _SMALLEST:
            reason = "the file is empty" if not size else f"{size} bytes are too few"
        raise InvalidModelError("", f"not {schema.what}: {reason}", hint="was it written, or downloaded, to the end?")
    _Walk(data, schema).run()


class _Wave:
    """Tables of one type that are reached through one field: their places, and for each the table and index that refers
    to it."""

    __slots__ = ("at", "elements", "field", "origins", "parent", "table")

    def __init__(
        self,
        table: TableLayout,
        at: np.ndarray,
        parent: _Wave | None = None,
        field: str = "",
        origins: np.ndarray | None = None,
        elements: np.ndarray | None = None,
    ) -> None:
        self.table = table
        self.at = at
        self.parent = parent
        self.field = field
        self.origins = origins
        self.elements = elements

    def path(self, index: int) -> str:
        if self.parent is None or self.origins is None:
            return self.table.name
        element = "" if self.elements is None else f"[{self.elements[index]}]"
        return f"{self.parent.path(int(self.origins[index]))}.{self.field}{element}"

    def fail(self, index: int | np.integer, field: str, reason: str) -> NoReturn:
        raise InvalidModelError(self.path(int(index)) + (f".{field}" if field else ""), reason)


class _Walk:
    """One check of one file."""

    def __init__(self, data: memoryview, schema: Schema) -> None:
        self.data = data
        self.schema = schema
        self.size = len(data)
        self.u8 = np.frombuffer(data, np.uint8)
        self.u16 = np.frombuffer(data, "<u2", self.size // 2)
        self.u32 = np.frombuffer(data, "<u4", self.size // 4)
        self.tables_left = _MOST_TABLES + self.size // schema.table_bytes
        self.vtables_left = _MOST_VTABLES + self.size // 4096
        self.bytes_left = schema.reuse * self.size + (1 << 16)
        self.slots_left = self.size
        self.places: list[tuple[str, np.ndarray]] = []

    def run(self) -> None:
        root = int(self.u32[0])
        if root < 8 or root > self.size - 4 or root & 3:
            raise InvalidModelError(
                self.schema.root, f"root offset {root} is outside the file of {self.size} bytes or misaligned"
            )
        waves = [_Wave(self.schema.table(self.schema.root), np.array([root], np.int64))]
        while waves:
            waves.extend(self._tables(waves.pop()))
        self._one_type_per_place()

    def _tables(self, wave: _Wave) -> Iterator[_Wave]:
        """Check the vtables and scalar fields of a wave, and yield the waves that its references lead to."""
        at, fields = wave.at, wave.table.fields
        self.places.append((wave.table.name, at))
        vtables = at - self.u32[at >> 2].view(np.int32)
        self._reject(
            wave, (vtables < 0) | (vtables > self.size - 4) | (vtables & 1 != 0), "", "vtable is outside the file"
        )
        vtable, shared = distinct(vtables)
        self.vtables_left -= vtable.size
        if self.vtables_left < 0:
            wave.fail(0, "", "there are more kinds of tables (vtables) than any model needs")
        length, extent = self.u16[vtable >> 1].astype(np.int64), self.u16[(vtable >> 1) + 1].astype(np.int64)
        bad = (length < 4) | (length & 1 != 0) | (vtable + length > self.size) | (extent < 4)
        self._reject(wave, bad[shared], "", "vtable has an impossible size")
        self._reject(wave, at + extent[shared] > self.size, "", "table ends outside the file")
        self._no_newer_fields(wave, vtable, shared, length)
        if not fields:
            return
        entry = np.arange(4, 4 + 2 * len(fields), 2)
        known = entry < length[:, None]
        slots = np.where(known, self.u16[np.where(known, vtable[:, None] + entry, 0) >> 1], 0).astype(np.int64)
        bad = (slots != 0) & ((slots < 4) | (slots + wave.table.sizes > extent[:, None]))
        if bad.any():
            column = int(np.argmax(bad.any(0)))
            self._reject(wave, bad[shared, column], fields[column].name, "field is outside its table")
        types = np.zeros(0, np.uint8)
        for field in (fields[column] for column in np.flatnonzero(slots.any(0)).tolist()):
            offsets = slots[shared, field.slot]
            some = np.flatnonzero(offsets)
            place = at[some] + offsets[some]
            if field.size > 1:
                self._reject(wave, place & (field.size - 1) != 0, field.name, "field is misaligned", some)
            if field.kind == "union_type":
                types = np.zeros(at.size, np.uint8)
                types[some] = self.u8[place]
                if not slots[:, field.slot + 1].any():
                    self._reject(wave, types != 0, field.name, "union has a type but no value")
            elif field.kind == "union":
                if not slots[:, field.slot - 1].any():
                    wave.fail(some[0], field.name, "union has a value but no type")
                yield from self._union(wave, field, types, place, some)
            elif field.kind == "enum":
                self._known(wave, field, self._numbers(place, field.scalar), some)
            elif field.kind == "table":
                yield self._wave(
                    wave, field, self.schema.table(field.type), self._follow(wave, field.name, place, some), some
                )
            elif field.is_offset:
                yield from self._vector(wave, field, self._follow(wave, field.name, place, some), some)

    def _no_newer_fields(self, wave: _Wave, vtable: np.ndarray, shared: np.ndarray, length: np.ndarray) -> None:
        """Refuse a field in a slot that the schema known here does not have: it would be lost silently."""
        slots = len(wave.table.fields)
        extra = np.maximum((length - 4) // 2 - slots, 0)
        self.slots_left -= int(extra.sum())
        if self.slots_left < 0:
            self._overlap(wave)
        if not extra.any():
            return
        owner, entry = _spread(extra)
        used = self.u16[(vtable[owner] >> 1) + 2 + slots + entry] != 0
        if used.any():
            first = int(np.argmax(used))
            slot = slots + int(entry[first])
            table = int(np.argmax(shared == owner[first]))
            wave.fail(
                table,
                "",
                f"{wave.table.name} has a field in slot {slot}, newer than the schema known here ({slots} slots)",
            )

    def _follow(self, wave: _Wave, field: str, place: np.ndarray, some: np.ndarray) -> np.ndarray:
        """Where references at `place` lead. At least a uint32 there is inside the file."""
        offset = self.u32[place >> 2].astype(np.int64)
        target = place + offset
        own, outside, odd = offset < 4, target > self.size - 4, target & 3 != 0
        if (own | outside | odd).any():
            self._reject(wave, own, field, "reference to itself", some)
            self._reject(wave, outside, field, "reference outside the file", some)
            self._reject(wave, odd, field, "reference is misaligned", some)
        return target

    def _known(self, wave: _Wave, field: Field, values: np.ndarray, some: np.ndarray) -> None:
        known = self.schema.enum(field.type).names
        if not set(np.unique(values).tolist()) <= known.keys():
            first = int(np.argmin(np.isin(values, list(known))))
            wave.fail(some[first], field.name, f"unknown {field.type} {values[first]}")

    def _numbers(self, place: np.ndarray, scalar: str) -> np.ndarray:
        """Integers of 1, 2, 4 or 8 bytes, at places aligned to them or to 4."""
        width = SCALAR_SIZES[scalar]
        if width == 8:
            return self.u32[place >> 2] | (self.u32[(place >> 2) + 1].astype(np.uint64) << np.uint64(32))
        words = {1: self.u8, 2: self.u16, 4: self.u32}[width]
        return words[place >> (width >> 1)].view(scalar)

    def _vector(self, wave: _Wave, field: Field, at: np.ndarray, some: np.ndarray) -> Iterator[_Wave]:
        """Check vectors or strings that start at `at`; yield the wave of a vector of tables."""
        count = self.u32[at >> 2].astype(np.int64)
        width = 4 if field.kind in ("tables", "strings") else SCALAR_SIZES.get(field.scalar, 1)
        end = at + 4 + count * width
        self._reject(wave, end > self.size, field.name, "length is beyond the end of the file", some)
        if field.kind == "tables":
            self._spend_tables(wave, int(count.sum()))
            owner, element = _spread(count)
            if owner.size:
                target = self._references(wave, field, at[owner] + 4 + 4 * element, some[owner], element)
                yield self._wave(wave, field, self.schema.table(field.type), target, some[owner], element)
            return
        if (wave.table.name, field.name) not in self.schema.viewed:
            self.bytes_left -= int((count * width).sum())
            if self.bytes_left < 0:
                self._overlap(wave)
        if field.kind == "string":
            self._strings(wave, field, at + 4, end, some)
        elif field.kind == "strings":
            self._vector_of_strings(wave, field, at, count, some)
        elif field.kind == "enums":
            owner, element = _spread(count)
            self._known(wave, field, self._numbers(at[owner] + 4 + width * element, field.scalar), some[owner])

    def _references(
        self, wave: _Wave, field: Field, place: np.ndarray, owners: np.ndarray, element: np.ndarray
    ) -> np.ndarray:
        target = place + self.u32[place >> 2]
        bad = (target == place) | (target > self.size - 4) | (target & 3 != 0)
        if bad.any():
            first = int(np.argmax(bad))
            wave.fail(owners[first], f"{field.name}[{element[first]}]", "reference is outside the file or misaligned")
        return target

    def _vector_of_strings(
        self, wave: _Wave, field: Field, at: np.ndarray, count: np.ndarray, some: np.ndarray
    ) -> None:
        """Check the strings that vectors at `at` refer to. One that is named often is checked, and counted, once."""
        owner, element = _spread(count)
        if not owner.size:
            return
        owners = some[owner]
        target = self._references(wave, field, at[owner] + 4 + 4 * element, owners, element)
        start, first = np.unique(target, return_index=True)
        size = self.u32[start >> 2].astype(np.int64)
        self._reject(
            wave, start + 4 + size > self.size, field.name, "length is beyond the end of the file", owners[first]
        )
        self.bytes_left -= int(size.sum())
        if self.bytes_left < 0:
            self._overlap(wave)
        self._strings(wave, field, start + 4, start + 4 + size, owners[first])

    def _strings(self, wave: _Wave, field: Field, start: np.ndarray, end: np.ndarray, some: np.ndarray) -> None:
        bad = end >= self.size
        self._reject(wave, bad, field.name, "string has no room for its end", some)
        self._reject(wave, self.u8[end] != 0, field.name, "string does not end in NUL", some)
        data = self.data
        for i, (first, last) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
            try:
                str(data[first:last], "utf-8")
            except UnicodeDecodeError as error:
                wave.fail(some[i], field.name, f"string is not UTF-8 ({error.reason} at byte {error.start})")

    def _union(
        self, wave: _Wave, field: Field, types: np.ndarray, place: np.ndarray, some: np.ndarray
    ) -> Iterator[_Wave]:
        """Pair the types of a union, one per table, with its values at `place`; yield one wave per type."""
        self._reject(wave, types[some] == 0, field.name, "union has a value but no type", some)
        if np.count_nonzero(types) != some.size:
            types[some] = 0
            wave.fail(int(np.argmax(types != 0)), field.name, "union has a type but no value")
        target = self._follow(wave, field.name, place, some)
        members = self.schema.union(field.type).names
        chosen_types = types[some]
        for value in sorted(set(chosen_types.tolist())):
            chosen = chosen_types == value
            if value not in members:
                wave.fail(some[int(np.argmax(chosen))], field.name, f"unknown type {value} of union {field.type}")
            yield self._wave(wave, field, self.schema.table(members[value]), target[chosen], some[chosen])

    def _wave(
        self,
        parent: _Wave,
        field: Field,
        table: TableLayout,
        at: np.ndarray,
        origins: np.ndarray,
        elements: np.ndarray | None = None,
    ) -> _Wave:
        if elements is None:
            self._spend_tables(parent, at.size)
        return _Wave(table, at, parent, field.name, origins, elements)

    def _spend_tables(self, wave: _Wave, count: int) -> None:
        self.tables_left -= count
        if self.tables_left < 0:
            wave.fail(0, "", "there are more tables than a file of this size can need, or vectors overlap")

    def _overlap(self, wave: _Wave) -> NoReturn:
        wave.fail(0, "", "more is referred to than the file has room for: vectors overlap")

    def _reject(self, wave: _Wave, bad: np.ndarray, field: str, reason: str, some: np.ndarray | None = None) -> None:
        if bad.any():
            first = int(np.argmax(bad))
            wave.fail(first if some is None else some[first], field, reason)

    def _one_type_per_place(self) -> None:
        """Refuse a place that is read as two types of table, and a second reference to an exclusive table."""
        joined = np.concatenate([at for _, at in self.places])
        order = np.argsort(joined, kind="stable")
        twice = np.flatnonzero(joined[order[1:]] == joined[order[:-1]])
        if not twice.size:
            return
        names = np.repeat([name for name, _ in self.places], [at.size for _, at in self.places])
        one, other = names[order[twice]], names[order[twice + 1]]
        bad = (one != other) | np.isin(one, list(self.schema.exclusive))
        if bad.any():
            first = int(np.argmax(bad))
            where, both = f"byte {joined[order[twice[first]]]}", {str(one[first]), str(other[first])}
            raise InvalidModelError(where, f"two references lead to one table, as {' and as '.join(sorted(both))}")


def _spread(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For lists of these lengths, laid end to end: the list of each item, and its index in the list."""
    owner = np.repeat(np.arange(counts.size), counts)
    return owner, np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
