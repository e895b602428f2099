"""In which runtimes a graph is exact: what each computes otherwise than ONNX says.

OpenVINO's plugin for CPUs computes int64 in 32 bits, float64 in float32, DIV by a reciprocal. ONNX Runtime does none of
these. docs/numerics.md has the table.
"""

from __future__ import annotations

from typing import Final

from tflq.dialects.onnx.elementwise import BitShift, Div
from tflq.dialects.onnx.movement import ArgMax, Gather, GatherND, ScatterND, TopK
from tflq.dialects.onnx.movement import Shape as ShapeOf
from tflq.ir.core import Function, Op
from tflq.ir.types import f64, i64, ui32, ui64

RUNTIMES: Final = ("onnxruntime", "openvino")
_WIDE: Final = (i64, ui64, f64)
_INDEXED: Final = (Gather, GatherND, ScatterND, ArgMax, TopK, ShapeOf)
"""They take or give indices in int64, which are small."""


def exact_in(function: Function) -> list[str]:
    """The runtimes that compute the graph exactly, by name."""
    return list(RUNTIMES if not only_onnxruntime(function) else RUNTIMES[:1])


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
