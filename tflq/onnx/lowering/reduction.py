"""Reductions over axes, indices of the greatest elements, running sums.

Sums are in float32 where no partial sum reaches 2^24, else in int32, which wraps, or int64. Sources: kernels/reduce.cc,
arg_min_max.cc, cumsum.cc, topk_v2.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from tflq.dialects.declare import Operator
from tflq.dialects.onnx import movement as onnx
from tflq.dialects.tfl import reduction as tfl
from tflq.dialects.tosa import movement as tosa
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, f32, i32, i64
from tflq.onnx.lowering.context import Made, Onnx, lowering
from tflq.onnx.lowering.held import EXACT, Held
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


@lowering(tosa.ReduceSum, tosa.ReduceMax, tosa.ReduceMin, tosa.ReduceAll, tosa.ReduceAny)
def reduce_axis(op: tosa.Reduction, t: Onnx) -> Held:
    return _reduced(t, op, op.input, [op.axis], op.result, keep=True)


@lowering(tfl.Sum, tfl.ReduceMax, tfl.ReduceMin, tfl.ReduceProd, tfl.ReduceAll, tfl.ReduceAny)
def reduce_axes(op: tfl.AxesReduced, t: Onnx) -> Held:
    return _reduced(t, op, op.input, numbers(op.axes), op.result, keep=op.keep_dims)


def _reduced(t: Onnx, op: Operator, x: Value, axes: Sequence[int], result: Value, *, keep: bool) -> Held:
    kind, rank = _KINDS[type(op)], len(x.type.shape or ())
    axes = sorted({a % rank for a in axes})
    truths = isinstance(op, (tosa.ReduceAll, tosa.ReduceAny, tfl.ReduceAll, tfl.ReduceAny))
    if not axes:
        return t.held(x)
    element = i32 if truths else _summing(t, x, kind, axes)
    y = t.reduce(kind, t.integers(x, element), axes, keep=keep)
    return t.made(t.cast(y, result.type.storage) if truths else y, result)


def _summing(t: Onnx, x: Value, kind: type[Operator], axes: Sequence[int]) -> ScalarType:
    """The element type in which a reduction is computed."""
    if x.type.storage.is_float or kind in (onnx.ReduceMax, onnx.ReduceMin):
        return t.computing([x])
    dims = [(x.type.shape or ())[a] for a in axes]
    low, high = t.bounds(x)
    reach = max(-low, high, 1)
    if kind == onnx.ReduceSum and None not in dims and reach * prod(d or 0 for d in dims) <= EXACT:
        return f32
    if x.type.storage not in (i32, i64):
        raise Refused(f"a {kind.op_name} of {x.type.storage}, which wraps")
    return x.type.storage


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
    made = t.op(onnx.TopK, [x, t.vector(numbers(op.k))], types, {"axis": rank - 1})
    return [t.made(made.results[0], op.values), t.made(t.cast(made.results[1], i32), op.indices)]
