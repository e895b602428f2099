"""quant-codegen: regions become ops on integers, the parameters of their ports multiplications and shifts.

Each region whose ports all have parameters is inlined as quantized operators (`quant-materialize`), which are lowered
to the integer form: what a parameter means is `tosa.rescale`, a multiplication and a shift. Casts between reals and
integers stay at the ends. What has no parameters stays in floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tflq.dialects.quant.casts import Dcast, Qcast
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.ir.core import Module, Op
from tflq.passes.canonicalize import Canonicalize
from tflq.passes.contract import Pass, PassResult
from tflq.passes.dce import DeadCodeElimination
from tflq.passes.regions.materialize import QuantMaterialize
from tflq.tosa_pipeline import TflToTosa

__all__ = ["QuantCodegen"]


@dataclass(frozen=True)
class QuantCodegen(Pass):
    """Lowers regions to integers. `target`: only the kernels that a target's file lists; without one all. Errors as of
    `quant-materialize` and `tfl-to-tosa-pipeline`."""

    name: ClassVar[str] = "quant-codegen"
    target: str = ""

    def run(self, module: Module) -> PassResult:
        for item in (QuantMaterialize(self.target), Canonicalize(), DeadCodeElimination()):
            module = item.run(module).module
        for function in module.functions:
            function.ops = [_of_tflite(op) for op in function.ops]
        return TflToTosa().run(module)


def _of_tflite(op: Op) -> Op:
    """TFLite's operator for a cast; any other op as it is."""
    kind = Quantize if isinstance(op, Qcast) else Dequantize if isinstance(op, Dcast) else None
    return op if kind is None else Op(kind.op_name, op.operands, op.results, {}, op.location)
