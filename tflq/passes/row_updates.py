"""Rows that a loop writes by SLICE and CONCATENATION, as DYNAMIC_UPDATE_SLICE.

    concatenation(slice(x, 0, [i, -1, ...]), row, slice(x, [i + 1, 0, ...], -1))
    → dynamic_update_slice(x, row, [i, 0, ...])

TensorFlow's converter writes the elements of a TensorList so, in the loops of recurrent layers. The sizes of both
slices depend on i, which no static shape can say; of the operator that takes their place they are known. Where i is no
row of x the slices fail, so that there is nothing to keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tflq.contract import Pass, PassResult
from tflq.dialects.tfl.indexing import DynamicUpdateSlice
from tflq.dialects.tfl.movement import Concatenation
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import TensorType
from tflq.passes.dce import DeadCodeElimination

__all__ = ["RowUpdates"]


@dataclass(frozen=True)
class RowUpdates(Pass):
    """Puts DYNAMIC_UPDATE_SLICE for rows written by slices and a concatenation, and drops the slices."""

    name: ClassVar[str] = "row-updates"

    def run(self, module: Module) -> PassResult:
        modified = [_rewrite(function) for function in module.functions]
        if any(modified):
            DeadCodeElimination().run(module)
        return PassResult(module, any(modified))


def _rewrite(function: Function) -> bool:
    ops: list[Op] = []
    for op in function.ops:
        found = _written(op)
        if found is None:
            ops.append(op)
            continue
        x, row, index, zeros = found
        start = Value(TensorType((1 + zeros.array.size,), index.type.element))
        options = {"axis": 0, "fused_activation_function": "NONE"}
        ops.append(Op(Concatenation.op_name, [index, zeros], [start], options, op.location))
        ops.append(Op(DynamicUpdateSlice.op_name, [x, row, start], op.results, {}, op.location))
    modified = len(ops) > len(function.ops)
    function.ops = ops
    return modified


def _written(op: Op) -> tuple[Value, Value, Value, Value] | None:
    """What is written to, the row, its index and the starts in other dims, if an op writes a row."""
    if (
        not isinstance(op, Concatenation)
        or len(op.operands) != 3
        or op.attributes["fused_activation_function"] != "NONE"
    ):
        return None
    before, row, after = (op.operand(i) for i in range(3))
    shape = row.type.shape
    if not shape or shape[0] != 1 or op.attributes["axis"] not in (0, -len(shape)):
        return None
    first, last = _producer(before, "tfl.slice"), _producer(after, "tfl.slice")
    if first is None or last is None or first.operand(0) is not last.operand(0):
        return None
    x = first.operand(0)
    if len({v.type.element for v in (x, before, row, after, op.result)}) > 1:
        return None
    size, start = _head(first.operand(2)), _head(last.operand(1))
    if size is None or start is None or not _all(first.operand(1), 0) or not _all(start[1], 0):
        return None
    width = last.operand(2)
    if not width.is_constant or width.array.flat[0] != -1:
        return None
    rests = np.ravel(size[1].array), np.ravel(width.array)[1:]
    if not all(_whole(rest, x.type.shape) for rest in rests):
        return None
    return (x, row, size[0], start[1]) if _follows(start[0], size[0]) else None


def _producer(value: Value, name: str) -> Op | None:
    return value.producer if value.producer is not None and value.producer.name == name else None


def _head(value: Value) -> tuple[Value, Value] | None:
    """A computed scalar and the constants behind it, if a vector is such a concatenation."""
    joined = _producer(value, "tfl.concatenation")
    if joined is None or len(joined.operands) != 2 or not joined.operand(1).is_constant:
        return None
    return (joined.operand(0), joined.operand(1)) if joined.operand(0).type.shape == (1,) else None


def _all(value: Value, number: int) -> bool:
    return value.is_constant and bool((value.array == number).all())


def _whole(sizes: np.ndarray, shape: tuple[int | None, ...] | None) -> bool:
    """Whether sizes are those of all dims but the first: -1, or their own."""
    dims = (shape or ())[1:]
    return len(dims) == sizes.size and all(s in (-1, d) for s, d in zip(sizes.tolist(), dims, strict=True))


def _follows(value: Value, other: Value) -> bool:
    """Whether value = other + 1, both reshaped or not."""
    added = _producer(_scalar(value), "tfl.add")
    if added is None or added.attributes["fused_activation_function"] != "NONE":
        return False
    operands = [added.operand(0), added.operand(1)]
    return any(_scalar(a) is _scalar(other) and _all(b, 1) for a, b in (operands, operands[::-1]))


def _scalar(value: Value) -> Value:
    reshaped = _producer(value, "tfl.reshape")
    return value if reshaped is None else reshaped.operand(0)
