"""The tensors and shapes of one basic block of a TOSA flatbuffer, found by name, as values of the IR.

A tensor that a RESCALE reads or writes as unsigned is of an unsigned type in the IR. A constant is one from its CONST
operator on; what reads it before is told so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from tflq.errors import InvalidModelError, Refused
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, TensorType, i8, i16, index, ui8, ui16
from tflq.tosa.files.constants import Constants, tensor_type
from tflq.tosa.operands import Slot

__all__ = ["Tensors"]

_UNSIGNED: Final = {i8: ui8, i16: ui16}
Row = tuple[Mapping[str, Any], str]


class Tensors:
    """Values by name. InvalidModelError tells what is wrong with a name, Refused what the IR lacks."""

    def __init__(self, fields: Mapping[str, Any], where: str, constants: Constants) -> None:
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
        if type.storage not in _UNSIGNED:
            raise Refused(f"'{name}' is read as unsigned, and is {type.element}")
        return type.with_element(_UNSIGNED[type.storage])

    def define(self, name: str) -> Value:
        """The value of an argument or a result."""
        if name in self._values or name in self._constants:
            raise InvalidModelError("", f"'{name}' is defined a second time")
        if name in self.variables:
            raise Refused(f"'{name}' is a variable, and only VARIABLE_WRITE can write it")
        value = self._values[name] = Value(self.type(name), name)
        return value

    def define_constant(self, name: str, *, shape: bool) -> None:
        """What a CONST or a CONST_SHAPE does."""
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
