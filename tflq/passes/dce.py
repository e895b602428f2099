"""Dead code elimination: pure ops none of whose results are used are removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tflq.dialects.effects import is_pure
from tflq.ir.core import Module
from tflq.ir.rewriting import remove_ops, unneeded
from tflq.passes.contract import Pass, PassResult

__all__ = ["DeadCodeElimination"]


@dataclass(frozen=True)
class DeadCodeElimination(Pass):
    """Removes pure ops whose results nothing reads, chains of them included."""

    name: ClassVar[str] = "dce"

    def run(self, module: Module) -> PassResult:
        pinned = {
            value
            for signature in module.signatures or []
            for _, value in (*(signature.inputs or ()), *(signature.outputs or ()))
        }
        modified = False
        for function in module.functions:
            dead = unneeded(function.ops, pinned | set(function.outputs), is_pure)
            remove_ops(function, dead)
            modified |= bool(dead)
        return PassResult(module, modified)
