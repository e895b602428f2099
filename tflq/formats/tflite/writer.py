"""`Module` → a TFLite file.

A file has its tables first, then the constants, each aligned to 16 bytes, in the order of the buffer table. In a file
of 2 GiB or more the constants are behind the flatbuffer, at `Buffer.offset` and with `size`, counted from the start of
the file (schema.fbs, version 3c).

The tensor table is `Function.tensors`, then other values in the order of their first use. The buffer table is
`Module.buffers`, then the buffers of new constants. The operator codes are `Module.operator_codes`, then new ones.
Tensors and operators are written by `packing.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from tflq.base.errors import VerificationError
from tflq.base.files import FilePath, Pieces, replace_file
from tflq.dialects.tfl.state import Custom
from tflq.formats.flatbuffer.codec import ALIGNMENT, Encoder, Piece, template
from tflq.formats.flatbuffer.layout import (
    OpcodeTable,
    table,
)
from tflq.formats.flatbuffer.structure import Archive, place_archive
from tflq.formats.tflite.packing import OperatorPacker, TensorPacker
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import NO_DATA, Buffer, Op, Value

LARGEST: Final = 2**31
LIMIT: Final = LARGEST - 2**26
"""If constants have more bytes, they go behind the flatbuffer, whose offsets end at 2 GiB. The rest is for tables."""

_DATA_TABLE: Final = template("Buffer", frozenset((0,)))
_EMPTY_TABLE: Final = template("Buffer", frozenset())
_OUTSIDE_TABLE: Final = template("Buffer", frozenset((1, 2)))
_LARGE_OFFSET: Final = table("Operator").by_name["large_custom_options_offset"].slot
_PAIR: Final = struct.Struct("<iI").pack
_INT32: Final = struct.Struct("<i").pack
_UINT64: Final = struct.Struct("<Q")


def write(module: Module, destination: FilePath | None = None) -> bytes:
    """The bytes of the file. With a destination they go there, whole or not at all, and b"" is returned.

    VerificationError if TFLite cannot express an operator, attribute or type.
    """
    if destination is None:
        return b"".join(pieces(module))
    replace_file(destination, pieces(module))
    return b""


def pieces(module: Module) -> Pieces:
    """The bytes of the file in pieces, without copying constants. VerificationError as `write`."""
    with _faults():
        writer = _Writer(module)
    return writer.pieces()


@contextmanager
def _faults() -> Iterator[None]:
    """VerificationError for what the tables of a model cannot hold: a text can state anything."""
    try:
        yield
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError, struct.error) as error:
        raise VerificationError(f"the model cannot be written: {error}") from error


class _Tensors:
    """The tensor table of a function: `rows`, and the place of each value."""

    def __init__(self, function: Function) -> None:
        self.rows = list(function.tensors)
        self.index: dict[Value | None, int] = {value: i for i, value in enumerate(self.rows)}
        others = [value for value in function.values() if value not in self.index]
        self.index.update(zip(others, range(len(self.rows), len(self.rows) + len(others)), strict=True))
        self.rows += others
        self.index[None] = -1

    def add(self, value: Value) -> None:
        if value not in self.index:
            self.index[value] = len(self.rows)
            self.rows.append(value)

    def add_named_by_details(self) -> None:
        """The scales and zero points that blockwise quantization names."""
        for value in self.rows:  # grows while it is walked: what is added is walked too
            details = (value.info.get("quantization") or {}).get("details") if value.info else None
            for named in details[1].values() if details else ():
                if isinstance(named, Value):
                    self.add(named)


class _Writer:
    """Writes one module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.encoder = Encoder()
        self.codes = OpcodeTable(module.operator_codes)
        self.tensors = [_Tensors(function) for function in module.functions]
        for signature in module.signatures or ():
            for value in signature.values:
                self.tensors[signature.function].add(value)
        for tensors in self.tensors:
            tensors.add_named_by_details()
        self.buffers, self.buffer_index = self._buffer_table()
        total = sum(b.data.size + ALIGNMENT for b in self.buffers)
        self.all_outside = total > LIMIT
        self.tail: list[Piece] = []
        self.tail_size = 0
        self.places: list[tuple[bytearray, int, int]] = []  # a chunk, a place in it, and what belongs there: an offset

    def pieces(self) -> Iterable[Piece]:
        """The file's bytes, in order."""
        with _faults():
            self.encoder.finish(self._model())
        if self.encoder.end >= LARGEST:
            raise VerificationError(
                f"the model without its constants has {self.encoder.end} bytes; a flatbuffer ends at 2 GiB"
            )
        for chunk, at, offset in self.places:
            _UINT64.pack_into(chunk, at, self.encoder.end + offset)
        yield from self.encoder.pieces()
        yield from self.tail
        if archive := self.module.info.get("archive"):
            yield place_archive(Archive(**archive), self.encoder.end + self.tail_size)

    def _buffer_table(self) -> tuple[list[Buffer], dict[Buffer, int]]:
        """The rows and the place of each. Row 0 is the empty buffer, which tensors without data name."""
        rows = list(self.module.buffers)
        used = [value.buffer for tensors in self.tensors for value in tensors.rows if value.buffer is not None]
        info = self.module.info
        if not rows and (used or not ("buffers" in info.get("absent", ()) or info.get("no_buffers"))):
            rows = [Buffer(NO_DATA)]
        elif rows and rows[0].data.size and rows[0] in used:
            rows = [Buffer(NO_DATA), *rows]
        index = {buffer: i for i, buffer in reversed(list(enumerate(rows)))}
        for buffer in (*used, *(m.buffer for m in self.module.metadata or ())):
            if buffer not in index:
                index[buffer] = len(rows)
                rows.append(buffer)
        return rows, index

    def _model(self) -> int:
        module, encoder = self.module, self.encoder
        absent = module.info.get("absent", ())
        fields = table("Model").by_name
        buffers = self._buffers() if self.buffers or "buffers" not in absent else None
        functions = [self._function(f, t) for f, t in reversed(list(zip(module.functions, self.tensors, strict=True)))]
        subgraphs = encoder.offsets(reversed(functions)) if functions or "subgraphs" not in absent else None
        rest: dict[str, Any] = {
            "operator_codes": self.codes.rows if self.codes.rows or "operator_codes" not in absent else None,
            "description": module.description,
            "signature_defs": None if module.signatures is None else [self._signature(s) for s in module.signatures],
            **{key: module.info.get(key) for key in ("metadata_buffer", "external_buffer_groups", "external_buffers")},
        }
        if module.metadata is not None:
            rest["metadata"] = [{"name": m.name, "buffer": self.buffer_index[m.buffer]} for m in module.metadata]
        ends: dict[str, int | None]
        ends = {name: encoder.reference(fields[name], value) for name, value in rest.items() if value is not None}
        ends |= {"buffers": buffers, "subgraphs": subgraphs, "version": module.version or None}
        slots = {fields[name].slot: end for name, end in ends.items() if end is not None}
        return encoder.pack(template("Model", frozenset(slots)), slots)

    def _buffers(self) -> int:
        encoder = self.encoder
        data_vtable, empty_vtable = encoder.vtable(_DATA_TABLE.vtable), encoder.vtable(_EMPTY_TABLE.vtable)
        contents = [self._content(buffer) for buffer in reversed(self.buffers)]
        self.outside = {b: self._append(b.data) for b in self.buffers if self._is_outside(b)}
        ends: list[int] = []
        for buffer, content in zip(reversed(self.buffers), contents, strict=True):
            if self._is_outside(buffer):
                ends.append(self._outside_table(buffer))
                continue
            if buffer.external:  # a placeholder
                data = None if buffer.data is NO_DATA else buffer.data
                ends.append(encoder.table("Buffer", {**buffer.external, "data": data}))
                continue
            if content:
                encoder.end += 8
                encoder.chunks.append(_PAIR(data_vtable - encoder.end, encoder.end - 4 - content))
            else:
                encoder.end += 4
                encoder.chunks.append(_INT32(empty_vtable - encoder.end))
            ends.append(encoder.end)
        return encoder.offsets(reversed(ends))

    def _is_outside(self, buffer: Buffer) -> bool:
        if buffer.external:
            return bool(buffer.external["offset"] > 1)
        return self.all_outside and bool(buffer.data.size)

    def _content(self, buffer: Buffer) -> int:
        """The `end` of the data of a buffer in the flatbuffer; 0 if it has none there."""
        if buffer.data is NO_DATA or buffer.external or self._is_outside(buffer):
            return 0
        return self.encoder.bytes_vector(buffer.data, ALIGNMENT)

    def _outside_table(self, buffer: Buffer) -> int:
        end = self.encoder.pack(_OUTSIDE_TABLE, {1: 0, 2: buffer.data.size})
        self._put_place(1, self.outside[buffer])
        return end

    def _append(self, data: np.ndarray) -> int:
        """Puts data behind the flatbuffer; returns its distance from the end of the flatbuffer."""
        pad = -self.tail_size % ALIGNMENT
        self.tail += [bytes(pad), data.data]
        self.tail_size += pad + data.size
        return self.tail_size - data.size

    def _put_place(self, slot: int, offset: int) -> None:
        """Notes that a slot of the table just written gets the place of data behind the flatbuffer."""
        chunk, at = self.encoder.open_last(slot)
        self.places.append((chunk, at, offset))

    def _function(self, function: Function, tensors: _Tensors) -> int:
        encoder = self.encoder
        pack_operator = OperatorPacker(encoder)
        index, absent = tensors.index, function.info.get("absent", ())
        rows = TensorPacker(encoder).rows(tensors.rows, self.buffer_index, index)
        ops = [self._operator(op, pack_operator, index) for op in reversed(function.ops)]
        references = {
            0: encoder.offsets(rows) if rows or "tensors" not in absent else None,
            1: self._indices(function.inputs, index, "inputs" in absent),
            2: self._indices(function.outputs, index, "outputs" in absent),
            3: encoder.offsets(reversed(ops)) if ops or "operators" not in absent else None,
            4: None if function.name is None else encoder.string(function.name),
        }
        slots = {slot: end for slot, end in references.items() if end is not None}
        if (debug := function.info.get("debug_metadata_index", -1)) != -1:
            slots[5] = debug
        return encoder.pack(template("SubGraph", frozenset(slots)), slots)

    def _indices(self, values: list[Value], index: Mapping[Value | None, int], absent: bool) -> int | None:
        return None if absent and not values else self.encoder.vector("int32", [index[v] for v in values])

    def _operator(self, op: Op, pack: OperatorPacker, index: Mapping[Value | None, int]) -> int:
        try:
            if op.info or isinstance(op, Custom):
                return self._operator_table(op, pack, index)
            return pack(op, self.codes.index(op.name, None, 1), index)
        except (KeyError, OverflowError, TypeError, ValueError, struct.error) as error:
            place = op.location or next((f"'{v.name}'" for v in op.results), "an operator without results")
            raise VerificationError(f"{place}: {op.name} cannot be written: {error}") from error

    def _operator_table(self, op: Op, pack: OperatorPacker, index: Mapping[Value | None, int]) -> int:
        info = op.info
        custom = op.attributes.get("custom_code") if isinstance(op, Custom) else None
        opcode = self.codes.index(op.name, custom, info.get("version", 1), info.get("opcode"))
        large = info.get("large_custom_options")
        if large is None:
            return pack(op, opcode, index)
        offset, size = large
        fields = pack.fields(op, opcode, index)
        fields |= {"large_custom_options_offset": offset, "large_custom_options_size": size}
        options = fields.pop("custom_options") if offset > 1 else None
        end = self.encoder.table("Operator", fields)
        if options is not None:
            self._put_place(_LARGE_OFFSET, self._append(options))
        return end

    def _signature(self, signature: Signature) -> dict[str, Any]:
        index = self.tensors[signature.function].index

        def maps(pairs: list[tuple[str | None, Value]] | None) -> list[dict[str, Any]] | None:
            return None if pairs is None else [{"name": name, "tensor_index": index[value]} for name, value in pairs]

        return {
            "inputs": maps(signature.inputs),
            "outputs": maps(signature.outputs),
            "signature_key": signature.key,
            "subgraph_index": signature.function,
            **signature.info,
        }
