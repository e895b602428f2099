"""A module in the tosa form → a TOSA 1.0 flatbuffer.

One region with one block per function: the entry's is "main", then the functions it reaches by COND_IF and WHILE_LOOP.
Constants are CONST and CONST_SHAPE operators before their first use; equal compile-time-constant operands of a block
are one. A variable is a tensor marked so, in every block. Constants stay the views they are. A size that is not known
is -1, as tosa-opt writes it. Tensors are referred to by name, so names are unique in the whole file. The name of the
first region has the kernel sets that the file is exact for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from operator import sub
from typing import Any, Final, TypeAlias, get_args

from tflq.base.errors import VerificationError
from tflq.dialects.tosa.movement import Variable, VariableRead, VariableWrite
from tflq.formats.flatbuffer.codec import ALIGNMENT, Encoder, Piece, Written, string_bytes, template
from tflq.formats.flatbuffer.layout import TOSA
from tflq.formats.tosa.operands import REGION, Constant, attribute_table, dtype, member, operands, packed, reached
from tflq.ir.module import Function, Module, attribute_key
from tflq.ir.ops import Buffer, Location, Op, Value
from tflq.ir.types import ScalarType, TensorType, i8, index
from tflq.numerics.kernel_sets import IN_FILE, Exactness

LARGEST: Final = 2**31
VARIABLE_OPERATORS: Final = frozenset({"VARIABLE_READ", "VARIABLE_WRITE"})
"""Copies from and to a variable's tensor: IDENTITY operators with the attribute table of what they are."""
_OPERATORS: Final = TOSA.enum("Op").values
_TYPES: Final = TOSA.enum("DType").values
_ATTRIBUTES: Final = TOSA.union("Attribute").values
_ATTRIBUTE, _INPUTS, _OUTPUTS, _LOCATION = (
    TOSA.table("TosaOperator").by_name[name].slot for name in ("attribute", "inputs", "outputs", "location")
)
_NAME, _SHAPE, _DATA = (TOSA.table("TosaTensor").by_name[name].slot for name in ("name", "shape", "data"))
VERSION: Final = {"_major": 1, "_minor": 0, "_patch": 0, "_draft": False}


_Vectors: TypeAlias = Mapping[int, tuple[int, str]]
"""The number of elements of each vector, and their type, by slot, in the order in which they follow."""


class _Record:
    """A table in one piece with the vectors that follow it. `pack` takes the distance of the vtable, the fields in the
    order of their slots (`attribute_type` last), and each vector's size and elements. `vectors`: the offsets of these,
    as stored. `places`: where the fields are that hold other offsets, in the table."""

    __slots__ = ("pack", "places", "size", "vectors", "vtable")

    def __init__(
        self, vtable: bytes, pack: Callable[..., bytes], size: int, vectors: tuple[int, ...], places: tuple[int, ...]
    ) -> None:
        self.vtable: Final = vtable
        self.pack: Final = pack
        self.size: Final = size
        self.vectors: Final = vectors
        self.places: Final = places

    @classmethod
    def of(cls, table: str, slots: Iterable[int], places: Sequence[int], vectors: _Vectors) -> _Record:
        form = template(table, frozenset(slots), TOSA)
        codes = "".join(f"I{count}{code}" for count, code in vectors.values())
        packer = struct.Struct(f"{form.pack.__self__.format}{-form.size % 4}x{codes}")
        at, begins = 4 + form.size + -form.size % 4, dict[int, int]()
        for slot, (count, _) in vectors.items():
            begins[slot] = at - form.offsets[slot]
            at += 4 + 4 * count
        offsets = tuple(begins[slot] for slot in sorted(begins))
        return cls(form.vtable, packer.pack, packer.size, offsets, tuple(form.offsets.get(slot, 0) for slot in places))


@cache
def _operator_record(inputs: int, outputs: int, has_location: bool) -> _Record:
    vectors = {_OUTPUTS: (outputs, "I"), _INPUTS: (inputs, "I")}
    return _Record.of("TosaOperator", range(6 if has_location else 5), (_ATTRIBUTE, _LOCATION), vectors)


@cache
def _tensor_record(rank: int, has_data: bool) -> _Record:
    return _Record.of("TosaTensor", range(4 if has_data else 3), (_NAME, _DATA), {_SHAPE: (rank, "i")})


@cache
def _written_name(op: str) -> str:
    """TOSA's name of an operator of the IR: CONV2D."""
    return op.partition(".")[2].upper()


@cache
def _form(operator: str, inputs: int, outputs: int, has_location: bool) -> tuple[int, str, int, _Record]:
    """An operator's code, its table of attributes, the code of that, and its own table."""
    kind, record = member(operator), _operator_record(inputs, outputs, has_location)
    return _OPERATORS["IDENTITY" if operator in VARIABLE_OPERATORS else operator], kind, _ATTRIBUTES[kind], record


class Names:
    """Gives each value a unique name: the one it has, if that is still free."""

    def __init__(self) -> None:
        self._used: set[str] = set()
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
            if value.name and value not in self._of:
                self._of[value] = self.free(value.name)

    def free(self, name: str, *, count: bool = False) -> str:
        """A name that no value has: this one, or with a number, which `count` asks for."""
        if not count and name not in self._used:
            self._used.add(name)
            return name
        candidate = name
        while count or candidate in self._used:
            number = self._last[name] = self._last.get(name, -1 if count else 0) + 1
            candidate = f"{name}{number}" if count else f"{name}_{number}"
            if candidate not in self._used:
                break
        self._used.add(candidate)
        return candidate


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
_Tensor: TypeAlias = tuple[Sequence[int], str, _Data | None, str]
"""Its dims, its type in TOSA, its elements if they are known, and the variable that it is; "" for none."""
_Variables: TypeAlias = Mapping[str, tuple[Value, str]]
"""Initial value and name of the tensor, by name of the variable."""


class _Block:
    """One function's block: its operators, its tensors by name, and its shapes by name, with their rank, in order."""

    def __init__(self, function: Function, names: Names, regions: Mapping[int, str], variables: _Variables) -> None:
        self.function = function
        self.names = names
        self.regions = regions
        self.variables = variables
        self.operators: list[_Operator] = []
        self.tensors: dict[str, _Tensor] = {}
        self.shapes: dict[str, tuple[int, _Data]] = {}
        self._constants: dict[tuple[ScalarType, bytes], str] = {}
        self._used: dict[Value, str] = {}
        self._places: dict[int, str] = {}

    def fill(self, fetch: Sequence[Value] = ()) -> None:
        """Builds all of it; `fetch` become results too."""
        for name, (initial, tensor) in self.variables.items():
            self._tensor(tensor, initial.type, _data(initial), name)
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
        name = self._used.get(value)
        if name is not None:
            return name
        name = self._used[value] = self.names[value]
        if name not in self.tensors:
            data = None
            if value.is_constant:
                self.operators.append(("CONST", [], [name], {}, location))
                data = _data(value)
            self._tensor(name, value.type, data)
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
        operator = _written_name(op.name)
        if operator in VARIABLE_OPERATORS:
            assert isinstance(op, VariableRead | VariableWrite)
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

    def _tensor(self, name: str, type: TensorType, data: _Data | None, variable: str = "") -> None:
        if type.shape is None:
            raise VerificationError(f"'{name}' has a rank that is not known")
        dims: Sequence[Any] = type.shape
        if None in dims:
            dims = [-1 if size is None else size for size in dims]
        self.tensors[name] = dims, dtype(type.element), data, variable

    def _constant(self, constant: Constant, location: str) -> str:
        """The name of a compile-time-constant operand; equal ones are one tensor or shape."""
        name = self._constants.get(constant.key)
        if name is None:
            name = self._constants[constant.key] = self.names.free("c", count=True)
            data = Buffer.of(constant.array), index if constant.is_shape else i8
            if constant.is_shape:
                self.shapes[name] = constant.array.size, data
            else:
                self.tensors[name] = constant.array.shape, dtype(constant.element), data, ""
            self.operators.append(("CONST_SHAPE" if constant.is_shape else "CONST", [], [name], {}, location))
        return name


def _declared(module: Module) -> dict[str, Any]:
    """The variables that a module declares, by name: what each starts as."""
    return {op.variable: op.initial_value for f in module.functions for op in f.ops_of(Variable)}


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
        touched = (op for f in functions.values() for op in f.ops_with(*get_args(touching)))
        used = {op.variable for op in touched if isinstance(op, touching)}
        declared = module.main.once("variables", lambda: _declared(module)) if used else {}
        variables = {name: (start, names.free(name)) for name, start in declared.items() if name in used}
        self.blocks = {regions[i]: _Block(f, names, regions, variables) for i, f in functions.items()}
        self.exactness = Exactness.read(module.metadata_of(IN_FILE))
        for block in self.blocks.values():
            block.fill(fetch if block.function is main else ())
        self.data: dict[_Data, Written] = {}
        self.tables: dict[Hashable, Written] = {}

    def pieces(self) -> Iterable[Piece]:
        """The file's bytes, in order: tables, then the constants."""
        encoder = self.encoder
        for block in reversed(self.blocks.values()):
            for _, dims in reversed(block.shapes.values()):
                self._written(dims)
            for _, _, elements, _ in reversed(block.tensors.values()):
                self._written(elements)
        self._check_size()
        regions = [{"name": name, "blocks": [self._block(name, block)]} for name, block in self.blocks.items()]
        if self.exactness is not None:
            regions[0]["name"] = REGION.format(regions[0]["name"], self.exactness.text)
        encoder.finish(encoder.table("TosaGraph", {"version": VERSION, "regions": regions}))
        self._check_size()
        return encoder.pieces()

    def _check_size(self) -> None:
        if self.encoder.end >= LARGEST:
            raise VerificationError(f"{self.encoder.end} bytes or more: a TOSA flatbuffer ends at 2 GiB")

    def _written(self, data: _Data | None) -> Written | None:
        """The elements of a constant, written when first asked for: those that share a buffer share it in the file."""
        if data is None:
            return None
        end = self.data.get(data)
        if end is None:
            buffer, element = data
            end = self.data[data] = Written(self.encoder.bytes_vector(packed(buffer.data, element), ALIGNMENT))
        return end

    def _block(self, name: str, block: _Block) -> dict[str, Any]:
        """The `TosaBasicBlock`, whose operators and tensors are written first."""
        operators = [self._operator(*fields) for fields in reversed(block.operators)]
        tensors = [self._tensor(name, *fields) for name, fields in reversed(block.tensors.items())]
        shapes = block.shapes.items()
        return {
            "name": name,
            "operators": operators[::-1],
            "tensors": tensors[::-1],
            "inputs": block.inputs,
            "outputs": block.outputs,
            "shapes": [{"name": name, "rank": rank, "data": self._written(data)} for name, (rank, data) in shapes],
        }

    def _operator(
        self, operator: str, inputs: list[str], outputs: list[str], attributes: dict[str, Any], location: str
    ) -> Written:
        """A `TosaOperator`. Equal attributes share a table, as do equal locations."""
        encoder = self.encoder
        code, kind, tag, record = _form(operator, len(inputs), len(outputs), bool(location))
        key = tuple(map(attribute_key, attributes.values())) if attributes else ()
        table = self._once(kind, attributes, key)
        read, output_ends = encoder.shared_strings(inputs), encoder.known_strings(outputs)
        place = self.tables.get(("OpLocation", location)) if location else 0
        vtable = encoder.known_vtable(record.vtable)
        if output_ends is None or place is None or vtable is None:  # something between them is written first
            return self._operator_by_parts(code, kind, table, inputs, outputs, location)
        first = encoder.end + 4 * len(read)  # where the vectors begin
        second = first + 4 + 4 * len(output_ends)
        end = encoder.end = encoder.end + record.size
        of_attribute, of_place = record.places
        row = code, end - of_attribute - table, *record.vectors, *((end - of_place - place,) if location else ()), tag
        output_offsets = map(sub, range(second, first + 4, -4), output_ends)
        of_read = map(sub, range(first, first - 4 * len(read), -4), read)
        encoder.chunks.append(record.pack(vtable - end, *row, len(output_ends), *output_offsets, len(read), *of_read))
        return Written(end)

    def _operator_by_parts(
        self, code: int, kind: str, attributes: Written, inputs: list[str], outputs: list[str], location: str
    ) -> Written:
        encoder = self.encoder
        slots = {0: code, 1: _ATTRIBUTES[kind], _ATTRIBUTE: attributes}
        slots[_INPUTS], slots[_OUTPUTS] = encoder.strings(inputs), encoder.strings(outputs)
        if location:
            slots[_LOCATION] = self._once("OpLocation", {"text": location}, location)
        return Written(encoder.of_slots("TosaOperator", slots))

    def _tensor(self, name: str, shape: Sequence[int], type: str, data: _Data | None, variable: str) -> Written:
        """A `TosaTensor`, with the dims and the name in one piece."""
        encoder, elements = self.encoder, self._written(data)
        if variable:
            fields = {"name": name, "shape": shape, "type": type, "data": elements}
            return Written(encoder.table("TosaTensor", {**fields, "variable": True, "variable_name": variable}))
        record = _tensor_record(len(shape), elements is not None)
        vtable = encoder.known_vtable(record.vtable)
        if vtable is None:
            slots = {_NAME: encoder.string(name), _SHAPE: encoder.vector("int32", shape), 2: _TYPES[type]}
            return Written(encoder.of_slots("TosaTensor", slots if elements is None else {**slots, _DATA: elements}))
        text = string_bytes(name)
        end = encoder.end = encoder.end + record.size + len(text)
        of_name, of_data = record.places
        of_elements = () if elements is None else (end - of_data - elements,)
        row = record.size - of_name, *record.vectors, _TYPES[type], *of_elements
        encoder.chunks.append(record.pack(vtable - end, *row, len(shape), *shape) + text)
        return Written(end)

    def _once(self, kind: str, fields: dict[str, Any], key: Hashable) -> Written:
        end = self.tables.get((kind, key))
        if end is None:
            end = self.tables[kind, key] = Written(self.encoder.table(kind, fields))
        return end


def _data(value: Value) -> _Data | None:
    return None if value.buffer is None else (value.buffer, value.type.storage)
