"""Regions become ops on integers: quant-codegen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tflq.ir.module import Module
from tflq.tools.opt import TflToTosa
from tflq.tools.quantize.regions.materialize import QuantMaterialize, of_tflite
from tflq.tools.quantize.regions.merged_rescales import merge_rescales
from tflq.transforms.canonicalize import Canonicalize, DeadCodeElimination
from tflq.transforms.pass_manager import Pass, PassResult


@dataclass(frozen=True)
class QuantCodegen(Pass):
    """Lowers regions to ops on integers; the parameters of their ports become multiplications and shifts.

    A region whose ports all have parameters is inlined as quantized operators (`quant-materialize`), which are lowered
    to the integer form: a parameter becomes a `tosa.rescale`, which multiplies and shifts. Casts between reals and
    integers stay at the ends. Regions without parameters stay in floats. Then rescales are pushed forward and merged,
    one for each output (`merged_rescales`).

    target: only the kernels in the file of a target; by default all. rescales: which are merged: none (`kernel`), those
    that leave the results as the kernel makes them (`exact`), or also those that make them at most one step off
    (`merged`). Errors as of `quant-materialize` and `tfl-to-tosa-pipeline`.
    """

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
