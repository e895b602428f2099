"""`Module` → a TFLite file.

A file has its tables first, then the constants, each aligned to 16 bytes, in the order of the buffer table. In a file
of 2 GiB or more the constants are behind the flatbuffer, at `Buffer.offset` and with `size`, counted from the start of
the file (schema.fbs, version 3c).

The tensor table is `Function.tensors`, then other values in the order of their first use. The buffer table is
`Module.buffers`, then the buffers of new constants. The operator codes are `Module.operator_codes`, then new ones.

The two tables of which a model has thousands, `Tensor` and `Operator`, are each packed with one `struct` call if they
have only the common fields. Others go through `Encoder.table`, which differs only in the order of the bytes. The
vectors of tensor indices of an operator directly follow its table.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.base.errors import VerificationError
from tflq.base.files import FilePath, Pieces, replace_file
from tflq.base.light import dataclass
from tflq.dialects.tfl.state import Custom
from tflq.formats.flatbuffer.codec import ALIGNMENT, Encoder, Piece, string_bytes, template
from tflq.formats.flatbuffer.layout import (
    OpcodeTable,
    enum,
    options_field,
    table,
    union,
)
from tflq.formats.flatbuffer.structure import Archive, place_archive
from tflq.formats.tflite.options import check_options, options_table, usual_table
from tflq.formats.tflite.tensors import (
    TENSOR_TYPES,
    quantization_fields,
    shape_fields,
    tensor_fields,
    without_fields,
    without_tensors,
)
from tflq.ir.core import NO_DATA, Buffer, Function, Module, Op, Signature, Value
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType

_SLOTS: Final = tuple(
    table("Tensor").by_name[name].slot
    for name in ("shape", "type", "buffer", "name", "quantization", "shape_signature", "has_rank")
)
_SHAPE, _TYPE, _BUFFER, _NAME, _QUANTIZATION, _, _HAS_RANK = _SLOTS
_UNCOMMON: Final = frozenset(("is_variable", "sparsity", "variant_tensors", "external_buffer", "name"))
"""Entries of `Value.info` that are fields of the tensor's table."""
_WITHOUT_FIELD: Final = frozenset(("version", "opcode", "options"))
"""Entries of `Op.info` that are not fields of the operator's table."""
_QUANTIZATION_FIELDS: Final = frozenset(("min", "max", "zero_point", "quantized_dimension"))
"""Entries of `Value.info` that are fields of its quantization."""

_SCALE, _ZERO_POINT, _DIMENSION = (
    table("QuantizationParameters").by_name[name].slot for name in ("scale", "zero_point", "quantized_dimension")
)
_PER_LAYER: Final = template("QuantizationParameters", frozenset((_SCALE, _ZERO_POINT)))
_PER_LAYER_PACK: Final = struct.Struct("<iIIIfIq").pack


@cache
def _ints(count: int) -> Callable[..., bytes]:
    return struct.Struct(f"<I{count}i").pack


@cache
def _type_code(storage: ScalarType) -> int:
    if storage not in TENSOR_TYPES:
        raise VerificationError(without_tensors(storage))
    return enum("TensorType").values[TENSOR_TYPES[storage]]


@dataclass(frozen=True, slots=True)
class _TensorForm:
    """The table of a tensor of known dims, followed by the dims.

    pack: takes the distance of the vtable, the offset of the shape, the buffer if there is one, the offset of the name,
    that of the quantization if there is one, `flags`, the number of dims, and the dims.
    """

    pack: Callable[..., bytes]
    vtable: int
    size: int
    shape: int
    name: int
    quantization: int  # the place of that offset in the table
    flags: tuple[int | bool, ...]  # the type, if it is not 0, and has_rank, if it is true


_FormKey: TypeAlias = tuple[int, ScalarType, bool, bool, bool]
"""Dims, type, and whether there are a buffer, quantization, and has_rank."""
_RANKLESS: Final[Mapping[str, Any]] = {"has_rank": False}
"""`Value.info` of the tensors of older files."""


class TensorPacker:
    """Writes `Tensor` tables. `index`: the places of the tensors that quantization details name."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._forms: dict[_FormKey, _TensorForm] = {}

    def rows(
        self, values: Sequence[Value], buffers: Mapping[Buffer, int], index: Mapping[Value | None, int]
    ) -> Sequence[int]:
        """The `end` of each tensor, the last one written first. A tensor of known dims is its table, the dims and the
        name in one piece, behind which its quantization is."""
        encoder, forms, ends = self.encoder, self._forms, list[int]()
        append = encoder.chunks.append
        for value in reversed(values):
            type, buffer = value.type, 0 if value.buffer is None else buffers[value.buffer]
            shape, quantized, ranked = type.shape, type.element.__class__ is not ScalarType, not value.info
            if shape is None or None in shape or not (ranked or (shape and value.info == _RANKLESS)):
                ends.append(self._table(value, buffer, index))
                continue
            count = len(shape)
            key = count, type.storage, buffer > 0, quantized, ranked
            form = forms.get(key) or self._form(*key)
            quantization = self._quantization(value, index) if quantized and form is not None else None
            if form is None or (quantized and quantization is None):
                ends.append(self._table(value, buffer, index))
                continue
            name = string_bytes(value.name)
            end = encoder.end = encoder.end + form.size + len(name)
            row: tuple[int, ...] = (form.shape, buffer, form.name) if buffer else (form.shape, form.name)
            if quantization is not None:
                row = (*row, end - form.quantization - quantization)
            append(form.pack(form.vtable - end, *row, *form.flags, count, *shape) + name)
            ends.append(end)
        return ends[::-1]

    def _table(self, value: Value, buffer: int, index: Mapping[Value | None, int]) -> int:
        """The `end` of any tensor."""
        encoder, info = self.encoder, value.info
        if info and not _UNCOMMON.isdisjoint(info):
            fields = tensor_fields(value)
            fields["quantization"] = _with_indices(fields["quantization"], index)
            return encoder.table("Tensor", {**fields, "buffer": buffer})
        stored, signature, has_rank = shape_fields(value)
        quantization = self._quantization(value, index)
        name = encoder.string(value.name)
        dims = None if stored is None else self._dims(stored)
        signed = None if signature is None else self._dims(signature)
        items = (dims, _type_code(value.type.storage), buffer, name, quantization, signed, has_rank)
        # every end is more than 0, and 0 is the default of the numbers
        return encoder.of_slots("Tensor", {slot: item for slot, item in zip(_SLOTS, items, strict=True) if item})

    def _form(
        self, count: int, storage: ScalarType, has_buffer: bool, quantized: bool, ranked: bool
    ) -> _TensorForm | None:
        """None for the first of a form other than that of most tensors: its vtable comes behind what it refers to."""
        flags = {_TYPE: _type_code(storage), _HAS_RANK: ranked}
        slots = [slot for slot, flag in flags.items() if flag]
        slots += [slot for slot, is_there in ((_BUFFER, has_buffer), (_QUANTIZATION, quantized)) if is_there]
        form = template("Tensor", frozenset((_SHAPE, _NAME, *slots)))
        usual = ranked and not quantized
        vtable = self.encoder.vtable(form.vtable) if usual else self.encoder.known_vtable(form.vtable)
        if vtable is None:
            return None
        pad, at = -form.size % 4, form.offsets
        codes = "".join("b" if slot == _TYPE else "?" if slot == _HAS_RANK else "I" for slot in form.slots)
        pack = struct.Struct(f"<i{codes}{pad}xI{count}i").pack
        shape, name = 4 + form.size + pad, 8 + form.size + pad + 4 * count
        places = shape - at[_SHAPE], name - at[_NAME], at.get(_QUANTIZATION, 0)
        result = _TensorForm(pack, vtable, name, *places, tuple(filter(None, flags.values())))
        self._forms[count, storage, has_buffer, quantized, ranked] = result
        return result

    def _dims(self, dims: Sequence[int]) -> int:
        encoder, count = self.encoder, len(dims)
        encoder.chunks.append(_ints(count)(count, *dims))
        encoder.end += 4 + 4 * count
        return encoder.end

    def _quantization(self, value: Value, index: Mapping[Value | None, int]) -> int | None:
        element, encoder = value.type.element, self.encoder
        usual = not value.info or _QUANTIZATION_FIELDS.isdisjoint(value.info)
        if isinstance(element, UniformQuantizedType) and usual and not without_fields(element):
            vtable = encoder.vtable(_PER_LAYER.vtable)
            end = encoder.end = encoder.reserve(32, 8)
            # scale vector at byte 12 of the table, zero points at 20, so that the int64 at 28 - 4 is aligned
            encoder.chunks.append(_PER_LAYER_PACK(vtable - end, 8, 12, 1, element.scale, 1, element.zero_point))
            return end
        if isinstance(element, UniformQuantizedPerAxisType) and usual and not without_fields(element):
            scales = encoder.vector("float32", element.scales)
            slots = {_SCALE: scales, _ZERO_POINT: encoder.vector("int64", element.zero_points, 8)}
            if element.axis and value.type.rank != 1:
                slots[_DIMENSION] = element.axis
            return encoder.of_slots("QuantizationParameters", slots)
        fields = _with_indices(quantization_fields(value), index)
        return None if fields is None else encoder.table("QuantizationParameters", fields)


def _with_indices(
    quantization: Mapping[str, Any] | None, index: Mapping[Value | None, int]
) -> Mapping[str, Any] | None:
    """Quantization in which the tensors that its details name are indices again."""
    if quantization is None or quantization.get("details") is None:
        return quantization
    member, details = quantization["details"]
    indices = {key: index[v] if isinstance(v, Value) else v for key, v in details.items()}
    if "zero_points" in indices and indices["zero_points"] is None:
        indices["zero_points"] = -1
    return {**quantization, "details": (member, indices)}


@dataclass(frozen=True, slots=True)
class _Options:
    """An options table all of whose fields are numbers of at most four bytes."""

    member: str
    code: int
    first_union: bool
    names: tuple[str, ...]


@cache
def _options(member: str) -> _Options | None:
    fields = table(member).fields
    if any(f.is_offset or f.size > 4 for f in fields):
        return None
    first = options_field(member) == "builtin_options"
    code = union("BuiltinOptions" if first else "BuiltinOptions2").values[member]
    return _Options(member, code, first, tuple(f.name for f in fields))


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of operators of one name and options table: the `known` attributes, and `options` if `struct` can pack
    them. short: whether their tables can have the common fields only."""

    known: frozenset[str]
    options: _Options | None
    short: bool
    union_slot: int  # of the options' type; 0 without options


@cache
def _form(name: str, member: str | None) -> _Form:
    usual = member or usual_table(name)
    known = frozenset(f.name for f in table(usual).fields) if usual else frozenset[str]()
    if name == Custom.op_name:
        known |= {"custom_code"}
    options = None if member is None else _options(member)
    union_slot = 0 if options is None else 3 if options.first_union else 11
    return _Form(known, options, member is None or options is not None, union_slot)


@dataclass(frozen=True, slots=True)
class _Record:
    """The table of an operator, followed by its vectors of indices."""

    pack: Callable[..., bytes]
    vtable: bytes
    size: int
    options: int  # place of the options offset in the table
    head: tuple[int, ...]  # the place of the code, if it is not 0, and the offsets of the vectors, as stored


@cache
def _record(inputs: int, outputs: int, opcode: int, union_slot: int) -> _Record:
    code = (opcode,) if opcode else ()
    slots = {1, 2, *([0] if code else []), *((union_slot, union_slot + 1) if union_slot else ())}
    form = template("Operator", frozenset(slots))
    numbers = "".join("B" if slot == union_slot and union_slot else "I" for slot in form.slots)
    pad = -form.size % 4
    size = 4 + form.size + pad
    pack = struct.Struct(f"<i{numbers}{pad}xI{inputs}iI{outputs}i").pack
    first = size - form.offsets[1]
    second = size + 4 + 4 * inputs - form.offsets[2]
    total = size + 8 + 4 * (inputs + outputs)
    return _Record(pack, form.vtable, total, form.offsets.get(union_slot + 1, 0), (*code, first, second))


_Plan: TypeAlias = tuple[str | None, _Form, _Record | None]
"""The options table of an operator, what it may have, and its own table; None if that is encoded field by field."""


class OperatorPacker:
    """Writes `Operator` tables. Operators with equal options share the table of the options."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._bodies: dict[tuple[Any, ...], int] = {}
        self._usual: dict[tuple[str, int, int, int], _Plan] = {}

    def __call__(self, op: Op, opcode: int, index: Mapping[Value | None, int]) -> int:
        """The operator's `end`. index: the place of each tensor, −1 for None."""
        operands, results, attributes = op.operands, op.results, op.attributes
        inputs, outputs = len(operands), len(results)
        key = op.name, opcode, inputs, outputs
        usual = None if op.info or op.intermediates else self._usual.get(key)
        member, form, record = usual or self._plan(op, key)
        if not attributes.keys() <= form.known:
            unknown = sorted(attributes.keys() - form.known)
            raise ValueError(f"{member or 'an operator without options'} has no {unknown[0]}")
        encoder, plan, place = self.encoder, form.options, index.__getitem__
        if record is None:
            return encoder.table("Operator", self.fields(op, opcode, index))
        options = 0
        if plan is not None:
            values = (plan.member, *map(attributes.get, plan.names))
            if None in values:
                check_options(plan.member, attributes)
            options = self._bodies.get(values) or encoder.table(plan.member, attributes)
            self._bodies[values] = options
        vtable = encoder.vtable(record.vtable)
        end = encoder.end = encoder.end + record.size
        union = () if plan is None else (end - record.options - options, plan.code)
        indices = (inputs, *map(place, operands), outputs, *map(place, results))
        encoder.chunks.append(record.pack(vtable - end, *record.head, *union, *indices))
        return end

    def _plan(self, op: Op, key: tuple[str, int, int, int]) -> _Plan:
        """The plan to write an operator, cached by name, code and numbers of operands and results if it has no more."""
        _, opcode, inputs, outputs = key
        member = options_table(op) if op.info else usual_table(op.name)
        form = _form(op.name, member)
        if not form.short or op.intermediates or not op.info.keys() <= _WITHOUT_FIELD:
            return member, form, None
        plan = member, form, _record(inputs, outputs, opcode, form.union_slot)
        if not op.info:
            self._usual[key] = plan
        return plan

    def fields(self, op: Op, opcode: int, index: Mapping[Value | None, int]) -> dict[str, Any]:
        """The `Operator` as nested dicts."""
        info, member = op.info, options_table(op)
        absent = info.get("absent", ())
        fields: dict[str, Any] = {
            "opcode_index": opcode,
            "inputs": None if "inputs" in absent and not op.operands else [index[v] for v in op.operands],
            "outputs": None if "outputs" in absent and not op.results else [index[v] for v in op.results],
            "intermediates": [index[v] for v in op.intermediates] if op.intermediates else info.get("intermediates"),
        }
        if member is not None:
            check_options(member, op.attributes)
            fields[options_field(member)] = (member, op.attributes)
        for key in ("custom_options", "custom_options_format", "mutating_variable_inputs", "debug_metadata_index"):
            fields[key] = info.get(key)
        return fields


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
