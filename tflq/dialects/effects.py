"""Which ops do nothing but compute their results: only those may be removed or merged; and which ops passes look into.

An op is pure if it is declared, does not declare that it is not, touches no variable tensor and holds none that is not;
of ops that nobody declares nothing is known, but for those of MLIR's dialects on tensors and scalars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from tflq.dialects.declare import Operator
from tflq.dialects.traits.effects import Atomic, Impure
from tflq.ir.core import Block, Op, Value

__all__ = ["PURE_DIALECTS", "inner_blocks", "is_pure", "is_variable", "own_blocks", "reachable"]

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


def own_blocks(op: Op) -> list[Block]:
    """The blocks of an op that passes look into: none of an atomic one."""
    if not op.regions or (isinstance(op, Operator) and op.has(Atomic)):
        return []
    return [block for region in op.regions for block in region.blocks]


def inner_blocks(ops: Iterable[Op]) -> Iterator[Block]:
    """The blocks inside of ops, each before those inside of it; none of an atomic op."""
    for op in ops:
        for block in own_blocks(op) if op.regions else ():
            yield block
            yield from inner_blocks(block.ops)


def reachable(ops: Iterable[Op]) -> Iterator[Op]:
    """The ops and those inside of them, each before what is inside; of an atomic op itself only."""
    for op in ops:
        yield op
        for block in own_blocks(op) if op.regions else ():
            yield from reachable(block.ops)


def is_variable(value: Value) -> bool:
    """Whether the value is a variable tensor: state that outlives a run."""
    return bool(value.info) and bool(value.info.get("is_variable"))
