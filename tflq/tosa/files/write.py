"""A module in the tosa form → a TOSA 1.0 flatbuffer.

One region with one block per function: the entry's is "main", then the functions it reaches by COND_IF and WHILE_LOOP.
Constants are CONST and CONST_SHAPE operators before their first use; equal compile-time-constant operands of a block
are one. A variable is a tensor marked so, in every block. Constants stay the views they are. A size that is not known
is -1, as tosa-opt writes it. Tensors are referred to by name, so names are unique in the whole file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from operator import sub
from typing import Any, Final, TypeAlias

from tflq.dialects.tosa.movement import Variable, VariableRead, VariableWrite
from tflq.errors import VerificationError
from tflq.flatbuffer.codec import ALIGNMENT, Encoder, Piece, Template, Written, string_bytes, template
from tflq.flatbuffer.layout import TOSA
from tflq.ir.core import Buffer, Function, Location, Module, Op, Value
from tflq.ir.rewriting import attribute_key
from tflq.ir.types import ScalarType, TensorType, element_storage, i8, index
from tflq.light import dataclass
from tflq.tosa.files.constants import attribute_table, dtype, member, packed, reached
from tflq.tosa.operands import Constant, operands, tosa_name

LARGEST: Final = 2**31
VARIABLE_OPERATORS: Final = frozenset({"VARIABLE_READ", "VARIABLE_WRITE"})
"""Copies from and to a variable's tensor: IDENTITY operators with the attribute table of what they are."""
_OPERATORS: Final = TOSA.enum("Op").values
_TYPES: Final = TOSA.enum("DType").values
_ATTRIBUTES: Final = TOSA.union("Attribute").values
VERSION: Final = {"_major": 1, "_minor": 0, "_patch": 0, "_draft": False}


@dataclass(frozen=True, slots=True)
class _Record:
    """A table in one piece with the vectors that follow it. `pack` takes the distance of the vtable, the fields in the
    order of the form's row, and each vector's size and elements."""

    form: Template
    pack: Callable[..., bytes]
    size: int

    @classmethod
    def of(cls, table: str, slots: Iterable[int], vectors: str) -> _Record:
        form = template(table, frozenset(slots), TOSA)
        made = struct.Struct(f"{form.pack.__self__.format}{-form.size % 4}x{vectors}")
        return cls(form, made.pack, made.size)


@cache
def _operator_record(inputs: int, outputs: int, has_location: bool) -> _Record:
    return _Record.of("TosaOperator", range(6 if has_location else 5), f"I{outputs}II{inputs}I")


@cache
def _tensor_record(rank: int, has_data: bool) -> _Record:
    return _Record.of("TosaTensor", range(4 if has_data else 3), f"I{rank}i")


class Names:
    """Gives each value a unique name: the one it has, if that is still free."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._of: dict[Value, str] = {}
        self._last: dict[str, int] = {}

    def __getitem__(self, value: Value) -> str:
        """The value's name."""
        name = self._of.get(value)
        if name is None:
            name = self._of[value] = self.free(value.name) if value.name else self.free("t", count=True)
        return name

    def reserve(self, values: Iterable[Value]) -> None:
        """Gives the values that have a name theirs, before another value can take it."""
        for value in values:
            if value.name:
                self[value]

    def free(self, name: str, *, count: bool = False) -> str:
        """A name that no value has: this one, or with a number, which `count` asks for."""
        made = name
        while count or made in self._taken:
            number = self._last[name] = self._last.get(name, -1 if count else 0) + 1
            made = f"{name}{number}" if count else f"{name}_{number}"
            if made not in self._taken:
                break
        self._taken.add(made)
        return made


def tosa_bytes(module: Module, function: int = 0, *, fetch: Iterable[Value] = ()) -> bytes:
    """The file of a function and those it calls; `fetch` are values inside it that become results as well.

    VerificationError if TOSA lacks an op or a type, or the file would have 2 GiB or more.
    """
    return b"".join(tosa_pieces(module, function, fetch=fetch))


def tosa_pieces(module: Module, function: int = 0, *, fetch: Iterable[Value] = ()) -> Iterable[Piece]:
    """The bytes of `tosa_bytes`, in order; large constants are the buffers themselves."""
    return _Writer(module, function, list(fetch)).pieces()


_Data: TypeAlias = tuple[Buffer, ScalarType]
_Operator: TypeAlias = tuple[str, list[str], list[str], dict[str, Any], str]
"""Its name in TOSA, inputs, outputs, attributes, and where it comes from."""
_Variables: TypeAlias = Mapping[str, tuple[Value, str]]
"""Initial value and name of the tensor, by name of the variable."""


class _Block:
    """One function's block: its operators, its tensors and shapes as dicts, in order. `data` is a buffer and its
    type."""

    def __init__(self, function: Function, names: Names, regions: Mapping[int, str], variables: _Variables) -> None:
        self.function = function
        self.names = names
        self.regions = regions
        self.variables = variables
        self.operators: list[_Operator] = []
        self.tensors: dict[str, dict[str, Any]] = {}
        self.shapes: list[dict[str, Any]] = []
        self._constants: dict[tuple[str, bytes], str] = {}
        self._places: dict[int, str] = {}

    def fill(self, fetch: Sequence[Value] = ()) -> None:
        """Builds all of it; `fetch` become results too."""
        for name, (initial, tensor) in self.variables.items():
            fields = {"variable": True, "variable_name": name, "data": _data(initial)}
            self._tensor(tensor, initial.type, **fields)
        self.inputs = [self.use(value) for value in self.function.inputs]
        for op in self.function.ops:
            try:
                self._operator(op)
            except (KeyError, TypeError, ValueError, IndexError) as error:
                place = op.location or next((f"'{v.name}'" for v in op.results), "an operator without results")
                raise VerificationError(f"{place}: {op.name} cannot be written: {error}") from error
        self.outputs = [self.use(value) for value in (*self.function.outputs, *fetch)]

    def use(self, value: Value, location: str = "") -> str:
        """A value's name, once its tensor is there; a constant has a CONST as well."""
        name = self.names[value]
        if name not in self.tensors:
            data = None
            if value.is_constant:
                self.operators.append(("CONST", [], [name], {}, location))
                data = _data(value)
            self._tensor(name, value.type, data=data)
        return name

    def _operator(self, op: Op) -> None:
        if isinstance(op, Variable):
            return
        location = op.info.get("location")
        if location is None:
            location = self._place(op.location)
        inputs = [
            self._constant(v, location) if isinstance(v, Constant) else self.use(v, location) for v in operands(op)
        ]
        outputs = [self.use(v) for v in op.results]
        operator = tosa_name(op).upper()
        if isinstance(op, VariableRead | VariableWrite):
            side = inputs if isinstance(op, VariableRead) else outputs
            side.append(self.variables[op.variable][1])
        self.operators.append((operator, inputs, outputs, attribute_table(op, self.regions), location))

    def _place(self, location: Location | None) -> str:
        """A location without its file; ops that come from one operator share it."""
        if location is None:
            return ""
        known = self._places.get(id(location))
        if known is None:
            known = self._places[id(location)] = location.place
        return known

    def _tensor(self, name: str, type: TensorType, **fields: Any) -> None:
        if type.shape is None:
            raise VerificationError(f"'{name}' has a rank that is not known")
        shape = [-1 if size is None else size for size in type.shape]
        self.tensors[name] = {"name": name, "shape": shape, "type": dtype(type.element), **fields}

    def _constant(self, constant: Constant, location: str) -> str:
        """The name of a compile-time-constant operand; equal ones are one tensor or shape."""
        kind = "SHAPE" if constant.is_shape else dtype(constant.element)
        key = kind, constant.array.tobytes()
        name = self._constants.get(key)
        if name is None:
            name = self._constants[key] = self.names.free("c", count=True)
            data = Buffer.of(constant.array), index if constant.is_shape else i8
            if constant.is_shape:
                self.shapes.append({"name": name, "rank": constant.array.size, "data": data})
            else:
                self.tensors[name] = {"name": name, "shape": constant.array.shape, "type": kind, "data": data}
            self.operators.append(("CONST_SHAPE" if constant.is_shape else "CONST", [], [name], {}, location))
        return name


class _Writer:
    """Writes one file."""

    def __init__(self, module: Module, function: int, fetch: list[Value]) -> None:
        self.encoder = Encoder(TOSA)
        functions = reached(module, [function])
        main = module.functions[function]
        names, labels = Names(), Names()
        names.reserve([*main.inputs, *main.outputs])
        for f in functions.values():
            names.reserve(f.values())
        regions = {i: labels.free("main" if f is main else f.name or f"region_{i}") for i, f in functions.items()}
        touching = Variable | VariableRead | VariableWrite
        used = {op.variable for f in functions.values() for op in f.ops if isinstance(op, touching)}
        declared = [op for op in module.ops() if isinstance(op, Variable) and op.variable in used]
        variables = {op.variable: (op.initial_value, names.free(op.variable)) for op in declared}
        self.blocks = {regions[i]: _Block(f, names, regions, variables) for i, f in functions.items()}
        for block in self.blocks.values():
            block.fill(fetch if block.function is main else ())
        self.data: dict[_Data, Written] = {}
        self.tables: dict[Hashable, Written] = {}

    def pieces(self) -> Iterable[Piece]:
        """The file's bytes, in order: tables, then the constants."""
        encoder = self.encoder
        tables = [t for block in self.blocks.values() for t in (*block.tensors.values(), *block.shapes)]
        for table in reversed(tables):
            self._data(table)
        self._check_size()
        regions = [{"name": name, "blocks": [self._block(name, block)]} for name, block in self.blocks.items()]
        encoder.finish(encoder.table("TosaGraph", {"version": VERSION, "regions": regions}))
        self._check_size()
        return encoder.pieces()

    def _check_size(self) -> None:
        if self.encoder.end >= LARGEST:
            raise VerificationError(f"{self.encoder.end} bytes or more: a TOSA flatbuffer ends at 2 GiB")

    def _data(self, table: dict[str, Any]) -> None:
        """Writes a table's constant and refers to it; those that share a buffer share it in the file."""
        data = table.get("data")
        if data is None:
            return
        buffer, element = data
        end = self.data.get(data)
        if end is None:
            end = self.data[data] = Written(self.encoder.bytes_vector(packed(buffer.data, element), ALIGNMENT))
        table["data"] = end

    def _block(self, name: str, block: _Block) -> dict[str, Any]:
        """The `TosaBasicBlock`, whose operators and tensors are written first."""
        operators = [self._operator(*fields) for fields in reversed(block.operators)]
        tensors = [self._tensor(fields) for fields in reversed(block.tensors.values())]
        return {
            "name": name,
            "operators": operators[::-1],
            "tensors": tensors[::-1],
            "inputs": block.inputs,
            "outputs": block.outputs,
            "shapes": block.shapes,
        }

    def _operator(
        self, operator: str, inputs: list[str], outputs: list[str], attributes: dict[str, Any], location: str
    ) -> Written:
        """A `TosaOperator`. Equal attributes share a table, as do equal locations."""
        encoder, kind = self.encoder, member(operator)
        code = _OPERATORS["IDENTITY" if operator in VARIABLE_OPERATORS else operator]
        table = self._once(kind, attributes, attribute_key(attributes) if attributes else None)
        slots = {0: code, 1: _ATTRIBUTES[kind], 2: table}
        if (end := self._operator_at_once(slots, inputs, outputs, location)) is not None:
            return end
        slots[3], slots[4] = encoder.strings(inputs), encoder.strings(outputs)
        if location:
            slots[5] = self._once("OpLocation", {"text": location}, location)
        return Written(encoder.of_slots("TosaOperator", slots))

    def _operator_at_once(
        self, slots: dict[int, int], inputs: list[str], outputs: list[str], location: str
    ) -> Written | None:
        """The table and its vectors in one piece; None if something is written between them for the first time."""
        encoder = self.encoder
        read, made = [encoder.shared_string(text) for text in inputs], encoder.known_strings(outputs)
        place = self.tables.get(("OpLocation", location)) if location else 0
        record = _operator_record(len(inputs), len(outputs), bool(location))
        vtable = encoder.known_vtable(record.form.vtable)
        if made is None or place is None or vtable is None:
            return None
        first = encoder.end + 4 * len(read)  # where the vectors begin
        second = first + 4 + 4 * len(made)
        end = encoder.end = encoder.end + record.size
        slots = {**slots, 3: first + 4, 4: second + 4, 5: place}
        row = [end - at - slots[slot] if at else slots[slot] for slot, at in record.form.row]
        of_made = map(sub, range(second, first + 4, -4), made)
        of_read = map(sub, range(first, first - 4 * len(read), -4), read)
        encoder.chunks.append(record.pack(vtable - end, *row, len(made), *of_made, len(read), *of_read))
        return Written(end)

    def _tensor(self, fields: dict[str, Any]) -> Written:
        """A `TosaTensor`."""
        encoder = self.encoder
        if "variable" in fields:
            return Written(encoder.table("TosaTensor", fields))
        name, shape, data, code = fields["name"], fields["shape"], fields["data"], _TYPES[fields["type"]]
        record = _tensor_record(len(shape), data is not None)
        vtable = encoder.known_vtable(record.form.vtable)
        if vtable is None:
            slots = {0: encoder.string(name), 1: encoder.vector("int32", shape), 2: code}
            return Written(encoder.of_slots("TosaTensor", slots if data is None else {**slots, 3: data}))
        text = string_bytes(name)
        named = encoder.end + len(text)
        end = encoder.end = named + record.size
        slots = {0: named, 1: named + 4 + 4 * len(shape), 2: code, 3: data}
        row = [end - at - slots[slot] if at else slots[slot] for slot, at in record.form.row]
        encoder.chunks.append(record.pack(vtable - end, *row, len(shape), *shape) + text)
        return Written(end)

    def _once(self, kind: str, fields: dict[str, Any], key: Hashable) -> Written:
        end = self.tables.get((kind, key))
        if end is None:
            end = self.tables[kind, key] = Written(self.encoder.table(kind, fields))
        return end


def _data(value: Value) -> _Data | None:
    return None if value.buffer is None else (value.buffer, element_storage(value.type.element))
