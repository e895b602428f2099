"""The check of every offset, count and union of a flatbuffer, before anything else reads its bytes.

Also the kind of a file, the schema by which it is read, and the archive that may follow a model.

The format (flatbuffers "Internals" page; the C++ `flatbuffers::Verifier` checks the same): little-endian; the file
starts with the root's uoffset and the identifier at byte 4. A table starts with an soffset to its vtable,
`vtable = table − soffset`; a vtable is uint16s: its size, the table's size, then per slot the field's place in the
table or 0 where the field is absent. A reference is a uint32 counted from its own place; a vector or string is a
uint32 count and its elements, a string ends in NUL. A union is a type slot followed by a value slot.

The check walks the schema, all tables of one field at once as numpy arrays (a *wave*), so its cost hardly depends on
what a file holds. The schema has no recursive table, which bounds the depth. The size of the file bounds the
number of tables, of vtables and of referenced bytes, so that overlapping vectors cannot multiply work or memory.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np

from tflq.base.errors import FileError, InvalidModelError
from tflq.base.files import FilePath, file_errors
from tflq.formats.flatbuffer.layout import SCALAR_SIZES, TFLITE, TOSA, Field, Schema, TableLayout
from tflq.numerics.unary import distinct

if TYPE_CHECKING:
    from collections.abc import Iterator


_TRUNCATED: Final = "was it written, or downloaded, to the end?"
_SMALLEST = 12  # root reference, identifier and the root's soffset
_MOST_TABLES = 150_000
"""Tables that any file may have, and one more for every `table_bytes`. Reading one takes up to about 1 KiB."""
_MOST_VTABLES = 20_000
"""Distinct vtables that any file may have: writers share them, and a reader prepares for each."""


def check(data: memoryview, schema: Schema = TFLITE) -> None:
    """InvalidModelError unless every reference in `data`, the bytes of a whole file, stays inside it and is aligned."""
    size = len(data)
    if (identifier := bytes(data[4:8])) != schema.identifier or size < _SMALLEST:
        if identifier != schema.identifier and (error := foreign_error(data)) is not None:
            raise error
        reason = f"bytes 4 to 7 are {identifier!r}, where {schema.what} has {schema.identifier!r}"
        if size < _SMALLEST:
            reason = "the file is empty" if not size else f"{size} bytes are too few"
        raise InvalidModelError("", f"not {schema.what}: {reason}", hint=_TRUNCATED)
    try:
        _Walk(data, schema).run()
    except InvalidModelError as error:
        raise InvalidModelError(error.reason.place, error.reason.what, hint=error.reason.remedy or _TRUNCATED) from None


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
        to_itself, outside, odd = offset < 4, target > self.size - 4, target & 3 != 0
        if (to_itself | outside | odd).any():
            self._reject(wave, to_itself, field, "reference to itself", some)
            self._reject(wave, outside, field, "reference outside the file", some)
            self._reject(wave, odd, field, "reference is misaligned", some)
        return target

    def _known(self, wave: _Wave, field: Field, values: np.ndarray, some: np.ndarray) -> None:
        known = self.schema.enum(field.type).names
        if not set(values.tolist()) <= known.keys():
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


def identify(source: FilePath | bytes | bytearray | memoryview) -> Schema | None:
    """The schema whose identifier a file or its bytes have at byte 4, else None."""
    if isinstance(source, (str, os.PathLike)):
        if os.path.isdir(source):
            raise folder_error(os.fspath(source))
        with file_errors(source), open(source, "rb") as file:
            head = file.read(8)
    else:
        head = bytes(memoryview(source).cast("B")[:8])
    return next((schema for schema in (TFLITE, TOSA) if schema.identifier == head[4:]), None)


# Files of other formats: what they are, and how to get a model from them.

_HEAD: Final = 4096
_CONVERTER: Final = "tf.lite.TFLiteConverter.from_{}"
_FETCH: Final = "fetch the file itself: git lfs pull, or download the raw file"
_MAGICS: Final[Sequence[tuple[bytes, str, str]]] = (
    (b"version https://git-lfs", "this is a Git LFS pointer, not the model that it stands for", _FETCH),
    (b"/annex/objects/", "this is a git-annex pointer, not the model that it stands for", "git annex get FILE"),
    (
        b"\x89HDF\r\n\x1a\n",
        "this is an HDF5 file, such as Keras writes (.h5), not a TFLite model",
        f"load it in Keras and convert it with {_CONVERTER.format('keras_model')}",
    ),
    (b"\x1f\x8b", "this is compressed (gzip), not a TFLite model", "unpack it, and give the .tflite file in it"),
    (b"GGUF", "this is a GGUF file, not a TFLite model", "give a .tflite file"),
    (b"LITERTLM", "this is a LiteRT-LM bundle, not a TFLite model", "give a .tflite file of it"),
    (
        b"\x08\x01\x12",
        "this is TensorFlow's saved_model.pb, not a TFLite model",
        f"convert its folder with {_CONVERTER.format('saved_model')}",
    ),
)
_ONNX: Final = (
    "this is an ONNX model, not a TFLite model",
    "convert it to TFLite first, for instance with onnx2tf (quantized: its option -oiqt)",
)
_ZIP: Final = b"PK\x03\x04"


def foreign_error(data: bytes | memoryview, path: str = "") -> InvalidModelError | None:
    """The error for a file of another format, if that is a known one."""
    named = _named(bytes(data[:_HEAD]), data)
    return None if named is None else InvalidModelError("", named[0], hint=named[1], path=path)


def folder_error(path: str) -> FileError:
    """The error for a folder in the place of a model."""
    if os.path.exists(os.path.join(path, "saved_model.pb")):
        what = "this is the folder of a SavedModel, not a TFLite model"
        return FileError(path, what, remedy=f"convert it with {_CONVERTER.format('saved_model')}")
    return FileError(path, "this is a folder, not a model", remedy="name a file in it")


def _named(head: bytes, data: bytes | memoryview) -> tuple[str, str] | None:
    """The kind of a file that is no model, and the remedy. None if the kind is not known."""
    if head.startswith(_ZIP):
        return _of_zip(data)
    for magic, what, remedy in _MAGICS:
        if head.startswith(magic):
            return what, remedy
    if len(head) > 2 and head[0] == 8 and 3 <= head[1] <= 20 and head[2:3] in b"\x12\x1a:":
        return _ONNX
    start = head.lstrip()[:15].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "this is a web page, not a model: a download that went wrong", "download the file itself"
    if len(head) >= 8 and _is_text(head):
        return "this is a text, but not one that tflq reads", "give a .tflite or .tosa file, or what tflq opt prints"
    return None


def _is_text(head: bytes) -> bool:
    """Whether bytes are UTF-8 without control characters; the last character may be cut off."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3 or len(head) < _HEAD:
            return False
        text = head[: error.start].decode()
    return all(character >= " " or character in "\t\r\n" for character in text)


def _of_zip(data: bytes | memoryview) -> tuple[str, str]:
    """The kind of content of an archive, and the remedy."""
    import zipfile

    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except zipfile.BadZipFile:
        return "this is a zip archive that is damaged, not a TFLite model", "download it again"
    if "model.weights.h5" in names:
        what = "this is a model of Keras (.keras), not a TFLite model"
        return what, f"load it in Keras and convert it with {_CONVERTER.format('keras_model')}"
    if any(name.endswith("data.pkl") for name in names):
        return "this is a model of PyTorch, not a TFLite model", "convert it with ai-edge-torch"
    models = [name for name in names if name.lower().endswith((".tflite", "_tflite"))]
    if models:
        listed = ", ".join(f"'{name}'" for name in models[:4]) + (", ..." if len(models) > 4 else "")
        return f"this is a zip archive or a .task bundle that holds {listed}", "unzip it, and give one of these"
    return "this is a zip archive, not a TFLite model", "unzip it, and give the .tflite file in it, if there is one"


# The zip archive that may follow a model: the files that its metadata names, such as labels. TFLite's metadata tools
# append it to the model and count its offsets from the start of the whole file, so they change with the length of the
# model. Source: the ZIP format, APPNOTE 4.3.12 (central directory header) and 4.3.16 (end of central directory record).

_END = struct.Struct("<4s4H2IH")  # signature, disks, entries, size and offset of the directory, comment length
_ENTRY = struct.Struct("<4s24x3H8xI")  # signature, lengths of name, extra field and comment, offset of the local header
_LONGEST_COMMENT = 65535


class Archive:
    """An archive: its bytes, and where they began in the file. `entries` and `end` are places in its bytes."""

    def __init__(self, data: np.ndarray, start: int, entries: tuple[int, ...], end: int) -> None:
        self.data: Final = data
        self.start: Final = start
        self.entries: Final = entries
        self.end: Final = end


def find_archive(data: memoryview) -> Archive | None:
    """The archive at the end of a file, if there is one, with offsets that count from the start of the file."""
    first = max(0, len(data) - _LONGEST_COMMENT - _END.size)
    at = first + bytes(data[first:]).rfind(b"PK\5\6")
    if at < first or at + _END.size > len(data):
        return None
    *_, size, offset, comment = _END.unpack_from(data, at)
    if at + _END.size + comment != len(data) or offset + size != at:
        return None
    entries, start, place = [], offset, offset
    while place < at:
        signature, name, extra, note, local = (
            _ENTRY.unpack_from(data, place) if place + _ENTRY.size <= at else (b"",) * 5
        )
        if signature != b"PK\1\2" or local >= offset:
            return None
        entries.append(place)
        start = min(start, local)
        place += _ENTRY.size + name + extra + note
    return Archive(np.frombuffer(data, np.uint8)[start:], start, tuple(p - start for p in entries), at - start)


def place_archive(archive: Archive, start: int) -> bytes:
    """The archive's bytes for a file in which it begins at `start`."""
    out = bytearray(archive.data)
    shift = start - archive.start
    for at in [entry + _ENTRY.size - 4 for entry in archive.entries] + [archive.end + 16]:
        struct.pack_into("<I", out, at, struct.unpack_from("<I", out, at)[0] + shift)
    return bytes(out)
