"""Lowering: a module in the integer form → one on TOSA's operators.

Entry points (the first function and those of signatures) keep names and shapes of their arguments and results; their
types are the storage types, unsigned ones included, and int32 for int64. Functions that control flow calls follow them,
with signed arguments and results; no others are kept. Every op has one lowering. What cannot be lowered, but is needed,
is collected over the whole module into one `UnsupportedError`; an operator that computes shapes is not needed where
they are known without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tflq.analysis.known import Accesses, is_handle
from tflq.builder import needed, stand_in
from tflq.contract import Note, Notes, Pass, PassResult
from tflq.dialects.forms import Form
from tflq.dialects.tosa.movement import Variable
from tflq.errors import Reason, Refused, UnsupportedError
from tflq.ir.core import Function, Module, Op, Signature, Value
from tflq.ir.types import TensorType, element_storage, i1, i8, i32, i64, is_quantized, ui8
from tflq.light import dataclass, field, replace
from tflq.tosa.lowering.context import NO_STATE, ONE, Scope, Tosa, lowered
from tflq.tosa.lowering.shaping import narrow
from tflq.tosa.operands import Target


@dataclass(frozen=True)
class LowerToTosa(Pass):
    """The integer form becomes operators of TOSA; notes for the report are kept (`Notes`)."""

    name: ClassVar[str] = "lower-to-tosa"
    title: ClassVar[str] = "lowering to TOSA"
    takes: ClassVar[Form] = "integer"
    makes: ClassVar[Form] = "tosa"
    target: Target = field(default_factory=Target)

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
    if walk.refused:
        what = f"{len(walk.refused)} operator(s) have no form in TOSA on this target:"
        sizes = "" if all(v.type.is_static for v in inputs) else "state the sizes of the inputs (--batch, --shape), or "
        remedy = f"{sizes}convert to a .tflite file, or only the part before it (--cut)"
        raise UnsupportedError(what, list(walk.refused), remedy=remedy)
    lowered.warnings = list(module.warnings)
    return lowered, walk.notes


def _need_ranks(op: Op) -> None:
    """Refused if an operand's rank is not known."""
    for value in op.operands:
        if value is not None and value.type.shape is None and not is_handle(value):
            raise Refused(f"the rank of its operand '{value.name}' is not known, and TOSA has no such tensors")


def _need_boolean(value: Value, lowered: Value) -> None:
    """Refused if a result of truth values has become integers (`tflq.tosa.substitutes`)."""
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
        entries = {0, *(s.function for s in module.signatures or ())}
        self.entries = [i for i in sorted(entries) if not module.functions[i].info.get("declaration")]

    def run(self) -> Module:
        made: dict[int, Function] = {}
        for place, index in enumerate(self.entries):
            made[place] = _Function(self, self.module.functions[index]).run()
        while len(made) < len(self.entries) + len(self.called):
            for (index, scope), place in list(self.called.items()):
                if place not in made:
                    made[place] = _Function(self, self.module.functions[index], scope).run()
        if made:
            made[0].ops[:0] = [Op(Variable.op_name, [v], [], {"name": name}) for name, v in self.variables.items()]
        signatures = self.module.signatures
        return Module(
            [made[place] for place in sorted(made)],
            None if signatures is None else [self._remap(s) for s in signatures],
            description=self.module.description,
            source=self.module.source,
        )

    def callee(self, index: int, scope: Scope) -> int:
        """The index, in the module being made, of a function that an operator calls."""
        return self.called.setdefault((index, scope), len(self.entries) + len(self.called))

    def _remap(self, signature: Signature) -> Signature:
        def side(pairs: list[tuple[str | None, Value]] | None) -> list[tuple[str | None, Value]] | None:
            return None if pairs is None else [(name, self.renamed.get(value, value)) for name, value in pairs]

        function = self.entries.index(signature.function)
        return replace(
            signature, function=function, inputs=side(signature.inputs), outputs=side(signature.outputs), info={}
        )


class _Function:
    """One function's walk. An entry point's arguments and results may be unsigned; those of others are signed, and
    `scope` says their variables."""

    def __init__(self, parent: _Module, function: Function, scope: Scope | None = None) -> None:
        self.parent = parent
        self.source = function
        self.entry = scope is None
        self.t = Tosa(parent.target, parent.notes.append)
        self.t.module = parent.module
        self.t.callee = parent.callee
        self.t.lower_ops = self._lower
        self.t.variables = parent.variables
        self.t.accesses = parent.accesses
        self.t.scope = scope

    def run(self) -> Function:
        inputs = [self._input(value) for value in self.source.inputs]
        scope = self.t.scope or NO_STATE
        for argument, name in zip(inputs, scope.handles, strict=False):
            if name is not None:
                self.t.handles[argument] = name
        inputs = [v for v in inputs if not is_handle(v)]
        self.t.held = {name: Value(type, name) for name, type in scope.given}
        inputs += self.t.held.values()
        self._lower(self.source.ops)
        self.t.location = None
        taken: set[Value] = set(inputs)
        outputs = [self._output(value, taken) for value in self.source.outputs if not is_handle(value)]
        outputs += [self._own(self.t.held[name], taken) for name in scope.returned]
        return Function(self.source.name, inputs, outputs, self._needed(outputs))

    def _lower(self, ops: Sequence[Op]) -> None:
        """Lowers ops in order."""
        for op in ops:
            self.t.location = op.location
            try:
                _need_ranks(op)
                results = lowered(op, self.t)
            except Refused as refusal:
                results = self._stand_in(op, refusal.at(op.location))
            made: Sequence[Value] = [results] if isinstance(results, Value) else results
            for old, new in zip(op.results, made, strict=True):
                self.t.set(old, new)

    def _stand_in(self, op: Op, reason: Reason) -> list[Value]:
        """Results of an op that has no form."""
        operands = [found for v in op.reads if (found := self.t.found(v)) is not None]
        return stand_in(self.t, op, operands, [self.t.type(v) for v in op.results], reason)

    def _needed(self, outputs: Sequence[Value]) -> list[Op]:
        """The ops that results or variables follow from. Those without a form are reported."""
        ops, refused = needed(self.t.ops, outputs)
        self.parent.refused.update(dict.fromkeys(refused))
        return ops

    def _input(self, value: Value) -> Value:
        """The argument, of its storage type or a signed one; the ops read a signed one."""
        storage = element_storage(value.type.element)
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

    def _own(self, result: Value, taken: set[Value]) -> Value:
        """The result; a copy of it if it is a result already, an argument or a constant."""
        result = self.t.identity(result) if result in taken or result.producer is None else result
        taken.add(result)
        return result

    def _output(self, value: Value, taken: set[Value]) -> Value:
        """The result: a separate value, of its storage type or a signed one, under its name."""
        try:
            result = narrow(value, self.t) if value.is_constant else self.t.value(value)
            _need_boolean(value, result)
        except Refused as refusal:
            self.parent.refused[Reason(f"result '{value.name}': {refusal}", tensor=value.name)] = None
            return value
        if element_storage(value.type.element) == ui8 and self.entry:
            result.name = ""
            result = self.t.rescale(result, ONE, ui8, input_zp=-128, rounding_mode="SINGLE_ROUND")
        else:
            result = self._own(result, taken)
        taken.add(result)
        result.name = value.name
        result.info = {"quantized": value.type.element} if is_quantized(value.type.element) else {}
        if self.entry:
            self.parent.renamed[value] = result
        return result


def table_pays(ops: Sequence[Op], sources: int) -> bool:
    """Whether a table is worth it: TABLE is one operator on one 8-bit tensor, and pays in the place of two or more."""
    return sources == 1 and len(ops) > 1 and ops[-1].result.type.storage.bits == 8
