"""Lowering: a module in the integer form → one on ONNX's operators.

Each entry point (the first function and those of signatures) becomes a graph that keeps names, types and shapes of its
arguments and results. Variables become an argument and a result each. Functions that are called are lowered in the
place of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from tflq.caches import ProofCache
from tflq.contract import Notes, Pass, PassResult
from tflq.dialects.forms import Form
from tflq.errors import Reason, Refused
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import TensorType, is_quantized
from tflq.lowering import FunctionWalk, entries, lowered_module, own, refuse
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
        proofs = ProofCache(self.cache) if self.cache else None
        return PassResult(lower(module, proofs, given=self.given, become=self.lowered), modified=True)

    def lowered(self, op: Op, t: Onnx) -> Made | Sequence[Made]:
        """What an op becomes. Refused if it has no form."""
        return lowered(op, t)


Become: TypeAlias = Callable[[Op, Onnx], "Made | Sequence[Made]"]


def lower(module: Module, proofs: ProofCache | None = None, *, given: bool = False, become: Become = lowered) -> Module:
    """The module on ONNX's operators. become: what an op becomes. UnsupportedError lists every operator that has no
    form there."""
    refused: dict[Reason, None] = {}
    renamed: dict[Value, Value] = {}
    sources = [module.functions[i] for i in entries(module)]
    walks = [_Function(f, Onnx(module, f, proofs), become, refused, renamed) for f in sources]
    made = [walk.run() for walk in walks]
    refuse(refused, "ONNX")
    for argument in (v for function in made for v in function.inputs if "start" in v.info):
        argument.info = {**argument.info, "given": given}
    lowered = lowered_module(module, made, renamed)
    lowered.record.note(Notes([note for walk in walks for note in walk.t.notes]))
    return lowered


class _Function(FunctionWalk["Made"]):
    """One function's walk."""

    def __init__(
        self,
        source: Function,
        t: Onnx,
        become: Become,
        refused: dict[Reason, None],
        renamed: dict[Value, Value],
    ) -> None:
        super().__init__(source, t, refused)
        self.t = t
        self.become = become
        self.renamed = renamed
        self.t.lower_ops = self.lower

    def run(self) -> Function:
        inputs = [self._input(value) for value in self.source.inputs]
        self.lower(self.source.ops)
        self.t.location = None
        taken: set[Value] = set(inputs)
        outputs = [self._output(value, taken) for value in self.source.outputs]
        before, after = self.t.state.sides(self.t, taken)
        outputs += after
        return self.function(inputs + before, outputs)

    def lowered(self, op: Op) -> Sequence[Made]:
        results = self.become(op, self.t)
        return [results] if isinstance(results, (Value, Held)) else results

    def record(self, value: Value, made: Made) -> None:
        self.t.record(value, made)

    def found(self, value: Value) -> Sequence[Value]:
        return self.t.found(value)

    def stated(self, value: Value) -> TensorType:
        return value.type.stripped()

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
        result = own(result, taken, self.t.identity)
        result.name = value.name
        if value.type.shape is not None:
            result.type = TensorType(value.type.shape, result.type.element)
        result.info = {"quantized": value.type.element} if is_quantized(value.type.element) else {}
        self.renamed[value] = result
        return result
