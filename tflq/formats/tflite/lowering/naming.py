"""The tensors that selection makes: their names, the memory they share, and copies at quantized edges.

A name is an operator's name and the tensor's role there:

    conv1                        the operator's own result, as in the model
    conv1/accumulator            the result of an op of the integer form that it became
    conv1/accumulator/gather     a tensor on the way there, by its kernel
    conv1/rescaled/mul/rhs       a constant, by the operand of the first kernel that reads it
    conv1/rescaled#2             where the name is taken
    conv1/int8-5                 the operator's own result as floats, which are more by 5: where a target restricts
                                 builtins, often all that there is of it; `tflq verify --layers` reads the name

Where TensorFlow's converter joined names, as in "relu;conv/bias;conv", the first stands for all: the whole would be a
quarter of a small model's file. A tensor that has a name keeps it, unless another tensor of the function has it too; a
model's inputs and outputs always do. No new name is one that the source model has for any tensor: tools that compare
two models go by names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import prod
from typing import ClassVar, TypeGuard

from tflq.dialects.declare import Operator, trait_of
from tflq.dialects.forms import ModuleForm
from tflq.dialects.parameters import ParametersUnread
from tflq.dialects.tfl.casts import Cast
from tflq.dialects.tfl.movement import Reshape
from tflq.dialects.tfl.state import state_version
from tflq.dialects.traits import InPlace, Role, View
from tflq.ir.facts import final
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import remove_ops
from tflq.ir.types import ScalarType
from tflq.transforms.pass_manager import Pass, PassResult, SourceNames


def role_of(op: Op) -> str:
    """The role of an op's result in the operator that it is a part of: its `Role`, or its name."""
    role = trait_of(op, Role)
    return role.text if role else op.name.partition(".")[2]


class NameTensors(Pass):
    """Gives every tensor a name that no other has, and none of the source's (`SourceNames`) to a new one."""

    name: ClassVar[str] = "name-tensors"
    takes: ClassVar[ModuleForm] = "kernels"
    labels: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        source = module.record.find(SourceNames) or SourceNames()
        for function in module.functions:
            _Names(function, source.names).run()
        return PassResult(module, modified=True)


class _Names:
    """The names of one function's tensors."""

    def __init__(self, function: Function, reserved: Set[str]) -> None:
        self._function = function
        self._reserved = reserved
        self._fixed = {*function.inputs, *function.outputs}
        self._used = {value.name for value in self._fixed}
        self._last: dict[str, int] = {}

    def run(self) -> None:
        for value in self._function.values():
            if value.name and value not in self._fixed:
                value.name = self._free(value.name) if value.name in self._used else value.name
                self._used.add(value.name)
        self._used |= self._reserved  # by new names alone: those of the source keep theirs
        place, base = None, ""
        for op in self._function.ops:
            if place is None or op.location is not place:
                place, base = op.location, _base(op)
            for value in op.results:
                if not value.name and value not in self._fixed:
                    self._name(value, base, value.role or op.short_name)
            for number, operand in enumerate(op.operands):
                if operand is None or operand.name or operand.producer is not None or operand in self._fixed:
                    continue
                if operand.role:
                    self._name(operand, base, operand.role)
                else:
                    self._name(operand, op.result.name if op.results else base, _operand(op, number))

    def _name(self, value: Value, base: str, role: str) -> None:
        name = f"{base}/{role}" if base else role
        if name in self._used:
            name = self._free(name)
        value.name = name
        self._used.add(name)

    def _free(self, name: str) -> str:
        """`name#2`, or the first number from there on that is free."""
        number = self._last.get(name, 1) + 1
        while (numbered := f"{name}#{number}") in self._used or numbered in self._reserved:
            number += 1
        self._last[name] = number
        return numbered


def _base(op: Op) -> str:
    """The name of the source's operator that an op belongs to, or else its opcode and place.

    At a function's edge, where there is no operator, the name of a tensor that the op reads.
    """
    place = op.location
    if place is None:
        return next((v.name for v in op.present_operands if v.name), "")
    return place.tensor.partition(";")[0] or f"{place.opcode.lower()}_{place.operator}"


def _operand(op: Op, place: int) -> str:
    """The name of an op's operand slot."""
    slots = op.operand_slots if isinstance(op, Operator) else ()
    return slots[min(place, len(slots) - 1)].name if slots else f"operand_{place}"


# Memory that the interpreter lets tensors share, and where that goes wrong.
#
# Its planner puts the result of RESHAPE and the like into its operand's memory (`View`), and lets arithmetic write its
# result over an operand that nothing else reads (`InPlace`). It counts the readers of that operand and of the tensor
# whose memory it is, not those of the views between: with a RESHAPE of a RESHAPE, the last may be overwritten while the
# first is still to be read. There a copy keeps them apart.

_SMALL = (0, 4)
"""A tensor of this size, or a smaller one, is never written over."""


class MergeViews(Pass):
    """RESHAPE of a RESHAPE becomes one; it goes if the first operand has that shape already."""

    name: ClassVar[str] = "merge-views"
    takes: ClassVar[ModuleForm] = "kernels"
    runs_on: ClassVar[tuple[type, ...]] = (Reshape,)

    def run(self, module: Module) -> PassResult:
        modified = False
        for function in module.functions:
            outputs, replaced = set(function.outputs), dict[Value, Value]()
            for op in function.ops_of(Reshape):
                source = op.input
                while isinstance(source.producer, Reshape) and not source.name:
                    source = source.producer.input
                modified |= source is not op.input
                op.operands[0] = source
                if source.type == op.result.type and not op.result.name and op.result not in outputs:
                    replaced[op.result] = source
            modified |= bool(replaced)
            remove_ops(function, {value.producer for value in replaced if value.producer is not None})
            function.replace(replaced)
        return PassResult(module, modified)


class CopyBeforeOverwrite(Pass):
    """Copies a tensor whose memory the interpreter would overwrite while it is still to be read."""

    name: ClassVar[str] = "copy-before-overwrite"
    takes: ClassVar[ModuleForm] = "kernels"
    runs_on: ClassVar[tuple[type, ...]] = (View,)

    def run(self, module: Module) -> PassResult:
        return PassResult.of(module, lambda function: _Plan(function).run())


class _Plan:
    """The interpreter's plan for a function: which tensors are in the memory of which other."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.fixed = {*function.inputs, *function.outputs}
        self.users = function.users()
        self.views = function.ops_with(View)
        self.place = function.place_of()
        self.owner: dict[Value, Value] = {}
        self.sharing: dict[Value, list[Value]] = {}  # by owner, of memory that views are in

    def run(self) -> bool:
        copies: dict[Op, Op] = {}
        for op in self._concerned():
            source = self._memory(op)
            if source is None:
                continue
            is_view = trait_of(op, InPlace) is None
            if not is_view and self._is_read(source, self.place(op)):
                copies[op] = copy = Op(Cast.op_name, [source], [Value(source.type)], {}, op.location)
                state_version(copy)
                op.operands = [copy.result if v is source else v for v in op.operands]
                source = copy.result
            self._share(op.result, source, is_view=is_view)
        if copies:
            self.function.ops = [o for op in self.function.ops for o in ((copies[op], op) if op in copies else (op,))]
        return bool(copies)

    def _concerned(self) -> Sequence[Op]:
        """The ops whose results may be in one memory with a tensor that something else reads than its view, in order.
        In any other memory each tensor is read once, to make the next."""
        operands = (self._shared_operand(op) for op in self.views)
        values = [value for value in operands if value is not None and len(self.users[value]) > 1]
        concerned: set[Op] = set()
        while values:
            value = values.pop()
            for op in (value.producer, *self.users.get(value, ())):
                if op is None or op in concerned or (source := self._shared_operand(op)) is None:
                    continue
                if value in (source, op.result):
                    concerned.add(op)
                    values += (source, op.result)
        return sorted(concerned, key=self.place)

    def _owner(self, value: Value) -> Value:
        return self.owner.get(value, value)

    def _share(self, value: Value, other: Value, *, is_view: bool) -> None:
        """Notes that two tensors are in one memory. A tensor that was written over has no reader any more: without a
        view nothing needs to know what else is there."""
        self.owner[value] = owner = self._owner(other)
        if is_view:
            self.sharing.setdefault(owner, [owner]).append(other)
        if owner in self.sharing:
            self.sharing[owner].append(value)

    def _memory(self, op: Op) -> Value | None:
        """The operand in whose memory the result is; None if it has its own."""
        operand = self._shared_operand(op)
        if operand is None or not trait_of(op, InPlace) or self._is_read_once(self._owner(operand)):
            return operand
        return None

    def _shared_operand(self, op: Op) -> Value | None:
        """The operand in whose memory the result is, as far as the op and its operands decide it."""
        if (trait := trait_of(op, InPlace)) is not None:
            result = op.result
            read = (v for slot in trait.slots for v in slot.values(op))
            x = next((v for v in read if self._is_read_once(v) and self._is_planned(v) and _alike(v, result)), None)
            return x if x is not None and result not in self.fixed and _size(result) > _SMALL else None
        if (view := trait_of(op, View)) is None or op.result in self.fixed:
            return None
        return next((v for slot in view.slots for v in slot.values(op) if self._is_planned(v)), None)

    def _is_planned(self, value: Value) -> bool:
        """Whether a value is in memory that the interpreter's planner gives."""
        return value not in self.fixed and not value.is_constant

    def _is_read_once(self, value: Value) -> bool:
        """Whether one op reads a value, or none."""
        return len(self.users.get(value, ())) < 2

    def _is_read(self, value: Value, place: int) -> bool:
        """Whether another tensor in a value's memory is read at a place in the function or later."""
        sharing = self.sharing.get(self._owner(value), ())
        return any(v is not value and v in self.users and self.place(self.users[v][-1]) >= place for v in sharing)


def _alike(a: Value, b: Value) -> bool:
    """Whether two tensors have one size."""
    same = a.type.shape == b.type.shape and a.type.storage.bits == b.type.storage.bits
    return same or _size(a) == _size(b)


def _size(value: Value) -> tuple[int, int]:
    """The number of a tensor's open dims, and its bytes without them."""
    shape, size = value.type.dims, max(1, value.type.storage.bits // 8)
    known = [d for d in shape if d is not None]
    return len(shape) - len(known), prod(known) * size


# The edges of the plain integers: fewer copies between tensors with quantization parameters and tensors without.
#
# Selection puts an identity CAST wherever a function's argument, result or kept operator has quantization parameters
# and its neighbour has none. Some kernels ignore the parameters of what they read and write (`ParametersUnread`): these
# stand at the edge themselves and the copy goes. Others check them (PADV2, CONCATENATION, REDUCE_MAX), compute by them,
# or are handed to XNNPACK, which refuses to mix (TRANSPOSE, SLICE): before these the copy stays. It also stays where an
# operator that a target keeps ("kept" in `Op.info`, which ends here) reads or writes the quantized side: it is kept for
# the parameters.


class TrimEdges(Pass):
    """Drops copies between tensors with parameters and tensors without, where a kernel ignores parameters."""

    name: ClassVar[str] = "trim-edges"
    takes: ClassVar[ModuleForm] = "kernels"
    in_step: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        return PassResult.of(module, _trim)


def _is_copy(op: Op) -> TypeGuard[Cast]:
    return isinstance(op, Cast) and op.input.type.storage == op.output.type.storage


def _trim(function: Function) -> bool:
    users = dict(function.users())
    copies = [op for op in function.ops_of(Cast) if _is_copy(op)]
    outputs = set(function.outputs)
    replaced: dict[Value, Value] = {}
    dropped: set[Op] = set()
    for op in copies:
        source, result = final(op.input, replaced), op.output
        if not result.name and result not in outputs and _readable(source, result, users):
            replaced[result] = source
            users[source] = [*users.get(source, ()), *users.get(result, ())]
            dropped.add(op)
        elif _writable(source, op, users, outputs, replaced):
            _hand_over(source, result)
            replaced[source] = result
            dropped.add(op)
    stay: list[Op] = []
    for left in function.ops:
        if left in dropped:
            continue
        stay.append(left)
        if "kept" in left.info:
            left.info = {key: value for key, value in left.info.items() if key != "kept"}
    if dropped:
        function.take_out(dropped, stay)
        function.replace(replaced)
    return bool(dropped)


def _readable(source: Value, result: Value, users: Mapping[Value, Sequence[Op]]) -> bool:
    """Whether all readers of the copy can read the original."""
    if source.type.element == result.type.element:
        return True
    return all(
        i in _read_as_stored(reader)
        for reader in users.get(result, ())
        for i, v in enumerate(reader.operands)
        if v is result
    )


def _read_as_stored(op: Op) -> set[int]:
    """The operands whose parameters a kernel ignores."""
    trait = _unread(op)
    return set() if trait is None else {slot.index for slot in trait.slots if not slot.is_result}


def _unread(op: Op) -> ParametersUnread | None:
    """The parameters that the kernel of an op ignores, as its trait says; None for an op that a target keeps."""
    return None if "kept" in op.info else trait_of(op, ParametersUnread)


def _writable(
    source: Value, copy: Cast, users: Mapping[Value, Sequence[Op]], outputs: set[Value], replaced: dict[Value, Value]
) -> bool:
    """Whether the kernel that makes the original can write the copy instead."""
    producer = source.producer
    if producer is None or source.name or source in outputs or list(users.get(source, ())) != [copy]:
        return False
    if source.type.element == copy.output.type.element:
        return True
    trait = _unread(producer)
    if trait is None or not any(slot.is_result for slot in trait.slots):
        return False
    read = producer.operands[0]
    return trait.both or read is None or isinstance(replaced.get(read, read).type.element, ScalarType)


def _hand_over(source: Value, result: Value) -> None:
    """Makes the producer of `source` write `result`."""
    producer = source.producer
    assert producer is not None
    producer.results = [result if v is source else v for v in producer.results]
    result.producer = producer
