"""Lowering: a module in the integer form → one on TOSA's operators.

Entry points (the first function and those of signatures) keep names and shapes of their arguments and results; their
types are the storage types, unsigned ones included, and int32 for int64. Functions that control flow calls follow them,
with signed arguments and results; no others are kept. Every op has one lowering.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from tflq.analysis.known import Accesses
from tflq.base.errors import Reason, Refused, UnsupportedError
from tflq.dialects.effects import is_handle
from tflq.dialects.forms import ModuleForm
from tflq.dialects.tosa.movement import Variable
from tflq.formats.lowering import FunctionWalk, distinct_result, entries, lowered_module, refuse
from tflq.formats.tosa.lowering.context import LACKING, NO_STATE, ONE, NarrowTosa, Scope, Tosa, lowered, narrow
from tflq.formats.tosa.rules import Target, default_rules
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, element_storage, i1, i8, i32, i64, is_quantized, ui8
from tflq.transforms.pass_manager import Note, Notes, Pass, PassResult, Searches


class LowerToTosa(Pass):
    """The integer form becomes operators of TOSA; notes for the report are kept (`Notes`)."""

    name: ClassVar[str] = "lower-to-tosa"
    title: ClassVar[str] = "lowering to TOSA"
    takes: ClassVar[ModuleForm] = "integer"
    makes: ClassVar[ModuleForm] = "tosa"

    def __init__(self, target: Target | None = None) -> None:
        self.target: Final[Target] = Target() if target is None else target

    def run(self, module: Module) -> PassResult:
        lowered, notes = lower(module, self.target)
        lowered.record.note(Notes(notes))
        return PassResult(lowered, modified=True)


def lower(module: Module, target: Target) -> tuple[Module, list[Note]]:
    """The module on TOSA's operators, and notes for the report.

    UnsupportedError lists every operator that has no form on the target.
    """
    walk = _Module(module, target)
    inputs = [v for index in walk.entries for v in module.functions[index].inputs]
    unranked = [
        f"input '{v.name}': its rank is not known; give its whole shape (--shape {v.name}=2,3; {v.name}= for a scalar)"
        for v in inputs
        if v.type.shape is None and not is_handle(v)
    ]
    if unranked:
        raise UnsupportedError("TOSA has no tensors of unknown rank:", unranked)
    lowered = walk.run()
    sizes = "" if all(v.type.is_static for v in inputs) else "state the sizes of the inputs (--batch, --shape), or "
    refuse(walk.refused, "TOSA on this target", sizes)
    return lowered, walk.notes


def _need_numbers(value: Value) -> None:
    """Refused if a constant that is a result is of elements that TOSA has not; what computes other results says so."""
    if value.producer is None and value.type.storage in LACKING:
        raise Refused(f"it is {value.type.storage}, which has no form")


def _need_type(value: Value, lowered: Value) -> None:
    """Refused if a result has become floats instead of integers, or the reverse, or wider ones than the bytes that it
    is, or integers instead of truth values (`substitutes.py`)."""
    declared, actual = value.type.storage, lowered.type.storage
    if declared.is_float != actual.is_float or (declared == ui8 and actual != i8):
        raise Refused(f"it is stated as {declared}, and {actual} comes out")
    if value.type.storage == i1 and lowered.type.storage != i1:
        raise Refused("it is of truth values, which the target has as integers alone")


class _Module:
    """The functions of a module; one that is called is lowered when its first call is."""

    def __init__(self, module: Module, target: Target) -> None:
        self.module = module
        self.target = target
        self.notes: list[Note] = []
        self.refused: dict[Reason, None] = {}
        self.renamed: dict[Value, Value] = {}
        self.called: dict[tuple[int, Scope], int] = {}
        self.variables: dict[str, Value] = {}
        self.accesses = Accesses(module)
        self.searched = Searches(module)
        self.entries = entries(module)

    def run(self) -> Module:
        functions: dict[int, Function] = {}
        for place, index in enumerate(self.entries):
            functions[place] = _Function(self, self.module.functions[index]).run()
        while len(functions) < len(self.entries) + len(self.called):
            for (index, scope), place in list(self.called.items()):
                if place not in functions:
                    functions[place] = _Function(self, self.module.functions[index], scope).run()
        if functions:
            functions[0].ops[:0] = [Op(Variable.op_name, [v], [], {"name": name}) for name, v in self.variables.items()]
        return lowered_module(self.module, [functions[place] for place in sorted(functions)], self.renamed)

    def callee(self, index: int, scope: Scope) -> int:
        """The index, in the module being made, of a function that an operator calls."""
        return self.called.setdefault((index, scope), len(self.entries) + len(self.called))


class _Function(FunctionWalk[Value]):
    """One function's walk. An entry point's arguments and results may be unsigned; those of others are signed, and
    `scope` says their variables."""

    def __init__(self, parent: _Module, function: Function, scope: Scope | None = None) -> None:
        whole = parent.target.rules is default_rules()[0]
        t = self.t = (Tosa if whole else NarrowTosa)(parent.target, parent.notes.append)
        super().__init__(function, t, parent.refused)
        self.parent = parent
        self.entry = scope is None
        t.module = parent.module
        t.callee = parent.callee
        t.lower_ops = self.inline
        t.variables = parent.variables
        t.accesses = parent.accesses
        t.searched = parent.searched
        t.scope = scope

    def run(self) -> Function:
        inputs = [self._input(value) for value in self.source.inputs]
        scope = self.t.scope or NO_STATE
        for argument, name in zip(inputs, scope.handles, strict=False):
            if name is not None:
                self.t.handles[argument] = name
        inputs = [v for v in inputs if not is_handle(v)]
        self.t.variable_values = {name: Value(type, name) for name, type in scope.inputs}
        inputs += self.t.variable_values.values()
        self.lower(self.source.ops)
        self.t.location = None
        used: set[Value] = set(inputs)
        outputs = [self._output(value, used) for value in self.source.outputs if not is_handle(value)]
        outputs += [distinct_result(self.t.variable_values[name], used, self.t.identity) for name in scope.returned]
        return self.function(inputs, outputs)

    def lowered(self, op: Op) -> Sequence[Value]:
        results = lowered(op, self.t)
        return [results] if isinstance(results, Value) else results

    def record(self, value: Value, result: Value) -> None:
        self.t.set(value, result)

    def counterparts(self, value: Value) -> Sequence[Value]:
        result = self.t.find(value)
        return [] if result is None else [result]

    def stand_in_type(self, value: Value) -> TensorType:
        return self.t.type(value)

    def _input(self, value: Value) -> Value:
        """The argument, of its storage type or a signed one; the ops read a signed one."""
        storage = element_storage(value.type.element)
        if storage in LACKING and not is_handle(value):
            self.refused[Reason(f"input '{value.name}' is {storage}, which has no form", tensor=value.name)] = None
        info = {"quantized": value.type.element} if is_quantized(value.type.element) else {}
        if not self.entry:
            argument = Value(self.t.type(value), value.name, info=info)
            self.t.set(value, argument)
            return argument
        argument = Value(TensorType(value.type.shape, i32 if storage == i64 else storage), value.name, info=info)
        self.parent.renamed[value] = argument
        seen = argument
        if storage == ui8:
            seen = self.t.rescale(argument, ONE, i8, output_zp=-128, rounding_mode="SINGLE_ROUND")
        self.t.set(value, seen)
        return argument

    def _output(self, value: Value, used: set[Value]) -> Value:
        """The result: a separate value, of its storage type or a signed one, under its name."""
        try:
            if value.producer is None:  # the walk asks of the others
                _need_numbers(value)
            result = narrow(value, self.t) if value.is_constant else self.t.value(value)
            _need_type(value, result)
        except Refused as refusal:
            self.refused[Reason(f"result '{value.name}': {refusal}", tensor=value.name)] = None
            return value
        if element_storage(value.type.element) == ui8 and self.entry:
            result.name = ""
            result = self.t.rescale(result, ONE, ui8, input_zp=-128, rounding_mode="SINGLE_ROUND")
        else:
            result = distinct_result(result, used, self.t.identity)
        used.add(result)
        result.name = value.name
        result.info = {"quantized": value.type.element} if is_quantized(value.type.element) else {}
        if self.entry:
            self.parent.renamed[value] = result
        return result


def table_pays(ops: Sequence[Op], sources: int) -> bool:
    """Whether a table is worth it: TABLE is one operator on one 8-bit tensor, and pays in the place of two or more."""
    return sources == 1 and len(ops) > 1 and ops[-1].result.type.storage.bits == 8
