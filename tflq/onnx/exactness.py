"""In which runtimes a graph is exact: what each computes otherwise than ONNX says.

OpenVINO's plugin for CPUs computes int64 in 32 bits, float64 in float32, DIV by a reciprocal. ONNX Runtime does none of
these. docs/numerics.md has the table.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, ClassVar, Final

from tflq.contract import Note
from tflq.dialects.onnx.elementwise import BitShift, Div, Floor, Round
from tflq.dialects.onnx.movement import ArgMax, Gather, GatherND, ScatterND, TopK
from tflq.dialects.onnx.movement import Shape as ShapeOf
from tflq.dialects.onnx.quantization import DequantizeLinear, QuantizeLinear
from tflq.ir.core import Function, Location, Module, Op, Value
from tflq.ir.types import f64, i64, ui32, ui64
from tflq.light import dataclass

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
    """Whether a result follows from sums of real numbers (`onnx.lowering.convolution_real`) without being rounded, or
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
