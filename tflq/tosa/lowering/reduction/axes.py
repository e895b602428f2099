"""Reductions: TOSA's take one axis and keep it with size 1.

Sums are i32 or float, extremes also i8 and i16, products float; products of integers multiply halves of the axis.
MEAN of i32 truncates. Sources: TOSA 1.0 specification, REDUCE_*; kernels/reduce.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.tfl.reduction import Mean, ReduceProd, Sum
from tflq.dialects.tfl.reduction import ReduceAll as TflReduceAll
from tflq.dialects.tfl.reduction import ReduceAny as TflReduceAny
from tflq.dialects.tfl.reduction import ReduceMax as TflReduceMax
from tflq.dialects.tfl.reduction import ReduceMin as TflReduceMin
from tflq.dialects.tfl.reduction import Reduction as TflReduction
from tflq.dialects.tosa.arithmetic import IntDiv
from tflq.dialects.tosa.reduction import ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProduct, ReduceSum, Reduction
from tflq.errors import Refused
from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, TensorType, f32, i1, i8, i16, i32
from tflq.tosa.lowering.floats.arithmetic import need_float
from tflq.tosa.lowering.floats.real_constants import real
from tflq.tosa.lowering.known import constant_of, dims_of
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.wide import in_int32

__all__: list[str] = []

_TYPES: Final[Mapping[type[Op], tuple[ScalarType, ...]]] = {
    ReduceSum: (i32, f32),
    ReduceMax: (i8, i16, i32, f32),
    ReduceMin: (i8, i16, i32, f32),
    ReduceProduct: (i32, f32),
    ReduceAny: (i1,),
    ReduceAll: (i1,),
}
"""What TOSA reduces."""
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
    sizes = [(x.type.shape or ())[a] for a in axes]
    if None in sizes or 0 in sizes:
        raise Refused("the number of elements in a mean is not known")
    in_int32(op, t)
    count = prod(d or 0 for d in sizes)
    total = _over(t, ReduceSum, x, axes)
    if count > 1:
        one = (1,) * len(x.type.shape or ())
        if x.type.storage.is_float:
            total = t.mul(total, t.constant(np.full(one, 1 / count), f32))
        else:
            total = t.emit(IntDiv, [total, t.constant(np.full(one, count), i32)])
    return _shaped(op, t, total, axes)


def _operands(op: TflReduction, t: Tosa) -> tuple[Value, list[int]]:
    """What is reduced, and the axes."""
    x = real(t, op.input) if op.input.type.storage.is_float else t.value(op.input)
    rank, axes = len(dims_of(x)), constant_of(op.axes, "axes")
    return x, sorted({int(a) % rank for a in axes.reshape(-1)}) if rank else []


def _over(t: Tosa, kind: type[Operator], x: Value, axes: Sequence[int]) -> Value:
    """x reduced over each axis."""
    storage, word = x.type.storage, kind.op_name.rpartition("_")[2]
    rank = len(dims_of(x))
    if storage not in _TYPES[kind]:
        raise Refused(f"TOSA has no {word} of {storage}")
    if storage.is_float:
        need_float(t, f"a {word}")
    for axis in axes:
        axis %= rank
        if kind is ReduceProduct and not storage.is_float:
            x = _product(t, x, axis)
        else:
            type = TensorType(tuple(1 if a == axis else d for a, d in enumerate(x.type.shape or ())), storage)
            x = t.emit(kind, [x], type, axis=axis)
    return x


def _product(t: Tosa, x: Value, axis: int) -> Value:
    """The product of integers over an axis: of halves, until one element is left."""
    shape = list(x.type.shape or ())
    if not shape[axis]:
        raise Refused("the number of factors is not known")
    while (size := shape[axis] or 0) > 1:
        half = size // 2
        rest = [_cut(t, x, axis, 2 * half, 1)] if size % 2 else []
        x = t.mul(_cut(t, x, axis, 0, half), _cut(t, x, axis, half, half))
        shape[axis] = half
        if rest:
            x = t.mul(x, rest[0]) if half == 1 else _appended(t, x, rest[0], axis)
            shape[axis] = (x.type.shape or ())[axis]
    return x


def _cut(t: Tosa, x: Value, axis: int, start: int, count: int) -> Value:
    size, starts = list(x.type.shape or ()), [0] * len(x.type.shape or ())
    size[axis], starts[axis] = count, start
    return t.slice(x, starts, size)


def _appended(t: Tosa, x: Value, last: Value, axis: int) -> Value:
    shape = list(x.type.shape or ())
    shape[axis] = (shape[axis] or 0) + 1
    return t.concat([x, last], axis)


def _shaped(op: TflReduction, t: Tosa, x: Value, axes: Sequence[int]) -> Value:
    """Without the reduced dims, if they are not to be kept."""
    if op.keep_dims or not axes:
        return x
    shape = tuple(d for a, d in enumerate(x.type.shape or ()) if a not in axes)
    if shape.count(None) > 1:
        raise Refused("more than one dim of the result is not known")
    return t.reshape(x, shape)
