"""Lowering: a module in the integer form → one on ONNX's operators.

Each entry point (the first function and those of signatures) becomes a graph that keeps names, types and shapes of its
arguments and results. Variables become an argument and a result each. Functions that are called are lowered in the
place of the call. What cannot be lowered, but is needed, is collected over the whole module into one
`UnsupportedError`; an operator that computes shapes is not needed where they are known without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from tflq.analysis.known import is_handle
from tflq.builder import needed, stand_in
from tflq.caches import ProofCache
from tflq.contract import Notes, Pass, PassResult
from tflq.dialects.forms import Form
from tflq.errors import Reason, Refused, UnsupportedError
from tflq.ir.core import Function, Module, Op, Signature, Value
from tflq.ir.types import TensorType, is_quantized
from tflq.onnx.lowering.context import HELD, Made, Onnx, lowered
from tflq.onnx.lowering.held import Form as HeldAs
from tflq.onnx.lowering.held import Held


@dataclass(frozen=True)
class LowerToOnnx(Pass):
    """The integer form becomes operators of ONNX. cache: a folder of proofs, "" for none. given: callers give each
    state in every run, since its input has no initializer."""

    name: ClassVar[str] = "lower-to-onnx"
    title: ClassVar[str] = "lowering to ONNX"
    takes: ClassVar[Form] = "integer"
    makes: ClassVar[Form] = "onnx"
    cache: str = ""
    given: bool = False

    def run(self, module: Module) -> PassResult:
        made = lower(module, ProofCache(self.cache) if self.cache else None, given=self.given)
        return PassResult(made, modified=True)


def lower(module: Module, proofs: ProofCache | None = None, *, given: bool = False) -> Module:
    """The module on ONNX's operators. UnsupportedError lists every operator that has no form there."""
    entries = {0, *(s.function for s in module.signatures or ())}
    entries = {i for i in entries if not module.functions[i].info.get("declaration")}
    refused: dict[Reason, None] = {}
    renamed: dict[Value, Value] = {}
    places = sorted(entries)
    walks = [_Function(module, module.functions[i], proofs, refused, renamed) for i in places]
    made = [walk.run() for walk in walks]
    if refused:
        what = f"{len(refused)} operator(s) have no form in ONNX:"
        remedy = "convert to a .tflite file, or only the part before it (--cut)"
        raise UnsupportedError(what, list(refused), remedy=remedy)
    signatures = None if module.signatures is None else [_remap(s, places, renamed) for s in module.signatures]
    for argument in (v for function in made for v in function.inputs if "start" in v.info):
        argument.info = {**argument.info, "given": given}
    lowered = Module(made, signatures, description=module.description, source=module.source)
    lowered.warnings = list(module.warnings)
    lowered.record.note(Notes([note for walk in walks for note in walk.t.notes]))
    return lowered


def _remap(signature: Signature, places: Sequence[int], renamed: dict[Value, Value]) -> Signature:
    """A signature of the module that is made. It does not have the state."""

    def side(pairs: list[tuple[str | None, Value]] | None) -> list[tuple[str | None, Value]] | None:
        return None if pairs is None else [(name, renamed.get(value, value)) for name, value in pairs]

    function = places.index(signature.function)
    return replace(
        signature, function=function, inputs=side(signature.inputs), outputs=side(signature.outputs), info={}
    )


class _Function:
    """One function's walk."""

    def __init__(
        self,
        module: Module,
        source: Function,
        proofs: ProofCache | None,
        refused: dict[Reason, None],
        renamed: dict[Value, Value],
    ) -> None:
        self.source = source
        self.refused = refused
        self.renamed = renamed
        self.t = Onnx(module, source, proofs)
        self.t.lower_ops = self._lower

    def run(self) -> Function:
        inputs = [self._input(value) for value in self.source.inputs]
        self._lower(self.source.ops)
        self.t.location = None
        taken: set[Value] = set(inputs)
        outputs = [self._output(value, taken) for value in self.source.outputs]
        before, after = self.t.state.sides(self.t, taken)
        outputs += after
        return Function(self.source.name, inputs + before, outputs, self._needed(outputs))

    def _lower(self, ops: Sequence[Op]) -> None:
        """Lowers ops in order."""
        for op in ops:
            self.t.location = op.location
            try:
                _need_ranks(op)
                results = lowered(op, self.t)
            except Refused as refusal:
                results = self._stand_in(op, refusal.at(op.location))
            made: Sequence[Made] = [results] if isinstance(results, (Value, Held)) else results
            for old, new in zip(op.results, made, strict=True):
                self.t.record(old, new)

    def _stand_in(self, op: Op, reason: Reason) -> list[Value]:
        """Results of an op that has no form."""
        operands = [v for o in op.reads for v in self.t.found(o)]
        return stand_in(self.t, op, operands, [v.type.stripped() for v in op.results], reason)

    def _needed(self, outputs: Sequence[Value]) -> list[Op]:
        """The ops that results follow from. Those without a form are reported."""
        ops, refused = needed(self.t.ops, outputs)
        self.refused.update(dict.fromkeys(refused))
        return ops

    def _input(self, value: Value) -> Value:
        """The argument, of its storage type."""
        storage, shape = value.type.storage, value.type.shape
        lacking = f"is {storage}, which has no form" if storage not in HELD else "has no known rank" * (shape is None)
        if lacking:
            self.refused[Reason(f"input '{value.name}' {lacking}", tensor=value.name)] = None
        info = {"quantized": value.type.element} if is_quantized(value.type.element) else {}
        argument = Value(TensorType(shape, storage), value.name, info=info)
        self.renamed[value] = argument
        self.t.record(value, argument)
        return argument

    def _output(self, value: Value, taken: set[Value]) -> Value:
        """The result: a separate value of its storage type, under its name."""
        try:
            result = self.t.held(value).get(self.t, HeldAs(value.type.storage))
        except Refused as refusal:
            self.refused[Reason(f"result '{value.name}': {refusal}", tensor=value.name)] = None
            return value
        result = self.t.own(result, taken)
        result.name = value.name
        if value.type.shape is not None:
            result.type = TensorType(value.type.shape, result.type.element)
        result.info = {"quantized": value.type.element} if is_quantized(value.type.element) else {}
        self.renamed[value] = result
        return result


def _need_ranks(op: Op) -> None:
    """Refused if an operand's rank is not known."""
    for value in op.operands:
        if value is not None and value.type.shape is None and not is_handle(value):
            raise Refused(f"the rank of its operand '{value.name}' is not known")
