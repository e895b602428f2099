"""Tables of tensors and operators as bytes: the two tables of which a model has thousands.

Each is packed with one `struct` call if it has only the common fields. Others go through `Encoder.table`, which differs
only in the order of the bytes. The vectors of tensor indices of an operator directly follow its table.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from tflq.base.errors import VerificationError
from tflq.dialects.tfl.state import Custom
from tflq.formats.flatbuffer.codec import Encoder, string_bytes, template
from tflq.formats.flatbuffer.layout import (
    enum,
    options_field,
    table,
    union,
)
from tflq.formats.tflite.options import check_options, options_table, usual_table
from tflq.formats.tflite.tensors import (
    TENSOR_TYPES,
    quantization_fields,
    shape_fields,
    tensor_fields,
    without_fields,
    without_tensors,
)
from tflq.ir.ops import Buffer, Op, Value
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


class _TensorTable:
    """The table of a tensor of known dims, followed by the dims.

    pack: takes the distance of the vtable, the offset of the shape, the buffer if there is one, the offset of the name,
    that of the quantization if there is one, `flags`, the number of dims, and the dims.
    """

    __slots__ = ("flags", "name", "pack", "quantization", "shape", "size", "vtable")

    def __init__(
        self,
        pack: Callable[..., bytes],
        vtable: int,
        size: int,
        shape: int,
        name: int,
        quantization: int,
        flags: tuple[int | bool, ...],
    ) -> None:
        self.pack: Final = pack
        self.vtable: Final = vtable
        self.size: Final = size
        self.shape: Final = shape
        self.name: Final = name
        self.quantization: Final = quantization  # the place of that offset in the table
        self.flags: Final = flags  # the type, if it is not 0, and has_rank, if it is true


_TensorKey: TypeAlias = tuple[int, ScalarType, bool, bool, bool]
"""Dims, type, and whether there are a buffer, quantization, and has_rank."""
_RANKLESS: Final[Mapping[str, Any]] = {"has_rank": False}
"""`Value.info` of the tensors of older files."""


class TensorPacker:
    """Writes `Tensor` tables. `index`: the places of the tensors that quantization details name."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._forms: dict[_TensorKey, _TensorTable] = {}

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
            form = forms.get(key) or self._table_form(*key)
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

    def _table_form(
        self, count: int, storage: ScalarType, has_buffer: bool, quantized: bool, ranked: bool
    ) -> _TensorTable | None:
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
        result = _TensorTable(pack, vtable, name, *places, tuple(filter(None, flags.values())))
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


class _Numbers:
    """An options table all of whose fields are numbers of at most four bytes."""

    __slots__ = ("code", "first_union", "member", "names")

    def __init__(self, member: str, code: int, first_union: bool, names: tuple[str, ...]) -> None:
        self.member: Final = member
        self.code: Final = code
        self.first_union: Final = first_union
        self.names: Final = names


@cache
def _numbers(member: str) -> _Numbers | None:
    fields = table(member).fields
    if any(f.is_offset or f.size > 4 for f in fields):
        return None
    first = options_field(member) == "builtin_options"
    code = union("BuiltinOptions" if first else "BuiltinOptions2").values[member]
    return _Numbers(member, code, first, tuple(f.name for f in fields))


class _OperatorForm:
    """The form of operators of one name and options table: the `known` attributes, and `options` if `struct` can pack
    them. short: whether their tables can have the common fields only."""

    __slots__ = ("known", "options", "short", "union_slot")

    def __init__(self, known: frozenset[str], options: _Numbers | None, short: bool, union_slot: int) -> None:
        self.known: Final = known
        self.options: Final = options
        self.short: Final = short
        self.union_slot: Final = union_slot  # of the options' type; 0 without options


@cache
def _operator_form(name: str, member: str | None) -> _OperatorForm:
    usual = member or usual_table(name)
    known = frozenset(f.name for f in table(usual).fields) if usual else frozenset[str]()
    if name == Custom.op_name:
        known |= {"custom_code"}
    options = None if member is None else _numbers(member)
    union_slot = 0 if options is None else 3 if options.first_union else 11
    return _OperatorForm(known, options, member is None or options is not None, union_slot)


class _OperatorTable:
    """The table of an operator, followed by its vectors of indices."""

    __slots__ = ("head", "options", "pack", "size", "vtable")

    def __init__(
        self, pack: Callable[..., bytes], vtable: bytes, size: int, options: int, head: tuple[int, ...]
    ) -> None:
        self.pack: Final = pack
        self.vtable: Final = vtable
        self.size: Final = size
        self.options: Final = options  # place of the options offset in the table
        self.head: Final = head  # the place of the code, if it is not 0, and the offsets of the vectors, as stored


@cache
def _operator_table(inputs: int, outputs: int, opcode: int, union_slot: int) -> _OperatorTable:
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
    return _OperatorTable(pack, form.vtable, total, form.offsets.get(union_slot + 1, 0), (*code, first, second))


_Packing: TypeAlias = tuple[str | None, _OperatorForm, _OperatorTable | None]
"""The options table of an operator, what it may have, and its own table; None if that is encoded field by field."""


class OperatorPacker:
    """Writes `Operator` tables. Operators with equal options share the table of the options."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._bodies: dict[tuple[Any, ...], int] = {}
        self._usual: dict[tuple[str, int, int, int], _Packing] = {}

    def __call__(self, op: Op, opcode: int, index: Mapping[Value | None, int]) -> int:
        """The operator's `end`. index: the place of each tensor, −1 for None."""
        operands, results, attributes = op.operands, op.results, op.attributes
        inputs, outputs = len(operands), len(results)
        key = op.name, opcode, inputs, outputs
        usual = None if op.info or op.intermediates else self._usual.get(key)
        member, form, record = usual or self._packing(op, key)
        if not attributes.keys() <= form.known:
            unknown = sorted(attributes.keys() - form.known)
            raise ValueError(f"{member or 'an operator without options'} has no {unknown[0]}")
        encoder, numbers, place = self.encoder, form.options, index.__getitem__
        if record is None:
            return encoder.table("Operator", self.fields(op, opcode, index))
        options = 0
        if numbers is not None:
            values = (numbers.member, *map(attributes.get, numbers.names))
            if None in values:
                check_options(numbers.member, attributes)
            options = self._bodies.get(values) or encoder.table(numbers.member, attributes)
            self._bodies[values] = options
        vtable = encoder.vtable(record.vtable)
        end = encoder.end = encoder.end + record.size
        union = () if numbers is None else (end - record.options - options, numbers.code)
        indices = (inputs, *map(place, operands), outputs, *map(place, results))
        encoder.chunks.append(record.pack(vtable - end, *record.head, *union, *indices))
        return end

    def _packing(self, op: Op, key: tuple[str, int, int, int]) -> _Packing:
        """The packing of an operator, cached by name, code and numbers of operands and results if it has no more."""
        _, opcode, inputs, outputs = key
        member = options_table(op) if op.info else usual_table(op.name)
        form = _operator_form(op.name, member)
        if not form.short or op.intermediates or not op.info.keys() <= _WITHOUT_FIELD:
            return member, form, None
        packing = member, form, _operator_table(inputs, outputs, opcode, form.union_slot)
        if not op.info:
            self._usual[key] = packing
        return packing

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
