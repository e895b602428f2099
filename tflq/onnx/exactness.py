"""In which runtimes a graph is exact: what each computes otherwise than ONNX says.

OpenVINO's plugin for CPUs computes int64 in 32 bits, float64 in float32, DIV by a reciprocal. ONNX Runtime does none of
these. docs/numerics.md has the table.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from tflq.dialects.onnx.elementwise import BitShift, Div
from tflq.dialects.onnx.movement import ArgMax, Gather, GatherND, ScatterND, TopK
from tflq.dialects.onnx.movement import Shape as ShapeOf
from tflq.dialects.onnx.quantization import DequantizeLinear, QuantizeLinear
from tflq.ir.core import Function, Module, Op
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

    def __str__(self) -> str:
        if not self.names:
            return f"ONNX, opset {self.opset}, in the QDQ form: exact in no runtime"
        listed = " and ".join({"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}[name] for name in self.names)
        return f"ONNX, opset {self.opset}: exact in {listed}"

    def to_json(self) -> dict[str, Any]:
        return {"opset": self.opset, "exact_in": list(self.names)}


def runtimes(module: Module) -> Runtimes:
    """The runtimes that compute all entries of a module exactly."""
    each = [exact_in(function) for function in module.functions]
    return Runtimes(tuple(name for name in RUNTIMES if all(name in names for names in each)), OPSET)


def exact_in(function: Function) -> list[str]:
    """The runtimes that compute the graph exactly, by name. None does where an operator stands between casts."""
    if any(isinstance(op, (DequantizeLinear, QuantizeLinear)) for op in function.ops):
        return []
    stateful = any("start" in v.info for v in function.inputs)  # OpenVINO takes an input with a value as a constant
    return list(RUNTIMES[:1] if stateful or only_onnxruntime(function) else RUNTIMES)


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
