"""Dead code elimination: pure ops none of whose results are used are removed."""

from __future__ import annotations

from typing import ClassVar

from tflq.contract import Pass, PassResult
from tflq.dialects.effects import inner_blocks, is_pure
from tflq.ir.core import Function, Module, Op
from tflq.ir.rewriting import remove_ops, remove_unneeded, unneeded

__all__ = ["DeadCodeElimination"]


class DeadCodeElimination(Pass):
    """Removes pure ops whose results nothing reads, chains of them included; also inside of other ops, but for those of
    a quant.region."""

    name: ClassVar[str] = "dce"

    def run(self, module: Module) -> PassResult:
        inside = [_inside(function) for function in module.functions]
        return PassResult(module, remove_unneeded(module, is_pure) or any(inside))


def _inside(function: Function) -> bool:
    """Removes them from blocks, the innermost first; the last op of a block ends it and stays."""
    removed = set[Op]()
    for block in reversed(list(inner_blocks(function.ops))):
        end = block.ops[-1:]
        dead = unneeded(block.ops, (), lambda op, end=end: op not in end and is_pure(op))  # type: ignore[misc]
        block.ops = [op for op in block.ops if op not in dead]
        removed |= dead
    remove_ops(function, removed)
    return bool(removed)
