"""ARGMAX and ARG_MIN, reductions, CUMSUM and TOPK_V2.

TOSA has ARGMAX of i8, i16 and float; i1 becomes i8. For i32, and for i16 without the int16 extension, the index is the
least of those whose element equals the extreme. TOSA's reductions take one axis and keep it with size 1: sums are i32
or float, extremes also i8 and i16, products float; products of integers multiply halves of the axis. MEAN of i32
truncates. CUMSUM is log2(n) shifted additions. Sources: TOSA 1.0 specification, ARGMAX, REDUCE_*;
kernels/arg_min_max.cc, reduce.cc, cumsum.cc, topk_v2.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np

from tflq.base import sized
from tflq.base.errors import Refused
from tflq.dialects.declare import Operator
from tflq.dialects.inference import product
from tflq.dialects.tfl.pooling import ArgMax as TflArgMax
from tflq.dialects.tfl.pooling import ArgMin, Cumsum, Mean, ReduceProd, Sum, TopKV2
from tflq.dialects.tfl.pooling import ReduceAll as TflReduceAll
from tflq.dialects.tfl.pooling import ReduceAny as TflReduceAny
from tflq.dialects.tfl.pooling import ReduceMax as TflReduceMax
from tflq.dialects.tfl.pooling import ReduceMin as TflReduceMin
from tflq.dialects.tfl.pooling import Reduction as TflReduction
from tflq.dialects.tosa.elementwise import BitwiseNot, IntDiv, LogicalAnd, LogicalNot, Negate
from tflq.dialects.tosa.movement import (
    ArgMax,
    Cast,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProduct,
    ReduceSum,
    Reduction,
)
from tflq.formats.tosa.lowering.context import (
    Tosa,
    constant_of,
    dims_of,
    in_int32,
    joined,
    known_axis,
    lowered_value,
    lowering,
    narrow,
    numbers_of,
    part,
    reshaped,
)
from tflq.formats.tosa.lowering.floats import need_float, real
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, f32, i1, i8, i16, i32


@lowering(ArgMax)
def argmax(op: ArgMax, t: Tosa) -> Value:
    return _index(t, t.value(op.input), op.axis, "max")


@lowering(TflArgMax, ArgMin)
def kernel_arg(op: TflArgMax | ArgMin, t: Tosa) -> Value:
    """Of plain tensors."""
    source = op.input
    x = real(t, source) if source.type.storage.is_float else t.value(source)
    axis = known_axis(op.axis, max(len(dims_of(x)), 1))
    return widened(op, t, _index(t, x, axis, "max" if isinstance(op, TflArgMax) else "min"))


def widened(op: Op, t: Tosa, index: Value) -> Value:
    """The index in the result's type."""
    if op.result.type.storage == i32:
        return index
    narrow = Value(op.result.type.with_element(i32))
    t.set(narrow, index)
    return lowered_value(Op(Cast.op_name, [narrow], [Value(op.result.type)], {}, op.location), t)


def _index(t: Tosa, x: Value, axis: int, kind: Literal["max", "min"]) -> Value:
    """The first index of the greatest or least element."""
    shape, storage = dims_of(x), x.type.storage
    if not shape:
        raise Refused("a scalar has no axis")
    axis %= len(shape)
    if storage.is_float:
        need_float(t, "ARG_MAX")
    elif storage == i1:
        return _index(t, t.cast(x, i8), axis, kind)
    elif storage == i32 or (storage == i16 and not t.target.has("int16")):
        return _compared(t, t.cast(x, i32), axis, kind)
    elif storage not in (i8, i16):
        raise Refused(f"TOSA has no ARGMAX of {storage}")
    if kind == "min":
        x = t.emit(Negate, [x], input1_zp=0, output_zp=0) if storage.is_float else t.emit(BitwiseNot, [x])
    return t.emit(ArgMax, [x], i32, axis=axis)


def _compared(t: Tosa, x: Value, axis: int, kind: Literal["max", "min"]) -> Value:
    """The least index of an i32 that equals the extreme."""
    shape = x.type.dims
    size = shape[axis]
    if size is None:
        raise Refused("the number of elements to compare is not known")
    view = [size if a == axis else 1 for a in range(len(shape))]
    places = t.constant(sized.arange(size).reshape(view), i32)
    beyond = t.constant(np.full((1,) * len(shape), size), i32)
    extreme = t.equal(x, t.reduce(kind, x, axis))
    first = t.reduce("min", t.select(extreme, places, beyond), axis)
    return reshaped(t, first, (*shape[:axis], *shape[axis + 1 :]))


# Reductions.


_TYPES: Final[Mapping[type[Op], tuple[ScalarType, ...]]] = {
    ReduceSum: (i32, f32),
    ReduceMax: (i8, i16, i32, f32),
    ReduceMin: (i8, i16, i32, f32),
    ReduceProduct: (i32, f32),
    ReduceAny: (i1,),
    ReduceAll: (i1,),
}
"""The element types of TOSA's reductions."""
_KERNELS: Final[Mapping[type[Op], type[Operator]]] = {
    Sum: ReduceSum,
    TflReduceMax: ReduceMax,
    TflReduceMin: ReduceMin,
    ReduceProd: ReduceProduct,
    TflReduceAny: ReduceAny,
    TflReduceAll: ReduceAll,
}
"""TOSA's operator for each of TFLite's."""


@lowering(Reduction)
def reduce(op: Reduction, t: Tosa) -> Value:
    (x,) = in_int32(op, t) if isinstance(op, ReduceSum) else (t.value(op.input),)
    return _over(t, type(op), x, [op.axis])


@lowering(*_KERNELS)
def kernel_reduce(op: TflReduction, t: Tosa) -> Value:
    """Over several axes, of plain tensors."""
    x, axes = _operands(op, t)
    kind = _KERNELS[type(op)]
    if kind in (ReduceSum, ReduceProduct):
        in_int32(op, t)
    return _shaped(op, t, _over(t, kind, x, axes), axes)


@lowering(Mean)
def mean(op: Mean, t: Tosa) -> Value:
    x, axes = _operands(op, t)
    if not (count := product([dims_of(x)[a] for a in axes])):
        raise Refused("the number of elements in a mean is not known")
    in_int32(op, t)
    total = _over(t, ReduceSum, x, axes)
    if count > 1:
        one = (1,) * len(x.type.dims)
        if x.type.storage.is_float:
            total = t.mul(total, t.constant(np.full(one, 1 / count), f32))
        else:
            total = t.emit(IntDiv, [total, t.constant(np.full(one, count), i32)])
    return _shaped(op, t, total, axes)


def _operands(op: TflReduction, t: Tosa) -> tuple[Value, list[int]]:
    """The operand of a reduction, and the axes."""
    x = real(t, op.input) if op.input.type.storage.is_float else t.value(op.input)
    rank, axes = len(dims_of(x)), constant_of(op.axes, "axes")
    return x, sorted({int(a) % rank for a in axes.reshape(-1)}) if rank else []


def _over(t: Tosa, kind: type[Operator], x: Value, axes: Sequence[int]) -> Value:
    """x reduced over each axis."""
    storage, word = x.type.storage, kind.op_name.rpartition("_")[2]
    rank = len(dims_of(x))
    if storage not in _TYPES[kind]:
        raise Refused(f"TOSA has no {word} of {storage}")
    need_float(t, f"a {word}", x)
    for axis in axes:
        axis %= rank
        halved = kind is ReduceProduct and not storage.is_float
        x = _product(t, x, axis) if halved else t.emit(kind, [x], axis=axis)
    return x


def _product(t: Tosa, x: Value, axis: int) -> Value:
    """The product of integers over an axis: of halves, until one element is left."""
    if not dims_of(x)[axis]:
        raise Refused("the number of factors is not known")
    while (size := dims_of(x)[axis] or 0) > 1:
        half = size // 2
        rest = part(t, x, axis, 2 * half, 1) if size % 2 else None
        x = t.mul(part(t, x, axis, 0, half), part(t, x, axis, half, half))
        if rest is not None:
            x = t.mul(x, rest) if half == 1 else t.concat([x, rest], axis)
    return x


def _shaped(op: TflReduction, t: Tosa, x: Value, axes: Sequence[int]) -> Value:
    """Without the reduced dims, if they are not to be kept."""
    if op.keep_dims or not axes:
        return x
    return reshaped(t, x, tuple(d for a, d in enumerate(dims_of(x)) if a not in axes))


@lowering(Cumsum)
def cumulative_sum(op: Cumsum, t: Tosa) -> Value:
    x, axis = op.input, op.axis
    if x.type.storage != i32 and not x.type.storage.is_float:
        raise Refused(f"'{x.name}' is {x.type.storage}, which TOSA does not add")
    need_float(t, op, x)
    if not axis.is_constant or not x.type.shape:
        raise Refused("the axis is not known, or a scalar has none")
    along = int(axis.array.reshape(())) % len(x.type.shape)
    size = x.type.shape[along]
    if size is None:
        raise Refused(f"the size of '{x.name}' along the axis is not known")
    back = bool(op.reverse)
    total = t.value(x)
    if op.exclusive:
        total = _moved(t, total, along, 1, back=back)
    step = 1
    while step < size:
        total = t.add(total, _moved(t, total, along, step, back=back))
        step *= 2
    return total


def _moved(t: Tosa, x: Value, axis: int, step: int, *, back: bool) -> Value:
    """x moved along an axis by some places, towards its start (`back`) or its end; zeros move in."""
    shape = x.type.dims
    padding = [((0, step) if back else (step, 0)) if a == axis else (0, 0) for a in range(len(shape))]
    start = [step if back and a == axis else 0 for a in range(len(shape))]
    return t.slice(t.pad(x, padding), start, shape)


# TOPK_V2: each round takes the greatest element that is left, of equal ones the first. The kernel (TopContainer) sorts
# by value downwards, then by index upwards. A flag per element says whether it is left, so that elements at the low end
# of the type are told from those that are taken.

_MOST_ROUNDS = 256


@lowering(TopKV2)
def top_k(op: TopKV2, t: Tosa) -> list[Value]:
    """Values and their indices."""
    x = narrow(op.input, t)
    k = numbers_of(op.k, "k")[0]
    storage, rank = x.type.storage, len(dims_of(x))
    size = dims_of(x)[-1]
    if size is None or storage.bits > 32 or op.indices.type.storage != i32:
        raise Refused("TOPK_V2 over a dim that is not known, or of 64 bits, has no form in TOSA")
    if not 0 < k <= _MOST_ROUNDS:
        raise Refused(f"TOPK_V2 of {k} elements has no form in TOSA; of 1 to {_MOST_ROUNDS} it has")
    if storage.is_float:
        t.need("pro_fp", "TOPK_V2 in float")
        wide, lowest = x, -np.inf
    else:
        wide, lowest = t.cast(x, i32), np.iinfo(np.int32).min
    one = (1,) * rank
    places = t.constant(sized.arange(size).reshape(*one[1:], size))
    bottom, beyond = t.constant(np.full(one, lowest), wide.type.storage), t.constant(np.full(one, size))
    left: Value | None = None
    values, indices = [], []
    for turn in range(k):
        rest = wide if left is None else t.select(left, wide, bottom)
        best = t.reduce("max", rest, rank - 1)
        hit = t.equal(rest, best)
        if left is not None:
            hit = t.emit(LogicalAnd, [hit, left])
        first = t.reduce("min", t.select(hit, places, beyond), rank - 1)
        values.append(best)
        indices.append(first)
        if turn + 1 < k:
            others = t.emit(LogicalNot, [t.equal(places, first)])
            left = others if left is None else t.emit(LogicalAnd, [left, others])
    return [t.cast(joined(t, values, rank - 1), storage), joined(t, indices, rank - 1)]
