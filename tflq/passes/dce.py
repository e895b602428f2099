"""Dead code elimination: pure ops none of whose results are used are removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tflq.ir.core import Function, Module, Op, Value
from tflq.passes.contract import Pass, PassResult
from tflq.passes.effects import is_pure
from tflq.passes.rewriting import remove_ops

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
            dead = _dead_ops(function, pinned)
            remove_ops(function, dead)
            modified |= bool(dead)
        return PassResult(module, modified)


def _dead_ops(function: Function, pinned: set[Value]) -> set[Op]:
    live = pinned | set(function.outputs)
    dead: set[Op] = set()
    for op in reversed(function.ops):
        if is_pure(op) and live.isdisjoint(op.results):
            dead.add(op)
        else:
            live.update(value for value in op.operands if value is not None)
    return dead
