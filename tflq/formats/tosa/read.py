"""A TOSA flatbuffer → a module in the tosa form: `write.py` backwards.

Every block is a function, called like its region, or like itself where a region has several; the first is the entry.
Compile-time-constant operands become attributes, variables `tosa.variable` ops at the head of the entry. Constants are
views of the file. A file of a later 1.x is read, as TOSA's minor versions are compatible, with a warning; what 1.0 has
not is refused by name, all of it in one `UnsupportedError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np

from tflq.base.errors import InvalidModelError, Reason, Refused, UnsupportedError, VerificationError
from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.effects import callees, nesting_problem
from tflq.dialects.forms import verify_form
from tflq.dialects.tosa.movement import CondIf, Variable, VariableRead, VariableWrite
from tflq.dialects.traits import Calls
from tflq.formats.flatbuffer.codec import Decoder
from tflq.formats.flatbuffer.layout import TOSA
from tflq.formats.flatbuffer.source import Source, open_source
from tflq.formats.flatbuffer.structure import check
from tflq.formats.tosa.operands import (
    AS_1_0,
    ELEMENTS,
    REGION,
    UNSIGNED,
    Slot,
    StoredConstants,
    accumulator,
    attribute,
    constant_type,
    member,
    read_attributes,
    signless,
    slots,
    tensor_type,
)
from tflq.ir.module import Function, Metadata, Module
from tflq.ir.ops import Location, Op, Value, op_class
from tflq.ir.types import ScalarType, TensorType, i1, index
from tflq.ir.verifier import verify
from tflq.numerics.kernel_sets import IN_FILE

Row = tuple[Mapping[str, Any], str]
_VARIABLE: Final = {"VariableReadAttribute": "VARIABLE_READ", "VariableWriteAttribute": "VARIABLE_WRITE"}
"""The operator that an IDENTITY with one of these attribute tables is."""
_UNSIGNED_ZERO_POINTS: Final = {"input_zp": "input_unsigned", "output_zp": "output_unsigned"}
_VERSION: Final = (1, 0)


class Tensors:
    """The tensors and shapes of a block, as values of the IR, by name. InvalidModelError tells what is wrong with a
    name, Refused what the IR lacks.

    A tensor that a RESCALE reads or writes as unsigned is of an unsigned type in the IR. A constant can be read after
    its CONST operator only.
    """

    def __init__(self, fields: Mapping[str, Any], where: str, constants: StoredConstants) -> None:
        self.constants = constants
        self.unsigned = _unsigned(fields["operators"] or ())
        self._tensors: dict[str, Row] = {}
        self._shapes: dict[str, Row] = {}
        for key, rows in (("tensors", self._tensors), ("shapes", self._shapes)):
            for i, row in enumerate(fields[key] or ()):
                self._add(rows, row, f"{where}.{key}[{i}]")
        self._values: dict[str, Value] = {}
        self._constants: set[str] = set()
        self.variables: dict[str, str] = {
            tensor: row["variable_name"] or tensor for tensor, (row, _) in self._tensors.items() if row["variable"]
        }

    def _add(self, rows: dict[str, Row], row: Mapping[str, Any], where: str) -> None:
        name = row["name"]
        if not name:
            raise InvalidModelError(f"{where}.name", "it has no name")
        if name in self._tensors or name in self._shapes:
            raise InvalidModelError(f"{where}.name", f"there is another one called '{name}'")
        rows[name] = row, where

    def initial_values(self) -> Iterable[tuple[str, Value]]:
        """The variables, by name, and the values they begin with."""
        for tensor, name in self.variables.items():
            row, where = self._tensors[tensor]
            type = self.type(tensor)
            if row["offset"] <= 1 and (row["data"] is None or not row["data"].size):
                raise Refused(f"the variable '{name}' has no initial value")
            yield name, Value(type, buffer=self.constants.tensor(row, type, where))

    def type(self, name: str) -> TensorType:
        """The type of a tensor."""
        if name not in self._tensors:
            raise InvalidModelError("", f"there is no tensor '{name}'")
        try:
            type = tensor_type(self._tensors[name][0])
        except Refused as refusal:
            raise Refused(f"tensor '{name}': {refusal}") from None
        if name not in self.unsigned:
            return type
        if type.storage not in UNSIGNED:
            raise Refused(f"'{name}' is read as unsigned, and is {type.element}")
        return type.with_element(UNSIGNED[type.storage])

    def define(self, name: str) -> Value:
        """The value of an argument or a result."""
        if name in self._values or name in self._constants:
            raise InvalidModelError("", f"'{name}' is defined a second time")
        if name in self.variables:
            raise Refused(f"'{name}' is a variable, and only VARIABLE_WRITE can write it")
        value = self._values[name] = Value(self.type(name), name)
        return value

    def define_constant(self, name: str, *, shape: bool) -> None:
        """Makes a tensor or a shape known, as a CONST or a CONST_SHAPE does."""
        if name in self._values or name in self._constants:
            raise InvalidModelError("", f"'{name}' is defined a second time")
        if name not in (self._shapes if shape else self._tensors) or name in self.variables:
            raise InvalidModelError("", f"there is no {'shape' if shape else 'tensor'} '{name}' to be constant")
        self._constants.add(name)

    def value(self, name: str) -> Value:
        """The value of an operand or an output."""
        value = self._values.get(name)
        if value is not None:
            return value
        if name in self.variables:
            raise Refused(f"'{name}' is a variable, and only VARIABLE_READ can read it")
        if name in self._shapes:
            raise InvalidModelError("", f"'{name}' is a shape, not a tensor")
        if name not in self._constants:
            raise InvalidModelError("", f"'{name}' is used before it is computed, or never is")
        row, where = self._tensors[name]
        type = self.type(name)
        value = self._values[name] = Value(type, name, buffer=self.constants.tensor(row, type, where))
        return value

    def elements(self, name: str, slot: Slot) -> tuple[np.ndarray, ScalarType]:
        """The elements of a compile-time-constant operand in one dim, and their type."""
        if slot.is_shape != (name in self._shapes):
            raise InvalidModelError("", f"'{name}' is {'not ' if slot.is_shape else ''}a shape")
        if name not in self._constants:
            if name not in self._values and not slot.is_shape:
                raise InvalidModelError("", f"'{name}' is used before it is computed, or never is")
            raise Refused(f"its operand {slot.name} ('{name}') is computed at run time")
        if slot.is_shape:
            return self.constants.shape(*self._shapes[name]), index
        row, where = self._tensors[name]
        type = self.type(name)
        value = Value(type, name, buffer=self.constants.tensor(row, type, where))
        if type.storage.numpy:
            return value.array.reshape(-1), type.storage
        assert value.buffer is not None
        return value.buffer.data.view(f"u{type.storage.bits // 8}"), type.storage


def _unsigned(operators: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The tensors that a RESCALE reads or writes as unsigned."""
    names: set[str] = set()
    for fields in operators:
        if fields["op"] == "RESCALE" and fields["attribute"] is not None:
            table = fields["attribute"][1]
            for flag, side in (("input_unsigned", "inputs"), ("output_unsigned", "outputs")):
                names.update((fields[side] or ())[:1] if table.get(flag) else ())
    return frozenset(names)


class Block:
    """Builds the function of one block; `reasons` say what cannot be read. `graph` finds the function that an attribute
    names."""

    def __init__(
        self,
        fields: Mapping[str, Any],
        function: Function,
        where: str,
        index: int,
        source: str,
        constants: StoredConstants,
        graph: Callable[[str], int],
    ) -> None:
        self.fields = fields
        self.function = function
        self.where = where
        self.index = index
        self.source = source
        self.graph = graph
        self.reasons: list[Reason] = []
        self.tensors = Tensors(fields, where, constants)
        self._unreadable: set[str] = set()  # results of operators that cannot be read

    def initial_values(self) -> list[tuple[str, Value]]:
        """The variables the block knows, by name, and what they begin with."""
        try:
            return list(self.tensors.initial_values())
        except Refused as refusal:
            self.reasons.append(refusal.reason)
            return []

    def fill(self) -> None:
        """Builds the function."""
        for i, name in enumerate(self.fields["inputs"] or ()):
            with self._at(f"inputs[{i}]", [name]):
                self.function.inputs.append(self.tensors.define(name))
        for i, fields in enumerate(self.fields["operators"] or ()):
            results = fields["outputs"] or ()
            place = Location(self.source, self.index, i, fields["op"], results[0] if results else "")
            with self._at(f"operators[{i}]", results, place):
                self._operator(fields, place)
        for i, name in enumerate(self.fields["outputs"] or ()):
            if name not in self._unreadable:
                with self._at(f"outputs[{i}]"):
                    self.function.outputs.append(self.tensors.value(name))

    @contextmanager
    def _at(self, where: str, results: Sequence[str] = (), location: Location | None = None) -> Iterator[None]:
        """Notes what is not supported, and that its results are missing; says where a file is wrong."""
        try:
            yield
        except Refused as refusal:
            self.reasons.append(refusal.at(location))
            self._unreadable.update(results)
        except InvalidModelError as error:
            raise error.inside(f"{self.where}.{where}") from None

    def _operator(self, fields: Mapping[str, Any], place: Location) -> None:
        name, inputs, outputs = fields["op"], fields["inputs"] or (), fields["outputs"] or ()
        union, table = fields["attribute"] or (member(name), None)
        if name == "IDENTITY":
            name = _VARIABLE.get(union, name)
        if union != member(name) or (table is None and TOSA.table(union).fields):
            raise InvalidModelError("attribute", f"{name} has {'none' if table is None else f'a {union}'}")
        kind: Any = op_class(f"tosa.{name.lower()}")
        if name in ("CONST", "CONST_SHAPE"):
            for output in outputs:
                self.tensors.define_constant(output, shape=name == "CONST_SHAPE")
        elif kind is None:
            raise Refused(f"the tosa form has no {name}")
        elif not self._unreadable.isdisjoint(inputs):
            self._unreadable.update(outputs)
        elif kind is not Variable:  # a declaration: its tensor says all
            self._emit(kind, name, inputs, outputs, table or {}, fields["location"], place)

    def _emit(
        self,
        kind: type[Operator],
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        table: Mapping[str, Any],
        location: Mapping[str, Any] | None,
        place: Location,
    ) -> None:
        attributes: dict[str, Any] = {}
        info = {"location": (location or {}).get("text") or ""}
        if issubclass(kind, VariableRead | VariableWrite):
            inputs, outputs, attributes["name"] = self._variable(name, inputs, outputs)
        operands: list[Value | None] = []
        constants: list[tuple[Slot, str]] = []
        for slot, operand in _paired(slots(kind), inputs):
            if slot.type:
                constants.append((slot, operand))
            else:
                operands.append(self.tensors.value(operand))
        self._check_signs(inputs, outputs, table)
        results = [self.tensors.define(output) for output in outputs]
        if results:
            attributes |= read_attributes(name, table, results[0].type.storage, self.graph)
        op = Op(kind.op_name, operands, results, attributes, place, info=info)
        for slot, operand in constants:
            self._attribute(op, slot, operand, table)
        if "acc_type" in table and results:
            info |= _accumulator(op, table["acc_type"])
        self.function.ops.append(op)

    def _variable(
        self, name: str, inputs: Sequence[str], outputs: Sequence[str]
    ) -> tuple[Sequence[str], Sequence[str], str]:
        """The operands and results of a VARIABLE_READ or _WRITE without the variable's tensor, and its name."""
        reads = name == "VARIABLE_READ"
        tensors = inputs if reads else outputs
        if len(tensors) != 1 or tensors[0] not in self.tensors.variables:
            raise InvalidModelError("inputs" if reads else "outputs", f"{name} of what is not one variable")
        variable = self.tensors.variables[tensors[0]]
        return (() if reads else inputs), (outputs if reads else ()), variable

    def _attribute(self, op: Op, slot: Slot, name: str, table: Mapping[str, Any]) -> None:
        """Gives the op the attribute that a compile-time-constant operand stands for."""
        if not op.results:
            raise InvalidModelError("outputs", "it has no result")
        array, element = self.tensors.elements(name, slot)
        wanted = constant_type(op, slot)
        if element != signless(wanted):
            raise InvalidModelError("inputs", f"{slot.name} ('{name}') is {element}, not {signless(wanted)}")
        if not slot.many and not slot.is_shape and array.size != 1:
            raise InvalidModelError("inputs", f"{slot.name} ('{name}') has {array.size} elements, not one")
        parsed = attribute(slot, array, element, unsigned=bool(table.get(_UNSIGNED_ZERO_POINTS.get(slot.name, ""))))
        shape = op.result.type.shape
        if slot.name != "shape":  # the result's type says it
            op.attributes[slot.name] = parsed
        elif parsed != shape and -1 not in parsed:
            raise InvalidModelError("inputs", f"the shape is {parsed}, that of the result {shape}")

    def _check_signs(self, inputs: Sequence[str], outputs: Sequence[str], table: Mapping[str, Any]) -> None:
        """Refused if an operator reads as signed what another reads as unsigned: the IR has one type for a tensor."""
        for flag, names in (("input_unsigned", inputs), ("output_unsigned", outputs)):
            for i, name in enumerate(names):
                if name in self.tensors.unsigned and (i > 0 or not table.get(flag)):
                    raise Refused(f"'{name}' is signed here and unsigned to a RESCALE")


def _accumulator(op: Op, name: str) -> dict[str, str]:
    """An `acc_type` as it must be kept, if it does not follow from the types."""
    element = ELEMENTS.get(name)
    if element is None:
        raise InvalidModelError("attribute.acc_type", f"{name} is not a type to accumulate in")
    if element == accumulator(op):
        return {}
    if not element.is_float:
        raise InvalidModelError("attribute.acc_type", f"{name}, where the types ask for {accumulator(op)}")
    return {"acc_type": element.name}


def _paired(wanted: Sequence[Slot], names: Sequence[str]) -> list[tuple[Slot, str]]:
    """Operands with their slots. InvalidModelError if their number is wrong."""
    if wanted and wanted[-1].many and not wanted[-1].type:
        wanted = [*wanted[:-1], *[wanted[-1]] * (len(names) - len(wanted) + 1)]
    if len(wanted) != len(names):
        raise InvalidModelError("inputs", f"{len(names)} operands, not {len(wanted)}")
    return list(zip(wanted, names, strict=True))


def read_tosa(source: Source) -> Module:
    """The module of a path, of bytes or of a file object.

    InvalidModelError if it is not a valid TOSA graph, UnsupportedError if it has what the tosa form cannot hold.
    """
    data, name = open_source(source)
    try:
        check(data, TOSA)
        return _Reader(data, name).module()
    except InvalidModelError as error:
        raise error.of_file(name) from None


class _Reader:
    """Builds the module of one file."""

    def __init__(self, data: memoryview, source: str) -> None:
        self.graph = Decoder(data, TOSA).root()
        self.source = source
        self.constants = StoredConstants(data)
        self.warnings: list[str] = []
        self.metadata: list[Metadata] = []
        self.reasons: list[Reason] = []

    def module(self) -> Module:
        self._version()
        blocks = self._blocks()
        if not blocks:
            raise InvalidModelError("TosaGraph.regions", "there is no block to run")
        variables: dict[str, Value] = {}
        for block in blocks:
            for name, initial in block.initial_values():
                if variables.setdefault(name, initial).type != initial.type:
                    raise InvalidModelError(block.where, f"the variable '{name}' has another type elsewhere")
            block.fill()
            self.reasons += block.reasons
        if self.reasons:
            what = f"{len(self.reasons)} thing(s) in the file cannot be read:"
            raise UnsupportedError(what, self.reasons, remedy=AS_1_0)
        functions = [block.function for block in blocks]
        declared = [
            Op(Variable.op_name, [initial], [], {"name": name}, Location(self.source, 0, i, "VARIABLE", name))
            for i, (name, initial) in enumerate(variables.items())
        ]
        functions[0].ops[:0] = declared
        module = Module(functions, metadata=self.metadata or None, source=self.source)
        module.warnings = self.warnings
        self._verify(module)
        return module

    def _version(self) -> None:
        version = self.graph["version"]
        if version is None:
            raise InvalidModelError("TosaGraph.version", "it is missing")
        major, minor = version["_major"], version["_minor"]
        text = f"{major}.{minor}.{version['_patch']}" + (" (draft)" if version["_draft"] else "")
        if major != _VERSION[0] or minor < 0:
            what = f"the file is of TOSA {text}; 1.0 is read, and what is compatible with it"
            raise UnsupportedError(what, remedy=AS_1_0)
        if (major, minor) != _VERSION or version["_draft"]:
            self.warnings.append(f"written for TOSA {text}, read as TOSA 1.0; verify what it is converted to")
        if features := (self.graph["compatibility"] or {}).get("features"):
            names = TOSA.enum("CompatibilityFeature").names
            required = [names.get(bit, f"number {bit}") for bit in range(64) if features >> bit & 1]
            raise UnsupportedError(f"the file needs a reader that knows {', '.join(required)}", remedy=AS_1_0)

    def _blocks(self) -> list[Block]:
        blocks: list[Block] = []
        first: dict[str, int] = {}
        inner: dict[tuple[str, str], int] = {}
        for r, region in enumerate(self.graph["regions"] or ()):
            members, (name, _, text) = region["blocks"] or (), (region["name"] or "").partition(REGION.format("", ""))
            self.metadata += [Metadata.of(IN_FILE, text.encode())] if text and not r else []
            if name in first:
                raise InvalidModelError(f"regions[{r}].name", f"there is another region called '{name}'")
            first[name] = len(blocks)
            for b, fields in enumerate(members):
                inner[name, fields["name"] or ""] = len(blocks)
                label = name if len(members) == 1 else fields["name"] or f"{name}_{b}"
                where = f"regions[{r}].blocks[{b}]"
                find = partial(_region, name, first, inner)
                function = Function(label, [], [], [])
                blocks.append(Block(fields, function, where, len(blocks), self.source, self.constants, find))
            if not members:
                raise InvalidModelError(f"regions[{r}]", "it has no block")
        return blocks

    def _verify(self, module: Module) -> None:
        """InvalidModelError if the module lacks a property that the other stages rely on."""
        try:
            verify(module)
            verify_form(module, "tosa")
        except VerificationError as error:
            raise InvalidModelError("TosaGraph", str(error).partition("\n")[0]) from None
        for op in module.ops():
            _verify_calls(module, op)
        calls = [[index for op in f.ops_with(Calls) for index in callees(op)] for f in module.functions]
        if (problem := nesting_problem(calls, [f"'{f.name}'" for f in module.functions])) is not None:
            raise InvalidModelError(f"region '{module.functions[problem[0]].name}'", problem[1])


def _region(around: str, regions: Mapping[str, int], blocks: Mapping[tuple[str, str], int], name: str) -> int:
    """The function that an attribute names: a block of the region around it, else a region's first block."""
    index = blocks.get((around, name), regions.get(name))
    if index is None:
        raise InvalidModelError("attribute", f"there is no region called '{name}'")
    return index


def _verify_calls(module: Module, op: Op) -> None:
    """InvalidModelError if a function that an op runs takes or gives other types than the op."""
    operand_types = [v.type for v in op.present_operands][1 if isinstance(op, CondIf) else 0 :]
    result_types = [v.type for v in op.results]
    calls = trait_of(op, Calls)
    for key, number in calls.called(op) if calls else ():
        function = module.functions[number]
        takes, gives = [v.type for v in function.inputs], [v.type for v in function.outputs]
        if takes != operand_types:
            what = f"{key} '{function.name}' takes other arguments than it is given"
            raise InvalidModelError(op.location or "", what)
        if key == "cond_graph":
            if len(gives) != 1 or gives[0].element != i1:
                raise InvalidModelError(op.location or "", f"{key} '{function.name}' does not give one condition")
        elif gives != result_types:
            raise InvalidModelError(op.location or "", f"{key} '{function.name}' gives other results than the operator")
