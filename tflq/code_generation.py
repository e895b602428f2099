"""quant-codegen: regions become ops on integers, the parameters of their ports multiplications and shifts.

Each region whose ports all have parameters is inlined as quantized operators (`quant-materialize`), which are lowered
to the integer form: what a parameter means is `tosa.rescale`, a multiplication and a shift. Casts between reals and
integers stay at the ends. What has no parameters stays in floats. Then rescales are pushed forward and merged, one for
each output (`tflq.passes.regions.merged_rescales`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tflq.contract import Pass, PassResult
from tflq.ir.core import Module
from tflq.passes.canonicalize import Canonicalize
from tflq.passes.dce import DeadCodeElimination
from tflq.passes.regions.materialize import QuantMaterialize, of_tflite
from tflq.passes.regions.merged_rescales import merge_rescales
from tflq.tosa_pipeline import TflToTosa

__all__ = ["QuantCodegen"]


@dataclass(frozen=True)
class QuantCodegen(Pass):
    """Lowers regions to integers. `target`: only the kernels that a target's file lists; without one all. `rescales`:
    which are merged: none (`kernel`), where the results stay what the kernel makes (`exact`), or also where they are
    one step off at most (`merged`). Errors as of `quant-materialize` and `tfl-to-tosa-pipeline`."""

    name: ClassVar[str] = "quant-codegen"
    target: str = ""
    rescales: Literal["kernel", "exact", "merged"] = "exact"

    def run(self, module: Module) -> PassResult:
        for item in (QuantMaterialize(self.target), Canonicalize(), DeadCodeElimination()):
            module = item.run(module).module
        of_tflite(module)
        module = TflToTosa().run(module).module
        if self.rescales != "kernel":
            for function in module.functions:
                merge_rescales(function, step=self.rescales == "merged")
        return PassResult(module, True)
