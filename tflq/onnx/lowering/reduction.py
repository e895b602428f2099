"""Reductions over axes, indices of the greatest elements, running sums.

Sums are in float32 where no partial sum reaches 2^24. Sources: kernels/reduce.cc,
arg_min_max.cc, cumsum.cc, topk_v2.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Final

from tflq.dialects.declare import Operator
from tflq.dialects.onnx import movement as onnx
from tflq.dialects.tfl import reduction as tfl
from tflq.dialects.tosa import movement as tosa
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import f32, i1, i32, i64
from tflq.onnx.lowering.context import Made, Onnx, lowering, static
from tflq.onnx.lowering.held import EXACT, Held
from tflq.onnx.lowering.limbs import BITS, plus, split
from tflq.onnx.lowering.movement import numbers

_KINDS: Final[dict[type[Operator], type[Operator]]] = {
    tosa.ReduceSum: onnx.ReduceSum,
    tosa.ReduceMax: onnx.ReduceMax,
    tosa.ReduceMin: onnx.ReduceMin,
    tosa.ReduceAll: onnx.ReduceMin,
    tosa.ReduceAny: onnx.ReduceMax,
    tfl.Sum: onnx.ReduceSum,
    tfl.ReduceMax: onnx.ReduceMax,
    tfl.ReduceMin: onnx.ReduceMin,
    tfl.ReduceProd: onnx.ReduceProd,
    tfl.ReduceAll: onnx.ReduceMin,
    tfl.ReduceAny: onnx.ReduceMax,
}

_OF_DOUBLES: Final = 1 << 53
_FACTORS: Final = 256
"""Elements of a product that are multiplied one by one."""


@lowering(tosa.ReduceSum, tosa.ReduceMax, tosa.ReduceMin, tosa.ReduceAll, tosa.ReduceAny)
def reduce_axis(op: tosa.Reduction, t: Onnx) -> Held:
    return _reduced(t, op, op.input, [op.axis], op.result, keep=True)


@lowering(tfl.Sum, tfl.ReduceMax, tfl.ReduceMin, tfl.ReduceProd, tfl.ReduceAll, tfl.ReduceAny)
def reduce_axes(op: tfl.AxesReduced, t: Onnx) -> Held:
    return _reduced(t, op, op.input, numbers(op.axes), op.result, keep=op.keep_dims)


def _reduced(t: Onnx, op: Operator, x: Value, axes: Sequence[int], result: Value, *, keep: bool) -> Held:
    kind, rank = _KINDS[type(op)], len(x.type.shape or ())
    axes = sorted({a % rank for a in axes})
    if not axes:
        return t.held(x)
    if x.type.storage == i1:
        truth = t.reduce(kind, t.cast(t.value(x), f32), axes, keep=keep)
        return t.made(t.cast(truth, i1), result)
    if x.type.storage.is_float or kind in (onnx.ReduceMax, onnx.ReduceMin):
        return t.made(t.reduce(kind, t.integers(x, t.computing([x])), axes, keep=keep), result)
    if kind == onnx.ReduceProd:
        return t.made(_product(t, x, axes, keep=keep), result)
    return t.made(_sum(t, x, axes, keep=keep), result)


def _sum(t: Onnx, x: Value, axes: Sequence[int], *, keep: bool) -> Value:
    """A sum that wraps. ONNX Runtime adds int32 in float64 and saturates, and OpenVINO loses rows of it: so it is one
    of float32, or those of limbs."""
    low, high = t.bounds(x)
    count = prod(static(tuple((x.type.shape or ())[a] for a in axes)))
    reach = max(-low, high, 1) * count
    if reach <= EXACT:
        return t.reduce(onnx.ReduceSum, t.integers(x, f32), axes, keep=keep)
    if count > EXACT >> BITS + 1 or (x.type.storage == i64 and reach > i32.maximum):
        if reach >= (_OF_DOUBLES if x.type.storage == i64 else i32.maximum):
            raise Refused(f"a sum of {count} elements of {x.type.storage}, which wraps")
        return t.reduce(onnx.ReduceSum, t.integers(x, x.type.storage), axes, keep=keep)
    total: Value | None = None
    for i, limb in enumerate(split(t, t.integers(x), low, high)):
        part = t.cast(t.reduce(onnx.ReduceSum, limb, axes, keep=keep), i32)
        total = plus(t, total, t.mul(part, t.constant(1 << i * BITS, i32)))
    assert total is not None
    return total


def _product(t: Onnx, x: Value, axes: Sequence[int], *, keep: bool) -> Value:
    """A product that wraps, element by element of an axis."""
    shape = static(x.type.shape)
    if prod(shape[a] for a in axes) > _FACTORS or x.type.storage not in (i32, i64):
        raise Refused(f"a product of {x.type.storage}, which wraps")
    y = t.integers(x, x.type.storage)
    for axis in axes:
        y = reduce(t.mul, [t.part(y, axis, i, i + 1) for i in range(shape[axis])])
    return y if keep else t.reshape(y, [d for i, d in enumerate(shape) if i not in axes])


@lowering(tosa.ArgMax)
def arg_max(op: tosa.ArgMax, t: Onnx) -> Value:
    """The first of equals."""
    x = t.integers(op.input, t.computing([op.input]))
    axis = op.axis % len(op.input.type.shape or ())
    return t.cast(t.emit(onnx.ArgMax, [x], axis=axis, keepdims=0), i32)


@lowering(tfl.Cumsum)
def cumulate(op: tfl.Cumsum, t: Onnx) -> Value:
    if op.result.type.storage not in (i32, i64, f32):
        raise Refused(f"CUMSUM of {op.result.type.storage}")
    (axis,) = numbers(op.axis)
    return t.cumulate(t.value(op.input), axis, exclusive=op.exclusive, reverse=op.reverse)


@lowering(tfl.TopKV2)
def top_k(op: tfl.TopKV2, t: Onnx) -> list[Made]:
    """Of equals the first, as in the kernel."""
    x = t.integers(op.input, t.computing([op.input]))
    rank = len(op.input.type.shape or ())
    types = [x.type, x.type.with_element(i64)]
    for i, result in enumerate(op.results):
        types[i] = result.type.with_element(types[i].element)
    values, indices = t.op(onnx.TopK, [x, t.vector(numbers(op.k))], types, {"axis": rank - 1}).results
    return [t.made(values, op.values), t.made(t.cast(indices, i32), op.indices)]
