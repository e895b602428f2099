"""A basic block of a TOSA flatbuffer → a function: its operators one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tflq.dialects.declare import Operator
from tflq.dialects.tosa.state import Variable, VariableRead, VariableWrite
from tflq.errors import InvalidModelError, Reason, Refused
from tflq.flatbuffer.layout import TOSA
from tflq.ir.core import Function, Location, Op, Value
from tflq.ir.registry import op_class
from tflq.tosa.files.attributes import member, read_attributes
from tflq.tosa.files.constants import Constants
from tflq.tosa.files.dtypes import ELEMENTS
from tflq.tosa.files.tensors import Tensors
from tflq.tosa.operands import Slot, accumulator, attribute, constant_type, signless, slots

__all__ = ["Block"]

_VARIABLE: Final = {"VariableReadAttribute": "VARIABLE_READ", "VariableWriteAttribute": "VARIABLE_WRITE"}
"""What an IDENTITY with one of these attribute tables is."""
_UNSIGNED_ZERO_POINTS: Final = {"input_zp": "input_unsigned", "output_zp": "output_unsigned"}


class Block:
    """Builds one function; `reasons` are what cannot be read. `graph` finds the function that an attribute names."""

    def __init__(
        self,
        fields: Mapping[str, Any],
        function: Function,
        where: str,
        index: int,
        source: str,
        constants: Constants,
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
        self._lost: set[str] = set()  # results of operators that cannot be read

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
            if name not in self._lost:
                with self._at(f"outputs[{i}]"):
                    self.function.outputs.append(self.tensors.value(name))

    @contextmanager
    def _at(self, where: str, made: Sequence[str] = (), location: Location | None = None) -> Iterator[None]:
        """Notes what is not supported, and that what would have been made is not there; says where a file is wrong."""
        try:
            yield
        except Refused as refusal:
            self.reasons.append(refusal.at(location))
            self._lost.update(made)
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
        elif not self._lost.isdisjoint(inputs):
            self._lost.update(outputs)
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
            raise InvalidModelError("outputs", "there is none")
        array, element = self.tensors.elements(name, slot)
        wanted = constant_type(op, slot)
        if element != signless(wanted):
            raise InvalidModelError("inputs", f"{slot.name} ('{name}') is {element}, not {signless(wanted)}")
        if not slot.many and not slot.is_shape and array.size != 1:
            raise InvalidModelError("inputs", f"{slot.name} ('{name}') has {array.size} elements, not one")
        made = attribute(slot, array, element, unsigned=bool(table.get(_UNSIGNED_ZERO_POINTS.get(slot.name, ""))))
        shape = op.result.type.shape
        if slot.name != "shape":  # the result's type says it
            op.attributes[slot.name] = made
        elif made != shape and -1 not in made:
            raise InvalidModelError("inputs", f"the shape is {made}, that of the result {shape}")

    def _check_signs(self, inputs: Sequence[str], outputs: Sequence[str], table: Mapping[str, Any]) -> None:
        """That no operator reads as signed what another reads as unsigned: the IR has one type for a tensor."""
        for flag, names in (("input_unsigned", inputs), ("output_unsigned", outputs)):
            for i, name in enumerate(names):
                if name in self.tensors.unsigned and (i > 0 or not table.get(flag)):
                    raise Refused(f"'{name}' is signed here and unsigned to a RESCALE")


def _accumulator(op: Op, said: str) -> dict[str, str]:
    """What has to be kept of an `acc_type`: one that is not that of the types."""
    element = ELEMENTS.get(said)
    if element is None:
        raise InvalidModelError("attribute.acc_type", f"{said} is no type to accumulate in")
    if element == accumulator(op):
        return {}
    if not element.is_float:
        raise InvalidModelError("attribute.acc_type", f"{said}, where the types ask for {accumulator(op)}")
    return {"acc_type": element.name}


def _paired(wanted: Sequence[Slot], names: Sequence[str]) -> list[tuple[Slot, str]]:
    """Operands with what they are. InvalidModelError if their number is wrong."""
    if wanted and wanted[-1].many and not wanted[-1].type:
        wanted = [*wanted[:-1], *[wanted[-1]] * (len(names) - len(wanted) + 1)]
    if len(wanted) != len(names):
        raise InvalidModelError("inputs", f"{len(names)} operands, not {len(wanted)}")
    return list(zip(wanted, names, strict=True))
