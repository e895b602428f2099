"""Lowering: a module in the integer form → one on ONNX's operators.

Each entry point (the first function and those of signatures) becomes a graph that keeps names, types and shapes of its
arguments and results. Variables become an argument and a result each. Functions that are called are lowered in the
place of the call. The report says in which runtimes the result is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Final, TypeAlias

from tflq.base.caches import ProofCache
from tflq.base.errors import Reason, Refused
from tflq.dialects.effects import is_handle
from tflq.dialects.forms import ModuleForm
from tflq.formats.lowering import FunctionWalk, distinct_result, entries, lowered_module, refuse
from tflq.formats.onnx.context import ELEMENT_TYPES, Onnx, OnnxTensor, Result, TensorForm, is_narrow, lowered, need_type
from tflq.formats.onnx.dialect import (
    ArgMax,
    ArgMin,
    BitShift,
    DequantizeLinear,
    Div,
    Floor,
    Gather,
    GatherND,
    Mod,
    NonZero,
    QuantizeLinear,
    Round,
    ScatterND,
    TopK,
)
from tflq.formats.onnx.dialect import Shape as ShapeOf
from tflq.ir.facts import walk
from tflq.ir.module import Function, Module
from tflq.ir.ops import Location, Op, Value
from tflq.ir.types import TensorType, f64, i64, is_quantized, ui32, ui64
from tflq.transforms.pass_manager import Note, Notes, Pass, PassResult, Searches


@dataclass(frozen=True)
class LowerToOnnx(Pass):
    """The integer form becomes operators of ONNX. cache: a folder of proofs, "" for none.

    state_required: callers give each state in every run, since its input has no initializer.
    """

    name: ClassVar[str] = "lower-to-onnx"
    title: ClassVar[str] = "lowering to ONNX"
    takes: ClassVar[ModuleForm] = "integer"
    makes: ClassVar[ModuleForm] = "onnx"
    cache: str = ""
    state_required: bool = False

    def run(self, module: Module) -> PassResult:
        proofs = ProofCache(self.cache) if self.cache else None
        return PassResult(lower(module, proofs, state_required=self.state_required, become=self.lowered), modified=True)

    def lowered(self, op: Op, t: Onnx) -> Result | Sequence[Result]:
        """The lowered results of an op. Refused if the op has no form."""
        return lowered(op, t)


Become: TypeAlias = Callable[[Op, Onnx], "Result | Sequence[Result]"]


def lower(
    module: Module, proofs: ProofCache | None = None, *, state_required: bool = False, become: Become = lowered
) -> Module:
    """The module on ONNX's operators. become: lowers an op. UnsupportedError lists every operator that has no
    form there."""
    refused: dict[Reason, None] = {}
    renamed: dict[Value, Value] = {}
    sources = [module.functions[i] for i in entries(module)]
    searches = Searches(module)
    walks = [_Function(f, Onnx(module, f, proofs, searches), become, refused, renamed) for f in sources]
    functions = [walk.run() for walk in walks]
    refuse(refused, "ONNX")
    for argument in (v for function in functions for v in function.inputs if "start" in v.info):
        argument.info = {**argument.info, "given": state_required}
    lowered = lowered_module(module, functions, renamed)
    lowered.record.note(Notes([note for walk in walks for note in walk.t.notes]))
    return lowered


class _Function(FunctionWalk["Result"]):
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
        self.t.lower_ops = self.inline

    def run(self) -> Function:
        inputs = [self._input(value) for value in self.source.inputs]
        self.lower(self.source.ops)
        self.t.location = None
        used: set[Value] = set(inputs)
        outputs = [self._output(value, used) for value in self.source.outputs]
        before, after = self.t.state.sides(self.t, used)
        outputs += after
        return self.function(inputs + before, outputs)

    def lowered(self, op: Op) -> Sequence[Result]:
        for value in op.tensors:
            _need_known_type(value)
        results = self.become(op, self.t)
        return [results] if isinstance(results, (Value, OnnxTensor)) else results

    def record(self, value: Value, result: Result) -> None:
        self.t.record(value, result)

    def counterparts(self, value: Value) -> Sequence[Value]:
        return self.t.forms_of(value)

    def stand_in_type(self, value: Value) -> TensorType:
        return value.type.stripped()

    def _input(self, value: Value) -> Value:
        """The argument, of its storage type."""
        storage, shape = value.type.storage, value.type.shape
        lacking = (
            f"is {storage}, which has no form in ONNX"
            if storage not in ELEMENT_TYPES
            else "has no known rank" * (shape is None)
        )
        if lacking:
            self.refused[Reason(f"input '{value.name}' {lacking}", tensor=value.name)] = None
        info = {"quantized": value.type.element} if is_quantized(value.type.element) else {}
        argument = Value(TensorType(shape, storage), value.name, info=info)
        self.renamed[value] = argument
        self.t.record(value, argument)
        return argument

    def _output(self, value: Value, used: set[Value]) -> Value:
        """The result: a separate value of its storage type, under its name."""
        try:
            _need_result(value)
            result = self.t.tensor(value).get(self.t, TensorForm(value.type.storage))
        except Refused as refusal:
            self.refused[Reason(f"result '{value.name}': {refusal}", tensor=value.name)] = None
            return value
        result = distinct_result(result, used, self.t.identity)
        result.name = value.name
        if value.type.shape is not None:
            result.type = TensorType(value.type.shape, result.type.element)
        result.info = {"quantized": value.type.element} if is_quantized(value.type.element) else {}
        self.renamed[value] = result
        return result


def _need_result(value: Value) -> None:
    """Refused if a result is a handle, or of a type that ONNX's tensors do not hold."""
    if is_handle(value):
        raise Refused("it is the handle of a variable, and ONNX has none")
    if value.producer is None:  # the walk asks of the others
        _need_known_type(value)


def _need_known_type(value: Value) -> None:
    """Refused if numpy does not hold a constant, or if ONNX's tensors do not hold another value."""
    storage = value.type.storage
    known = bool(storage.numpy) if value.is_constant else is_handle(value) or is_narrow(storage)
    if not known:
        need_type(storage, f"'{value.name}'")


# In which runtimes a graph is exact: what each computes otherwise than ONNX says.
#
# OpenVINO's plugin for CPUs computes int64 in 32 bits, float64 in float32, DIV by a reciprocal. ONNX Runtime does none
# of these. docs/numerics.md says what else they put together.


OPSET: Final = 18
RUNTIMES: Final = ("onnxruntime", "openvino")
_OF_TYPE: Final = {
    i64: "int64 in 32 bits",
    ui64: "uint64 in 32 bits",
    f64: "float64 in float32",
    ui32: "uint32 in int32",
}
"""The types that OpenVINO computes otherwise, with the difference."""
_INDEXED: Final = (Gather, GatherND, ScatterND, ArgMax, ArgMin, NonZero, TopK, ShapeOf)
"""They take or give indices in int64, which are small."""


@dataclass(frozen=True, slots=True)
class Runtimes:
    """The runtimes that compute a model exactly; for the report."""

    key: ClassVar[str] = "onnx"
    """The key in the report."""
    names: tuple[str, ...]
    opset: int
    remedy: str = ""
    """A change of options that makes it exact in more runtimes."""
    lost: tuple[str, ...] = ()
    """The operators of the source of which OpenVINO computes something otherwise, and how."""

    def __str__(self) -> str:
        return f"ONNX, opset {self.opset}: {self.exactness}"

    @property
    def exactness(self) -> str:
        titles = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
        listed = " and ".join(titles[name] for name in self.names) or "no runtime"
        inexact = f"not in OpenVINO: {', '.join(self.lost)}" if self.lost else ""
        return "; ".join(part for part in (f"exact in {listed}", inexact, self.remedy) if part)

    def to_json(self) -> dict[str, Any]:
        document = {"opset": self.opset, "exact_in": list(self.names), "remedy": self.remedy or None}
        return document | {"lost": list(self.lost)}


_REQUIRED_STATE: Final = "with state as inputs that are always given (--state inputs), in OpenVINO, too"


def runtimes(module: Module) -> Runtimes:
    """The runtimes that compute all entries of a module exactly."""
    each = [exact_in(function) for function in module.functions]
    names = tuple(name for name in RUNTIMES if all(name in names for names in each))
    otherwise = _by_operator(module)
    if not names or otherwise:
        opcodes: dict[str, dict[str, None]] = {}
        for opcode, _, causes in otherwise if names else ():
            opcodes.setdefault(opcode, {}).update(causes)
        return Runtimes(names, OPSET, lost=tuple(f"{opcode} ({', '.join(how)})" for opcode, how in opcodes.items()))
    return Runtimes(names, OPSET, _REQUIRED_STATE if any(map(left_out, module.functions)) else "")


def otherwise_notes(module: Module) -> list[Note]:
    """A note on each operator of the source of which OpenVINO computes something otherwise."""
    otherwise = ((place, ", ".join(causes)) for _, place, causes in _by_operator(module))
    return [Note(place, f"for ONNX Runtime alone: OpenVINO computes {how}") for place, how in otherwise]


def _by_operator(module: Module) -> list[tuple[str, Location | None, dict[str, None]]]:
    """The operators of the source of which OpenVINO computes something otherwise: opcode, place, and how."""
    by_operator: dict[tuple[str, Location | None], dict[str, None]] = {}
    for op, how in chain.from_iterable(map(only_onnxruntime, module.functions)):
        opcode = op.location.opcode if op.location else op.short_name
        by_operator.setdefault((opcode, op.location), {})[how] = None
    return [(*of, causes) for of, causes in by_operator.items()]


def exact_in(function: Function) -> list[str]:
    """The runtimes that compute the graph exactly, by name. None does where an operator stands between casts."""
    if function.has_ops(DequantizeLinear, QuantizeLinear) or results_in_sums(function):
        return []
    return list(RUNTIMES[:1] if left_out(function) or only_onnxruntime(function) else RUNTIMES)


def left_out(function: Function) -> list[Value]:
    """The states that callers may leave out. OpenVINO takes an input with an initializer as a constant."""
    return [v for v in function.inputs if "start" in v.info and not v.info["given"]]


def results_in_sums(function: Function) -> bool:
    """Whether a result follows from sums of real numbers (`real_sum` in `onnx.convolution`) without being rounded, or
    from those of a hybrid operator."""
    following: set[Value] = set()
    return function.once(
        "results in sums",
        lambda: _follow(function.ops, following) or not following.isdisjoint(function.outputs),
    )


def _follow(ops: Sequence[Op], following: set[Value]) -> bool:
    """Enters the floats that follow from sums. All of an operator with graphs do, if one that it is given or gives
    does. Whether there is a hybrid operator."""
    for op in ops:
        sums, follows = op.info.get("sums"), not following.isdisjoint(op.operands)
        if sums == "hybrid":
            return True
        for block in (region.block for region in op.regions):
            if follows:
                following.update(_floats(block.arguments))
            if _follow(block.ops, following):
                return True
            sums = sums or bool(following.intersection(block.ops[-1].present_operands))
        if sums or (follows and not isinstance(op, (Round, Floor))):
            following.update(_floats(op.results))
    return False


def _floats(values: Sequence[Value]) -> list[Value]:
    return [v for v in values if v.type.storage.is_float]


def only_onnxruntime(function: Function) -> list[tuple[Op, str]]:
    """The ops that OpenVINO computes otherwise, and how."""
    return function.once(
        "only onnxruntime", lambda: [(op, cause) for op in walk(function.ops) if (cause := _otherwise(op))]
    )


def _otherwise(op: Op) -> str:
    if isinstance(op, Div):
        return "quotients by a reciprocal"
    if isinstance(op, Mod) and op.a.type.storage.is_float:
        return "remainders by rounded quotients"
    if isinstance(op, _INDEXED):
        return ""
    for value in op.tensors:
        if (how := _OF_TYPE.get(value.type.storage)) and not value.is_constant:
            return how
    return "shifts of bits" if isinstance(op, BitShift) else ""
