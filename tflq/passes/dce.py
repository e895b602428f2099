"""Dead code elimination: pure ops none of whose results are used are removed."""

from __future__ import annotations

from typing import ClassVar

from tflq.contract import Pass, PassResult
from tflq.dialects.effects import is_pure
from tflq.ir.core import Module
from tflq.ir.rewriting import remove_unneeded

__all__ = ["DeadCodeElimination"]


class DeadCodeElimination(Pass):
    """Removes pure ops whose results nothing reads, chains of them included."""

    name: ClassVar[str] = "dce"

    def run(self, module: Module) -> PassResult:
        return PassResult(module, remove_unneeded(module, is_pure))
