"""In which runtimes a graph is exact: what each computes otherwise than ONNX says.

OpenVINO's plugin for CPUs computes int64 in 32 bits, float64 in float32, DIV by a reciprocal. ONNX Runtime does none of
these. docs/numerics.md has the table.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from tflq.dialects.onnx.elementwise import BitShift, Div, Floor, Round
from tflq.dialects.onnx.movement import ArgMax, Gather, GatherND, ScatterND, TopK
from tflq.dialects.onnx.movement import Shape as ShapeOf
from tflq.dialects.onnx.quantization import DequantizeLinear, QuantizeLinear
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import f64, i64, ui32, ui64
from tflq.light import dataclass

OPSET: Final = 18
RUNTIMES: Final = ("onnxruntime", "openvino")
_WIDE: Final = (i64, ui64, f64)
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

    def __str__(self) -> str:
        return f"ONNX, opset {self.opset}: {self.exactness}"

    @property
    def exactness(self) -> str:
        titles = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
        listed = " and ".join(titles[name] for name in self.names) or "no runtime"
        return f"exact in {listed}" + (f"; {self.remedy}" if self.remedy else "")

    def to_json(self) -> dict[str, Any]:
        return {"opset": self.opset, "exact_in": list(self.names), "remedy": self.remedy or None}


_GIVEN: Final = "with state as inputs that are always given (--state inputs), in OpenVINO, too"


def runtimes(module: Module) -> Runtimes:
    """The runtimes that compute all entries of a module exactly."""
    each = [exact_in(function) for function in module.functions]
    names = tuple(name for name in RUNTIMES if all(name in names for names in each))
    lost = any(map(left_out, module.functions)) and not any(map(only_onnxruntime, module.functions))
    return Runtimes(names, OPSET, _GIVEN if lost and names else "")


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


def only_onnxruntime(function: Function) -> list[Op]:
    """The ops that OpenVINO computes otherwise."""
    return [op for op in function.ops if _differs(op)]


def _differs(op: Op) -> bool:
    if isinstance(op, (Div, BitShift)):
        return True
    if isinstance(op, _INDEXED):
        return False
    computed = [v for v in op.tensors if not v.is_constant]
    return any(v.type.storage in (*_WIDE, ui32) for v in computed)
