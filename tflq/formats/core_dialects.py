"""The pass that text needs before it is legalized."""

from __future__ import annotations

from typing import ClassVar

from tflq.dialects.forms import TRANSLATED, ModuleForm
from tflq.ir.module import Module
from tflq.transforms.pass_manager import Pass, PassResult


class CoreToInteger(Pass):
    """Ops of arith, math, tensor, linalg, shape, func and fxpmath, which text has, become ops of `tosa` on integers and
    builtins on floats; statistics go. UnsupportedError lists those without an exact form."""

    name: ClassVar[str] = "core-to-integer"
    takes: ClassVar[ModuleForm] = "tfl"
    makes: ClassVar[ModuleForm] = "tfl"

    def run(self, module: Module) -> PassResult:
        dialects = {name.partition(".")[0] for name in {op.name for op in module.ops()}}
        if dialects.isdisjoint((*TRANSLATED, "quant")):
            return PassResult(module, modified=False)
        from tflq.formats.mlir.annotations import drop_annotations
        from tflq.formats.mlir.rules import lower_core

        drop_annotations(module)
        lower_core(module)
        return PassResult(module, modified=True)
