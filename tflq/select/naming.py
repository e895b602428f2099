"""Names of the tensors that selection makes: an operator's name and what the tensor is to it.

    conv1                        the operator's own result, as in the model
    conv1/accumulator            the result of an op of the integer form that it became
    conv1/accumulator/gather     a tensor on the way there, by its kernel
    conv1/rescaled/mul/rhs       a constant, by the operand of the first kernel that reads it
    conv1/rescaled#2             where the name is taken

Of a name that TensorFlow's converter joined, "relu;conv/bias;conv", the first stands for all: the whole would be a
quarter of a small model's file.
What has a name keeps it, unless another tensor of the function has it, too; a model's inputs and outputs always do. No
new name is one that the source model has for any tensor: tools that compare two models go by names.
"""

from __future__ import annotations

from collections.abc import Container
from typing import ClassVar

from tflq.contract import Pass, PassResult
from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.forms import Form
from tflq.dialects.traits.elements import Role
from tflq.ir.core import Function, Module, Op, Value
from tflq.records import SourceNames

__all__ = ["NameTensors", "role_of"]


def role_of(op: Op) -> str:
    """What the result of an op is to the operator that it is a part of: its `Role`, or its name."""
    role = trait_of(op, Role)
    return role.text if role else op.name.partition(".")[2]


class NameTensors(Pass):
    """Gives every tensor a name that no other has, and none of the source's (`SourceNames`) to a new one."""

    name: ClassVar[str] = "name-tensors"
    takes: ClassVar[Form] = "kernels"
    labels: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        source = module.record.find(SourceNames) or SourceNames()
        for function in module.functions:
            _Names(function, source.names).run()
        return PassResult(module, modified=True)


class _Names:
    """The names of one function's tensors."""

    def __init__(self, function: Function, reserved: Container[str]) -> None:
        self._function = function
        self._reserved = reserved
        self._done = {*function.inputs, *function.outputs}
        self._taken = {value.name for value in self._done}
        self._last: dict[str, int] = {}

    def run(self) -> None:
        for value in self._function.values():
            if value.name and value not in self._done:
                value.name = self._free(value.name) if value.name in self._taken else value.name
                self._take(value)
        for op in self._function.ops:
            base, kernel = _base(op), op.name.partition(".")[2]
            for value in op.results:
                if value not in self._done:
                    self._name(value, base, value.role or kernel)
            for place, operand in enumerate(op.operands):
                if operand is None or operand.producer is not None or operand in self._done:
                    continue
                if operand.role:
                    self._name(operand, base, operand.role)
                else:
                    self._name(operand, op.result.name if op.results else base, _operand(op, place))

    def _name(self, value: Value, base: str, role: str) -> None:
        name = f"{base}/{role}" if base else role
        value.name = self._free(name) if name in self._taken or name in self._reserved else name
        self._take(value)

    def _take(self, value: Value) -> None:
        self._taken.add(value.name)
        self._done.add(value)

    def _free(self, name: str) -> str:
        """`name#2`, or the first number from there on that is free."""
        number = self._last.get(name, 1) + 1
        while (numbered := f"{name}#{number}") in self._taken or numbered in self._reserved:
            number += 1
        self._last[name] = number
        return numbered


def _base(op: Op) -> str:
    """The name of the source's operator that an op belongs to, or else its opcode and place; the name of what is read
    at a function's edge, where there is no operator."""
    place = op.location
    if place is None:
        return next((v.name for v in op.operands if v is not None and v.name), "")
    return place.tensor.partition(";")[0] or f"{place.opcode.lower()}_{place.operator}"


def _operand(op: Op, place: int) -> str:
    """What an op calls its operand."""
    slots = op.operand_slots if isinstance(op, Operator) else ()
    return slots[min(place, len(slots) - 1)].name if slots else f"operand_{place}"
