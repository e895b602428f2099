"""Reductions: TOSA's take one axis and keep it with size 1.

Sums are i32 or float, extremes also i8 and i16, products float; products of integers multiply halves of the axis.
MEAN of i32 truncates. Sources: TOSA 1.0 specification, REDUCE_*; kernels/reduce.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tflq.dialects.tfl.reduction import Mean
from tflq.dialects.tosa.reduction import ReduceSum
from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, TensorType, f32, i1, i8, i16, i32
from tflq.tosa.lowering.floats.arithmetic import need_float
from tflq.tosa.lowering.floats.real_constants import real
from tflq.tosa.lowering.known import constant_of, dims_of
from tflq.tosa.lowering.registry import Refused, Tosa, lowering
from tflq.tosa.lowering.wide import in_int32

__all__: list[str] = []

_TYPES: dict[str, tuple[ScalarType, ...]] = {
    "sum": (i32, f32),
    "max": (i8, i16, i32, f32),
    "min": (i8, i16, i32, f32),
    "product": (i32, f32),
    "any": (i1,),
    "all": (i1,),
}
_KERNELS = {
    "tfl.sum": "sum",
    "tfl.reduce_max": "max",
    "tfl.reduce_min": "min",
    "tfl.reduce_prod": "product",
    "tfl.reduce_any": "any",
    "tfl.reduce_all": "all",
}


@lowering(*(f"tosa.reduce_{kind}" for kind in _TYPES))
def reduce(op: Op, t: Tosa) -> Value:
    (x,) = in_int32(op, t) if isinstance(op, ReduceSum) else t.values(op.operands)
    return _over(t, op.name.removeprefix("tosa.reduce_"), x, [op.attributes["axis"]])


@lowering(*_KERNELS)
def kernel_reduce(op: Op, t: Tosa) -> Value:
    """Over several axes, of plain tensors."""
    x, axes = _operands(op, t)
    kind = _KERNELS[op.name]
    if kind in ("sum", "product"):
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
    total = _over(t, "sum", x, axes)
    if count > 1:
        one = (1,) * len(x.type.shape or ())
        if x.type.storage.is_float:
            total = t.mul(total, t.constant(np.full(one, 1 / count), f32))
        else:
            total = t.binary("intdiv", total, t.constant(np.full(one, count), i32))
    return _shaped(op, t, total, axes)


def _operands(op: Op, t: Tosa) -> tuple[Value, list[int]]:
    """What is reduced, and the axes."""
    source = op.operand(0)
    x = real(t, source) if source.type.storage.is_float else t.value(source)
    rank, axes = len(dims_of(x)), constant_of(op, 1, "axes")
    return x, sorted({int(a) % rank for a in axes.reshape(-1)}) if rank else []


def _over(t: Tosa, kind: str, x: Value, axes: Sequence[int]) -> Value:
    """x reduced over each axis."""
    storage = x.type.storage
    rank = len(dims_of(x))
    if storage not in _TYPES[kind]:
        raise Refused(f"TOSA has no {kind} of {storage}")
    if storage.is_float:
        need_float(t, f"a {kind}")
    for axis in axes:
        axis %= rank
        if kind == "product" and not storage.is_float:
            x = _product(t, x, axis)
        else:
            type = TensorType(tuple(1 if a == axis else d for a, d in enumerate(x.type.shape or ())), storage)
            x = t.emit(f"tosa.reduce_{kind}", [x], type, axis=axis)
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
    return t.concat([x, last], axis, tuple(shape))


def _shaped(op: Op, t: Tosa, x: Value, axes: Sequence[int]) -> Value:
    """Without the reduced dims, if they are not to be kept."""
    if op.attributes["keep_dims"] or not axes:
        return x
    shape = tuple(d for a, d in enumerate(x.type.shape or ()) if a not in axes)
    if shape.count(None) > 1:
        raise Refused("more than one dim of the result is not known")
    return t.reshape(x, shape)
