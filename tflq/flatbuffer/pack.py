"""The two tables of which a model has thousands, `Tensor` and `Operator`, each packed with one `struct` call.

This is for tables that have only the common fields. Others go through `Encoder.table`, which differs only in the order
of the bytes. The vectors of tensor indices of an operator directly follow its table.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import compress
from typing import Any, Final

from tflq.dialects.tfl import builtin_of
from tflq.dialects.tfl.state import Custom
from tflq.flatbuffer.codec import Encoder, Template, string_bytes, template
from tflq.flatbuffer.layout import enum, options_field, options_of, table, union, unstated_attributes
from tflq.flatbuffer.tensors import TENSOR_TYPES, quantization_fields, shape_fields, tensor_fields, without_fields
from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, UniformQuantizedPerAxisType, UniformQuantizedType
from tflq.light import dataclass

_SHAPE, _TYPE, _BUFFER, _NAME, _QUANTIZATION, _SIGNATURE, _HAS_RANK = (
    table("Tensor").by_name[name].slot
    for name in ("shape", "type", "buffer", "name", "quantization", "shape_signature", "has_rank")
)
_OPTIONAL: Final = (_SHAPE, _TYPE, _BUFFER, _QUANTIZATION, _SIGNATURE, _HAS_RANK)
_UNCOMMON: Final = frozenset(("is_variable", "sparsity", "variant_tensors", "external_buffer", "name"))
"""Entries of `Value.info` that are fields of the tensor's table."""
_WITHOUT_FIELD: Final = frozenset(("version", "opcode", "options"))
"""Entries of `Op.info` that are not fields of the operator's table."""
_STATED: Final = frozenset(("min", "max", "zero_point", "quantized_dimension"))
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
    return enum("TensorType").values[TENSOR_TYPES[storage]]


@dataclass(frozen=True, slots=True)
class _Plain:
    """The table of a tensor without quantization, followed by its dims. `pack` takes the distance of the vtable, the
    offset of the shape, the buffer if there is one, the offset of the name, `flags`, the number of dims, and the
    dims."""

    pack: Callable[..., bytes]
    vtable: int
    size: int
    shape: int
    name: int
    flags: tuple[int | bool, ...]  # the type, if it is not 0, and has_rank


class TensorPacker:
    """Writes `Tensor` tables. `index`: the places of the tensors that quantization details name."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._templates: dict[tuple[bool, ...], tuple[Template, int]] = {}
        self._plain: dict[tuple[int, int, bool], _Plain] = {}

    def __call__(self, value: Value, buffer: int, index: Mapping[Value | None, int]) -> int:
        """The tensor's `end`."""
        encoder, info, shape = self.encoder, value.info, value.type.shape
        if not info and shape is not None and value.type.element.__class__ is ScalarType and None not in shape:
            return self._plainly(value, shape, buffer)
        if info and not _UNCOMMON.isdisjoint(info):
            fields = tensor_fields(value)
            fields["quantization"] = _with_indices(fields["quantization"], index)
            return encoder.table("Tensor", {**fields, "buffer": buffer})
        stored, signature, has_rank = shape_fields(value)
        quantization = self._quantization(value, index)
        name = encoder.string(value.name)
        dims = None if stored is None else self._dims(stored)
        signed = None if signature is None else self._dims(signature)
        code = _type_code(value.type.storage)
        there = (dims is not None, code > 0, buffer > 0, quantization is not None, signed is not None, has_rank)
        form, vtable = self._templates.get(there) or self._template(there)
        at = form.offsets
        end = encoder.reserve(form.size, 4) + 4
        row: list[int | bool] = [vtable - end]
        if dims is not None:
            row.append(end - at[_SHAPE] - dims)
        if buffer:
            row.append(buffer)
        row.append(end - at[_NAME] - name)
        if quantization is not None:
            row.append(end - at[_QUANTIZATION] - quantization)
        if signed is not None:
            row.append(end - at[_SIGNATURE] - signed)
        if code:
            row.append(code)
        if has_rank:
            row.append(True)
        encoder.chunks.append(form.pack(*row))
        encoder.end = end
        return end

    def _plainly(self, value: Value, shape: Sequence[int | None], buffer: int) -> int:
        """The table, the dims and the name of a tensor of a plain type and known dims, in one piece."""
        encoder, code = self.encoder, _type_code(value.type.storage)
        count = len(shape)
        key = count, code, buffer > 0
        known = self._plain.get(key) or self._plain_form(*key)
        name = string_bytes(value.name)
        row = (known.shape, buffer, known.name) if buffer else (known.shape, known.name)
        end = encoder.end = encoder.end + known.size + len(name)
        table = known.pack(known.vtable - end, *row, *known.flags, count, *shape)
        encoder.chunks.append(table + name)
        return end

    def _plain_form(self, count: int, code: int, has_buffer: bool) -> _Plain:
        there = (True, code > 0, has_buffer, False, False, True)
        form, vtable = self._templates.get(there) or self._template(there)
        pad, fields = -form.size % 4, "III" if has_buffer else "II"
        flags = (code, True) if code else (True,)
        pack = struct.Struct(f"<i{fields}{'b?' if code else '?'}{pad}xI{count}i").pack
        shape, name = 4 + form.size + pad, 8 + form.size + pad + 4 * count
        at = form.offsets
        plain = _Plain(pack, vtable, name, shape - at[_SHAPE], name - at[_NAME], flags)
        self._plain[count, code, has_buffer] = plain
        return plain

    def _template(self, there: tuple[bool, ...]) -> tuple[Template, int]:
        """The layout of a table and the `end` of its vtable. there: which of `_OPTIONAL` it has."""
        form = template("Tensor", frozenset((_NAME, *compress(_OPTIONAL, there))))
        self._templates[there] = form, self.encoder.vtable(form.vtable)
        return self._templates[there]

    def _dims(self, dims: Sequence[int]) -> int:
        encoder, count = self.encoder, len(dims)
        encoder.chunks.append(_ints(count)(count, *dims))
        encoder.end += 4 + 4 * count
        return encoder.end

    def _quantization(self, value: Value, index: Mapping[Value | None, int]) -> int | None:
        element, encoder = value.type.element, self.encoder
        usual = not value.info or _STATED.isdisjoint(value.info)
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
    return _Options(code, first, tuple(f.name for f in fields))


def _member(op: Op) -> str | None:
    """The options table of an operator: the one it was read with, else the usual one of its builtin."""
    kept: str | None = op.info.get("options") if op.info else None
    if kept is None and ("options" not in op.info or _stated(op)):
        return _usual_member(op.name)
    return kept


def _stated(op: Op) -> bool:
    """Whether an operator that was read without options has been given attributes since."""
    unstated = unstated_attributes(builtin_of(op.name))
    return any(unstated.get(name) != value for name, value in op.attributes.items())


@cache
def _usual_member(name: str) -> str | None:
    return options_of(builtin_of(name))


@dataclass(frozen=True, slots=True)
class _Form:
    """What operators of one name and options table may have: `known` attributes, and `options` if `struct` can pack
    them. short: whether their tables can have the common fields only."""

    known: frozenset[str]
    options: _Options | None
    short: bool
    union_slot: int  # of the options' type; 0 without options


@cache
def _form(name: str, member: str | None) -> _Form:
    usual = member or _usual_member(name)
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


class OperatorPacker:
    """Writes `Operator` tables. Operators with equal options share the table of the options."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._bodies: dict[tuple[Any, ...], int] = {}

    def __call__(self, op: Op, opcode: int, index: Mapping[Value | None, int]) -> int:
        """The operator's `end`. index: the place of each tensor, −1 for None."""
        member, attributes, info = _member(op), op.attributes, op.info
        form = _form(op.name, member)
        if not attributes.keys() <= form.known:
            unknown = sorted(attributes.keys() - form.known)
            raise ValueError(f"{member or 'an operator without options'} has no {unknown[0]}")
        if not form.short or op.intermediates or (info and not info.keys() <= _WITHOUT_FIELD):
            return self.encoder.table("Operator", self.fields(op, opcode, index))
        encoder, plan = self.encoder, form.options
        place, operands, results = index.__getitem__, op.operands, op.results
        inputs, outputs = len(operands), len(results)
        record = _record(inputs, outputs, opcode, form.union_slot)
        options = 0
        if plan is not None:
            key = (member, *map(attributes.get, plan.names))
            options = self._bodies.get(key) or self._body(key, attributes)
        vtable = encoder.vtable(record.vtable)
        end = encoder.end = encoder.end + record.size
        union = () if plan is None else (end - record.options - options, plan.code)
        indices = (inputs, *map(place, operands), outputs, *map(place, results))
        encoder.chunks.append(record.pack(vtable - end, *record.head, *union, *indices))
        return end

    def _body(self, key: tuple[Any, ...], attributes: Mapping[str, Any]) -> int:
        """Writes an options table; its `end`."""
        encoder = self.encoder
        inline: dict[int, Any] = {}
        for field in table(key[0]).fields:
            value = attributes.get(field.name)
            if value is not None:
                number = enum(field.type).values[value] if field.kind == "enum" else value
                if number != field.default:
                    inline[field.slot] = number
        form = template(key[0], frozenset(inline))
        vtable = encoder.vtable(form.vtable)
        end = encoder.end = encoder.end + 4 + form.size + -form.size % 4
        body = form.pack(vtable - end, *(inline[slot] for slot in form.slots))
        encoder.chunks.append(body + bytes(-len(body) % 4))
        self._bodies[key] = end
        return end

    def fields(self, op: Op, opcode: int, index: Mapping[Value | None, int]) -> dict[str, Any]:
        """The `Operator` as nested dicts."""
        info, member = op.info, _member(op)
        absent = info.get("absent", ())
        fields: dict[str, Any] = {
            "opcode_index": opcode,
            "inputs": None if "inputs" in absent and not op.operands else [index[v] for v in op.operands],
            "outputs": None if "outputs" in absent and not op.results else [index[v] for v in op.results],
            "intermediates": [index[v] for v in op.intermediates] if op.intermediates else info.get("intermediates"),
        }
        if member is not None:
            fields[options_field(member)] = (member, op.attributes)
        for key in ("custom_options", "custom_options_format", "mutating_variable_inputs", "debug_metadata_index"):
            fields[key] = info.get(key)
        return fields
