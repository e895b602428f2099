"""Lowering of reductions and of ARGMAX.

SUM is right on int32, REDUCE_MAX and REDUCE_MIN on any storage type, ARG_MAX on 8 and 32 bits; ALL and ANY are the
least and the greatest of bytes. A chain of reductions of
one kind is one kernel over several axes, and a reshape that drops just these axes is its `keep_dims`. Of 8-bit numbers
that are there as floats, SUM is one of floats, which is exact below 2^24.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypeAlias

from tflq.dialects.declare import Operator
from tflq.dialects.tfl import reduction as tfl
from tflq.dialects.tosa.casts import Cast
from tflq.dialects.tosa.movement import Reshape
from tflq.dialects.tosa.reduction import ArgMax, ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProduct, ReduceSum
from tflq.ir.core import Op, Value
from tflq.ir.types import Shape, i1, i8, i32, i64
from tflq.numerics.exact_sums import EXACT
from tflq.select.lowering import Kernels, lowering

__all__ = ["arg_of"]

_Numeric: TypeAlias = ReduceMax | ReduceMin | ReduceProduct | ReduceSum
_BUILTINS: Final[Mapping[type[_Numeric], type[Operator]]] = {
    ReduceMax: tfl.ReduceMax,
    ReduceMin: tfl.ReduceMin,
    ReduceProduct: tfl.ReduceProd,
    ReduceSum: tfl.Sum,
}


@lowering(*_BUILTINS)
def reduce(op: _Numeric, k: Kernels) -> Value:
    x, shape = k.value(op.input), op.input.type.shape or ()
    chain = [op]
    while (following := k.only_user(chain[-1].output, type(op))) is not None:
        chain.append(following)
    axes = sorted({o.axis % len(shape) for o in chain})
    reshape = k.only_user(chain[-1].output, Reshape)
    dropped = tuple(d for a, d in enumerate(shape) if a not in axes)
    fused: list[Op] = [*chain[1:]]
    last = chain[-1].output
    if reshape is not None and reshape.output.type.shape == dropped:
        fused, last = [*fused, reshape], reshape.output
    keep_dims = last is chain[-1].output
    count = math.prod(0 if shape[axis] is None else shape[axis] or 0 for axis in axes)
    result = _sum_of_floats(op, k, count, axes, keep_dims, last.type.shape)
    if result is None:
        result = k.reduce(_BUILTINS[type(op)], x, axes, keep_dims, last.type.shape)
    for other in fused:
        k.fuse(other, result)
    return result


def _sum_of_floats(
    op: _Numeric, k: Kernels, count: int, axes: list[int], keep_dims: bool, shape: Shape
) -> Value | None:
    """The sum in int32 of so many 8-bit numbers that have a float twin; None if they have none, or may sum to 2^24."""
    cast = op.input.producer
    if not isinstance(op, ReduceSum) or not isinstance(cast, Cast) or op.input.type.storage != i32 or not count:
        return None
    source, twin = cast.input.type.storage, k.twins.get(k.value(cast.input))
    if (
        twin is None
        or 0 in axes
        or count * max(abs(v - twin.offset) for v in (source.minimum, source.maximum)) >= EXACT
    ):
        return None
    total = k.cast(k.reduce(tfl.Sum, twin.value, axes, keep_dims, shape), i32)
    return k.add(total, k.constant(twin.offset * count)) if twin.offset else total


@lowering(ReduceAll, ReduceAny)
def reduce_logical(op: ReduceAll | ReduceAny, k: Kernels) -> Value:
    kind = tfl.ReduceMin if isinstance(op, ReduceAll) else tfl.ReduceMax
    x = k.cast(k.value(op.input), i8)
    return k.cast(k.reduce(kind, x, [op.axis], True, op.output.type.shape), i1)


@lowering(ArgMax)
def argmax(op: ArgMax, k: Kernels) -> Value:
    return arg_of(op, k, k.value(op.input), tfl.ArgMax)


def arg_of(op: ArgMax, k: Kernels, x: Value, kind: type[Operator]) -> Value:
    """ARG_MAX or ARG_MIN, with the widening of its result, if that is what reads it."""
    if x.type.storage.bits == 16:
        x = k.cast(x, i32)
    widening = k.only_user(op.output, Cast)
    if widening is not None and widening.output.type.storage != i64:
        widening = None
    index = i32 if widening is None else i64
    axis = k.constant(op.axis)
    type = op.output.type.with_element(index)
    result = k.emit(kind, [x, axis], type, output_type="INT32" if widening is None else "INT64")
    return result if widening is None else k.fuse(widening, result)
