"""Lowering: a module in the integer form → one on ONNX's operators.

Each entry point (the first function and those of signatures) becomes a graph that keeps names, types and shapes of its
arguments and results. Variables become an argument and a result each. Functions that are called are lowered in the
place of the call. The report says in which runtimes the result is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, ClassVar, Final, TypeAlias

from tflq.caches import ProofCache
from tflq.contract import Note, Notes, Pass, PassResult
from tflq.dialects.forms import Form
from tflq.dialects.onnx import (
    ArgMax,
    BitShift,
    DequantizeLinear,
    Div,
    Floor,
    Gather,
    GatherND,
    QuantizeLinear,
    Round,
    ScatterND,
    TopK,
)
from tflq.dialects.onnx import Shape as ShapeOf
from tflq.errors import Reason, Refused
from tflq.ir.core import Function, Location, Module, Op, Value
from tflq.ir.types import ScalarType, TensorType, f64, i64, is_quantized, ui32, ui64
from tflq.light import dataclass
from tflq.lowering import FunctionWalk, entries, lowered_module, own, refuse
from tflq.onnx.context import HELD, Held, Made, Onnx, lowered
from tflq.onnx.context import Form as HeldAs


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
            result = self.t.held(value).get(self.t, HeldAs(_element(value)))
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


def _element(value: Value) -> ScalarType:
    """The element type of a result. Refused if ONNX has none."""
    if value.type.storage not in HELD:
        raise Refused(f"it is {value.type.storage}, which has no form")
    return value.type.storage


# In which runtimes a graph is exact: what each computes otherwise than ONNX says.
#
# OpenVINO's plugin for CPUs computes int64 in 32 bits, float64 in float32, DIV by a reciprocal. ONNX Runtime does none
# of these. docs/numerics.md has the table.


OPSET: Final = 18
RUNTIMES: Final = ("onnxruntime", "openvino")
_OF_TYPE: Final = {
    i64: "int64 in 32 bits",
    ui64: "uint64 in 32 bits",
    f64: "float64 in float32",
    ui32: "uint32 in int32",
}
"""How OpenVINO computes numbers of these types."""
_INDEXED: Final = (Gather, GatherND, ScatterND, ArgMax, TopK, ShapeOf)
"""They take or give indices in int64, which are small."""


@dataclass(frozen=True, slots=True)
class Runtimes:
    """Which runtimes compute a model exactly; for the report."""

    key: ClassVar[str] = "onnx"
    """What the report calls it."""
    names: tuple[str, ...]
    opset: int
    remedy: str = ""
    """What makes it exact in more of them."""
    lost: tuple[str, ...] = ()
    """The operators of the source of which OpenVINO computes something otherwise, and how."""

    def __str__(self) -> str:
        return f"ONNX, opset {self.opset}: {self.exactness}"

    @property
    def exactness(self) -> str:
        titles = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
        listed = " and ".join(titles[name] for name in self.names) or "no runtime"
        lost = f"not in OpenVINO: {', '.join(self.lost)}" if self.lost else ""
        return "; ".join(part for part in (f"exact in {listed}", lost, self.remedy) if part)

    def to_json(self) -> dict[str, Any]:
        found = {"opset": self.opset, "exact_in": list(self.names), "remedy": self.remedy or None}
        return found | {"lost": list(self.lost)}


_GIVEN: Final = "with state as inputs that are always given (--state inputs), in OpenVINO, too"


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
    return Runtimes(names, OPSET, _GIVEN if any(map(left_out, module.functions)) else "")


def otherwise_notes(module: Module) -> list[Note]:
    """A note on each operator of the source of which OpenVINO computes something otherwise."""
    found = ((place, ", ".join(causes)) for _, place, causes in _by_operator(module))
    return [Note(place, f"for ONNX Runtime alone: OpenVINO computes {how}") for place, how in found]


def _by_operator(module: Module) -> list[tuple[str, Location | None, dict[str, None]]]:
    """The operators of the source of which OpenVINO computes something otherwise: opcode, place, and how."""
    found: dict[tuple[str, Location | None], dict[str, None]] = {}
    for op, how in chain.from_iterable(map(only_onnxruntime, module.functions)):
        opcode = op.location.opcode if op.location else op.short_name
        found.setdefault((opcode, op.location), {})[how] = None
    return [(*of, causes) for of, causes in found.items()]


def exact_in(function: Function) -> list[str]:
    """The runtimes that compute the graph exactly, by name. None does where an operator stands between casts."""
    if any(isinstance(op, (DequantizeLinear, QuantizeLinear)) for op in function.ops) or results_in_sums(function):
        return []
    return list(RUNTIMES[:1] if left_out(function) or only_onnxruntime(function) else RUNTIMES)


def left_out(function: Function) -> list[Value]:
    """The states that callers may leave out. OpenVINO takes an input with an initializer as a constant."""
    return [v for v in function.inputs if "start" in v.info and not v.info["given"]]


def results_in_sums(function: Function) -> bool:
    """Whether a result follows from sums of real numbers (`real_sum` in `onnx.convolution`) without being rounded, or
    from those of a hybrid operator."""
    following: set[Value] = set()
    for op in function.ops:
        sums = op.info.get("sums")
        if sums == "hybrid":
            return True
        if sums or (not isinstance(op, (Round, Floor)) and following.intersection(op.reads)):
            following.update(v for v in op.results if v.type.storage.is_float)
    return bool(following.intersection(function.outputs))


def only_onnxruntime(function: Function) -> list[tuple[Op, str]]:
    """The ops that OpenVINO computes otherwise, and how."""
    return [(op, cause) for op in function.ops if (cause := _otherwise(op))]


def _otherwise(op: Op) -> str:
    if isinstance(op, Div):
        return "quotients by a reciprocal"
    if isinstance(op, _INDEXED):
        return ""
    kinds = (v.type.storage for v in op.tensors if not v.is_constant)
    return next(
        (_OF_TYPE[kind] for kind in kinds if kind in _OF_TYPE), "shifts of bits" if isinstance(op, BitShift) else ""
    )
