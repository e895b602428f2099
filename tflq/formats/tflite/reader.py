"""A TFLite file → `Module`. Files are mapped; constants are views of the mapping.

The bytes are checked before anything is decoded (`structure.check`), the module after it is built
(`verify.verify_module`). The result is a valid module, or an `InvalidModelError` that says what is wrong and where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tflq.base.errors import InvalidModelError
from tflq.dialects.declare import Operator
from tflq.dialects.tfl import op_name
from tflq.dialects.traits import SetsElementType
from tflq.formats.flatbuffer.codec import Decoder
from tflq.formats.flatbuffer.layout import OpcodeTable, read_attributes
from tflq.formats.flatbuffer.source import Source, open_source
from tflq.formats.flatbuffer.structure import check, find_archive
from tflq.formats.tflite.checks import verify_module
from tflq.formats.tflite.tensors import read_tensor, resolve_details
from tflq.ir.module import Function, Metadata, Module, Signature
from tflq.ir.ops import NO_DATA, NO_INFO, Buffer, Location, Op, Value
from tflq.ir.verifier import Notes

_MODEL_INFO: Final = ("metadata_buffer", "external_buffer_groups", "external_buffers")


def read(source: Source) -> Module:
    """The module of a path, of bytes or of a file object. InvalidModelError if it is not a valid model."""
    data, name = open_source(source)
    try:
        check(data)
        reader = _Reader(data, name)
        module = reader.module()
        verify_module(module, reader.notes)
    except InvalidModelError as error:
        raise error.of_file(name) from None
    return module


class _Reader:
    """Builds the module of one file."""

    def __init__(self, data: memoryview, source: str) -> None:
        self.data = data
        self.array = np.frombuffer(data, np.uint8)
        self.source = source
        self.notes = Notes()
        self.model = Decoder(data).root("Model")
        self.buffers = [self._buffer(i, fields) for i, fields in enumerate(self.model["buffers"] or ())]
        self.codes: list[Mapping[str, Any]] = self.model["operator_codes"] or []
        table = OpcodeTable(self.codes)
        self.builtins = table.builtins
        self.first_row = [table.first[key] for key in table.keys]

    def module(self) -> Module:
        model = self.model
        info = {key: model[key] for key in _MODEL_INFO if model[key] is not None}
        if absent := [key for key in ("operator_codes", "subgraphs", "buffers") if model[key] is None]:
            info["absent"] = tuple(absent)
        if model["buffers"] == []:
            info["no_buffers"] = True
        if archive := find_archive(self.data):
            info["archive"] = vars(archive)
        functions = [self._function(i, fields) for i, fields in enumerate(model["subgraphs"] or ())]
        signatures, metadata = model["signature_defs"], model["metadata"]
        return Module(
            functions,
            None if signatures is None else [self._signature(i, s, functions) for i, s in enumerate(signatures)],
            None if metadata is None else [self._metadata(i, m) for i, m in enumerate(metadata)],
            model["description"],
            model["version"],
            self.buffers,
            self.codes,
            info or NO_INFO,
            self.source,
        )

    def _buffer(self, index: int, fields: Mapping[str, Any]) -> Buffer:
        data, offset, size = fields["data"], fields["offset"], fields["size"]
        if not offset and not size:
            return Buffer(NO_DATA if data is None else data)
        outside = {"offset": offset, "size": size}
        if offset <= 1:  # a placeholder: the schema calls offsets valid only above 1
            return Buffer(NO_DATA if data is None else data, outside)
        if data is not None and data.size:
            raise InvalidModelError(f"buffers[{index}]", f"data both inside ({data.size} bytes) and at offset {offset}")
        return Buffer(self._outside(offset, size, f"buffers[{index}]"), outside)

    def _outside(self, offset: int, size: int, where: str) -> np.ndarray:
        if offset + size > len(self.data):
            raise InvalidModelError(
                where, f"bytes {offset} to {offset + size} are outside the file of {len(self.data)}"
            )
        return self.array[offset : offset + size]

    def _function(self, index: int, fields: Mapping[str, Any]) -> Function:
        where = f"subgraphs[{index}]"
        tensors = [self._tensor(f"{where}.tensors[{i}]", t) for i, t in enumerate(fields["tensors"] or ())]
        for i, value in enumerate(tensors):
            if (value.info.get("quantization") or {}).get("details"):
                try:
                    resolve_details(value, tensors)
                except IndexError as error:
                    raise InvalidModelError(f"{where}.tensors[{i}].quantization.details", str(error)) from None
        ops = [self._op(index, i, op, tensors) for i, op in enumerate(fields["operators"] or ())]
        info: dict[str, Any] = {}
        if fields["debug_metadata_index"] != -1:
            info["debug_metadata_index"] = fields["debug_metadata_index"]
        if absent := [key for key in ("tensors", "inputs", "outputs", "operators") if fields[key] is None]:
            info["absent"] = tuple(absent)
        inputs = self._apart(_values(fields["inputs"], tensors, f"{where}.inputs"), tensors, index)
        outputs = _values(fields["outputs"], tensors, f"{where}.outputs")
        return Function(fields["name"], inputs, outputs, ops, tensors, info or NO_INFO)

    def _apart(self, inputs: list[Value], tensors: list[Value], function: int) -> list[Value]:
        """The inputs of a subgraph, each a value of its own.

        Of a tensor that is listed twice the last one counts, since an interpreter sets inputs in order. The others
        become tensors that nothing reads.
        """
        last = {value: place for place, value in enumerate(inputs)}
        for place, value in enumerate(inputs):
            if last[value] != place:
                what = (
                    f"tensor '{value.name}' is listed twice as an input; here these are two, and the last one is read"
                )
                self.notes.warn(f"subgraph {function}", what, remedy="list it once")
                inputs[place] = Value(value.type, value.name, info=value.info)
                tensors.append(inputs[place])
        return inputs

    def _tensor(self, where: str, fields: Mapping[str, Any]) -> Value:
        if fields["buffer"] >= max(len(self.buffers), 1):
            reason = f"there is no buffer {fields['buffer']} among {len(self.buffers)}"
            raise InvalidModelError(f"{where}.buffer", reason)
        return read_tensor(fields, self.buffers)

    def _op(self, function: int, index: int, fields: Mapping[str, Any], tensors: list[Value]) -> Op:
        where = f"subgraphs[{function}].operators[{index}]"
        row = fields["opcode_index"]
        if row >= len(self.codes):
            reason = f"there is no operator code {row} among {len(self.codes)}"
            raise InvalidModelError(f"{where}.opcode_index", reason)
        builtin = self.builtins[row]
        info: dict[str, Any] = {}
        try:
            attributes = read_attributes(fields, builtin, info)
        except InvalidModelError as error:
            raise error.inside(where) from None
        if builtin == "CUSTOM":
            attributes = {"custom_code": self.codes[row]["custom_code"] or "", **attributes}
        if self.codes[row]["version"] != 1:
            info["version"] = self.codes[row]["version"]
        if self.first_row[row] != row:
            info["opcode"] = row
        self._keep_operator_form(fields, info, where)
        inputs = _values(fields["inputs"], tensors, f"{where}.inputs", -1)
        results = _values(fields["outputs"], tensors, f"{where}.outputs")
        intermediates = _values(fields["intermediates"], tensors, f"{where}.intermediates", -1)
        location = Location(self.source, function, index, builtin, results[0].name if results else "")
        name = op_name(builtin)
        op = Op(name, inputs, results, attributes, location, info=info or NO_INFO, intermediates=intermediates)
        if isinstance(op, Operator) and (sets := op.trait(SetsElementType)) is not None:
            sets.restate(op, self.notes)
        return op

    def _keep_operator_form(self, fields: Mapping[str, Any], info: dict[str, Any], where: str) -> None:
        if absent := [key for key in ("inputs", "outputs") if fields[key] is None]:
            info["absent"] = tuple(absent)
        if fields["intermediates"] is not None and not len(fields["intermediates"]):
            info["intermediates"] = ()
        offset, size = fields["large_custom_options_offset"], fields["large_custom_options_size"]
        if offset or size:
            info["large_custom_options"] = (offset, size)
        if offset > 1:
            if "custom_options" in info:
                raise InvalidModelError(
                    f"{where}.large_custom_options_offset", "custom options both inside and outside"
                )
            info["custom_options"] = self._outside(offset, size, f"{where}.large_custom_options_offset")

    def _signature(self, index: int, fields: Mapping[str, Any], functions: Sequence[Function]) -> Signature:
        where, function = f"signature_defs[{index}]", fields["subgraph_index"]
        if function >= len(functions):
            reason = f"there is no subgraph {function} among {len(functions)}"
            raise InvalidModelError(f"{where}.subgraph_index", reason)
        tensors = functions[function].tensors

        def pairs(key: str) -> list[tuple[str | None, Value]] | None:
            if fields[key] is None:
                return None
            values = _values([m["tensor_index"] for m in fields[key]], tensors, f"{where}.{key}")
            return [(m["name"], v) for m, v in zip(fields[key], values, strict=True)]

        tag = fields["deprecated_tag"]
        info = NO_INFO if tag is None else {"deprecated_tag": tag}
        return Signature(fields["signature_key"], function, pairs("inputs"), pairs("outputs"), info)

    def _metadata(self, index: int, fields: Mapping[str, Any]) -> Metadata:
        if fields["buffer"] >= len(self.buffers):
            reason = f"there is no buffer {fields['buffer']} among {len(self.buffers)}"
            raise InvalidModelError(f"metadata[{index}].buffer", reason)
        return Metadata(fields["name"], self.buffers[fields["buffer"]])


def _values(indices: Sequence[int] | None, tensors: Sequence[Value], where: str, least: int = 0) -> list[Any]:
    """The tensors of these indices, which are at least 0; or −1, which is None."""
    count, listed = len(tensors), () if indices is None else indices
    for place, index in enumerate(listed):
        if not least <= index < count:
            raise InvalidModelError(f"{where}[{place}]", f"there is no tensor {index} among {count}")
    return [None if i == -1 else tensors[i] for i in listed]
