"""Which ops do nothing but compute their results: only those may be removed or merged.

An op is pure if it is declared, does not declare that it is not, touches no variable tensor and holds none that is not;
of ops that nobody declares nothing is known, but for those of MLIR's dialects on tensors and scalars.
"""

from __future__ import annotations

from functools import cache

from tflq.dialects.declare import Operator
from tflq.dialects.traits.effects import Impure
from tflq.ir.core import Op, Value

__all__ = ["PURE_DIALECTS", "is_pure"]

PURE_DIALECTS = frozenset({"arith", "linalg", "math", "shape", "tensor"})
"""Dialects whose ops are pure without being declared."""

_TERMINATORS = frozenset({"linalg.yield", "quant.return", "stablehlo.return", "tensor.yield"})


def is_pure(op: Op) -> bool:
    """Whether the op can be removed if its results are unused. Without ops inside it can be merged with an identical
    one, too."""
    if not (not op.has(Impure) if isinstance(op, Operator) else _is_pure_kind(op.name)):
        return False
    for value in op.operands:
        if value is not None and value.info and is_variable(value):
            return False
    return not op.regions or all(
        inner.name in _TERMINATORS or is_pure(inner)
        for region in op.regions
        for block in region.blocks
        for inner in block.ops
    )


@cache
def _is_pure_kind(name: str) -> bool:
    return name == "func.constant" or name.partition(".")[0] in PURE_DIALECTS


def is_variable(value: Value) -> bool:
    """Whether the value is a variable tensor: state that outlives a run."""
    return bool(value.info) and bool(value.info.get("is_variable"))
