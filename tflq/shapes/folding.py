"""Sizes that a model computes, once they are known, are constants: SHAPE, what is computed with it, RANGE of it."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.analysis.known import Known
from tflq.dialects.effects import is_pure
from tflq.ir.core import Buffer, Module, Op, Value
from tflq.ir.rewriting import remove_ops, remove_unneeded

__all__ = ["fold_sizes"]


def fold_sizes(module: Module, known: Mapping[Value, Known]) -> None:
    """Puts constants in the place of integer results whose elements are all known, and drops what only they read."""
    for function in module.functions:
        folded = {op for op in function.ops if _is_known(op, known)}
        for op in folded:
            for value in op.results:
                value.producer = None
                value.buffer = Buffer.of(known[value].array)
        remove_ops(function, folded)
    remove_unneeded(module, is_pure)


def _is_known(op: Op, known: Mapping[Value, Known]) -> bool:
    if not op.results or not is_pure(op):
        return False
    return all(v in known and known[v].complete and _is_size(v, known[v]) for v in op.results)


def _is_size(value: Value, known: Known) -> bool:
    storage = value.type.storage
    return storage.kind in ("int", "bool") and storage.bits >= 8 and known.array.dtype == storage.dtype
