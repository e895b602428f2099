"""Constant folding: a pure op whose operands are all constants is computed now, by the numpy evaluator."""

from __future__ import annotations

import math
from typing import ClassVar, Final

import numpy as np

from tflq.contract import Pass, PassResult
from tflq.dialects.declare import Operator
from tflq.dialects.effects import is_pure, is_variable
from tflq.dialects.tfl.bits import Bitcast
from tflq.dialects.tfl.casts import Cast
from tflq.dialects.tfl.shape import Range, Rank, Shape
from tflq.dialects.traits.movement import MovesElements
from tflq.ir.core import Buffer, Function, Module, Op, Value
from tflq.ir.rewriting import remove_ops
from tflq.light import dataclass

__all__ = ["Fold"]


_KEEPS_NUMBERS: Final = (Bitcast, Cast, Range, Rank, Shape)


@dataclass(frozen=True)
class Fold(Pass):
    """Turns the results of ops on constants into constants, as long as no result is both over `limit` bytes and
    larger than what it is made of. An empty result of the function stays computed: to the interpreter a tensor without
    bytes is no constant."""

    name: ClassVar[str] = "fold"
    limit: int = 1 << 16

    def run(self, module: Module) -> PassResult:
        modified = False
        for function in module.functions:
            modified |= self._function(function)
        return PassResult(module, modified)

    def _function(self, function: Function) -> bool:
        folded: set[Op] = set()
        empty = {v for v in function.outputs if 0 in (v.type.shape or ())}
        for op in function.ops:
            if (
                not op.operands
                or not all(v is None or _is_known(v) for v in op.operands)
                or op.info.get("kept")
                or not is_pure(op)
                or _computes(op)
                or not empty.isdisjoint(op.results)
            ):
                continue
            arrays = self._evaluate(op)
            if arrays is None:
                continue
            for value, array in zip(op.results, arrays, strict=True):
                _become(value, array)
            folded.add(op)
        remove_ops(function, folded)
        return bool(folded)

    def _evaluate(self, op: Op) -> list[np.ndarray] | None:
        from tflq.evaluate import evaluate_op

        if not all(value.type.is_static and value.type.storage.numpy for value in op.results):
            return None
        source = sum(v.buffer.data.size for v in op.operands if v is not None and v.buffer is not None)
        if any(_size(value) > max(self.limit, source) for value in op.results):
            return None
        try:
            arrays = evaluate_op(op, [None if value is None else value.array for value in op.operands])
        except (NotImplementedError, ArithmeticError, IndexError):  # it is not evaluated, or undefined
            return None
        if arrays is None or any(a.shape != v.type.shape for a, v in zip(arrays, op.results, strict=True)):
            return None
        return arrays


def _computes(op: Op) -> bool:
    """Whether an operator of TFLite computes numbers: its kernel does, in its own order and precision."""
    if not isinstance(op, Operator) or not op.name.startswith("tfl."):
        return False
    return not (isinstance(op, _KEEPS_NUMBERS) or op.has(MovesElements))


def _is_known(value: Value) -> bool:
    return value.is_constant and value.type.is_static and bool(value.type.storage.numpy) and not is_variable(value)


def _size(value: Value) -> int:
    return math.prod(dim or 0 for dim in value.type.shape or ()) * value.type.storage.dtype.itemsize


def _become(value: Value, array: np.ndarray) -> None:
    """Makes a result a constant; it stays the same value, so its users need no change."""
    storage = value.type.storage
    value.producer = None
    if storage.bits < 8:
        from tflq.ir.syntax import pack

        array = pack(array, storage)
    value.buffer = Buffer.of(array)
