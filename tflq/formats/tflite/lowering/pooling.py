"""Pools, reductions and ARGMAX.

The builtins of pools are right on plain integers and do not count padding, as TOSA. TFLite has only two paddings, with
names. For any other, the maximum is of padded elements, and the average is the sum of the window's elements, divided.
An average with zero points is one of int16, which holds x - input_zp.

SUM is right on int32, REDUCE_MAX and REDUCE_MIN on any storage type, ARG_MAX on 8 and 32 bits; ALL and ANY are the
least and the greatest of bytes. A chain of reductions of one kind is one kernel over several axes, and a reshape that
drops just these axes is its `keep_dims`. The SUM of 8-bit numbers that are there as floats is of floats, exact below
2^24.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.tfl import pooling as tfl
from tflq.dialects.tfl.arithmetic import Sign
from tflq.dialects.tosa.convolution import AvgPool2D, MaxPool2D, Pool
from tflq.dialects.tosa.movement import (
    ArgMax,
    Cast,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProduct,
    ReduceSum,
    Reshape,
)
from tflq.formats.tflite.lowering.im2col import Geometry, pad_spatial, tap_sum
from tflq.formats.tflite.lowering.lowering import Tflite, lowering, moved
from tflq.formats.tflite.lowering.rescale import clamped
from tflq.ir.ops import Op, Value
from tflq.ir.types import f32, i1, i8, i16, i32, i64
from tflq.numerics.convolution import window, window_counts


@lowering(MaxPool2D)
def max_pool(op: MaxPool2D, k: Tflite) -> Value:
    padding = _padding(op)

    def greatest(x: Value, _: int) -> Value:
        if padding is not None:
            return _builtin(op, k, tfl.MaxPool2D, x, padding)
        storage = x.type.storage
        lowest = -np.inf if storage.is_float else storage.minimum
        return _builtin(op, k, tfl.MaxPool2D, pad_spatial(k, x, op.pad, lowest), "VALID")

    return moved(k, k.value(op.input), greatest)


@lowering(AvgPool2D)
def average_pool(op: AvgPool2D, k: Tflite) -> Value:
    padding, storage = _padding(op), op.output.type.storage
    x = k.value(op.input)
    zero_in, zero_out = op.input_zp, op.output_zp
    if not zero_in and not zero_out and padding is not None:
        return _builtin(op, k, tfl.AveragePool2D, x, padding)
    if padding is None:
        mean = _divided(op, k, x, zero_in)
    else:
        centred = k.add(k.cast(x, i16), -zero_in)
        mean = _builtin(op, k, tfl.AveragePool2D, centred, padding)
    if storage.is_float:
        return mean
    least, most = (v - zero_in for v in (storage.minimum, storage.maximum))
    low, high = (np.asarray(v - zero_out) for v in (storage.minimum, storage.maximum))
    return k.cast(clamped(k, k.cast(mean, i32), low, high, least, most, zero_out), storage)


def _builtin(op: Pool, k: Tflite, kind: type[Operator], x: Value, padding: str) -> Value:
    (kernel_h, kernel_w), (stride_h, stride_w) = op.kernel, op.stride
    return k.emit(
        kind,
        [x],
        padding=padding,
        stride_w=stride_w,
        stride_h=stride_h,
        filter_width=kernel_w,
        filter_height=kernel_h,
        fused_activation_function="NONE",
    )


def _divided(op: AvgPool2D, k: Tflite, x: Value, zero_point: int) -> Value:
    """The sum of each window over the number of its elements that are not padding: half away from zero in i32, or
    the quotient of floats."""
    element = f32 if x.type.storage.is_float else i32
    sizes = x.type.sizes[1:3]
    geometry = Geometry(op.kernel, op.pad, op.stride, (1, 1))
    padded = pad_spatial(k, x, op.pad, zero_point)
    wide = k.cast(padded, element)
    if zero_point:
        wide = k.sub(wide, zero_point)
    total = tap_sum(k, wide, geometry, lambda v, _: v, fold=1, element=element)
    count = window_counts(sizes, op.kernel, op.stride, op.pad)[..., None]
    if element == i32:
        total = k.add(total, k.mul(k.emit(Sign, [total]), count // 2))
    return k.div(total, count)


def _padding(op: Pool) -> str | None:
    """The name of the padding, None if it lacks one. Without padding VALID is SAME."""
    if not any(op.pad):
        return "VALID"
    sizes = (op.input.type.shape or (None,) * 4)[1:3]
    for size, kernel, stride, pad in zip(sizes, op.kernel, op.stride, (op.pad[:2], op.pad[2:]), strict=True):
        same = window(size, kernel, stride, 1, "SAME")
        if same is None or (same.before, same.after) != tuple(pad):
            return None
    return "SAME"


# Reductions and ARGMAX.


_Numeric: TypeAlias = ReduceMax | ReduceMin | ReduceProduct | ReduceSum
_BUILTINS: Final[Mapping[type[_Numeric], type[Operator]]] = {
    ReduceMax: tfl.ReduceMax,
    ReduceMin: tfl.ReduceMin,
    ReduceProduct: tfl.ReduceProd,
    ReduceSum: tfl.Sum,
}


@lowering(*_BUILTINS)
def reduce(op: _Numeric, k: Tflite) -> Value:
    x, shape = k.value(op.input), op.input.type.dims
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
    count = math.prod(shape[axis] or 0 for axis in axes)
    result = _sum_of_floats(op, k, count, axes, keep_dims)
    if result is None:
        result = k.reduce(_BUILTINS[type(op)], x, axes, keep_dims=keep_dims)
    for other in fused:
        k.fuse(other, result)
    return result


def _sum_of_floats(op: _Numeric, k: Tflite, count: int, axes: list[int], keep_dims: bool) -> Value | None:
    """The sum in int32 of so many 8-bit numbers that have a float twin; None without a twin, or if it may reach
    2^24."""
    cast = op.input.producer
    if not isinstance(op, ReduceSum) or not isinstance(cast, Cast) or op.input.type.storage != i32 or not count:
        return None
    source, twin = cast.input.type.storage, k.twins.get(k.value(cast.input))
    if twin is None or 0 in axes:
        return None
    from tflq.numerics.float_basics import EXACT

    if count * max(abs(v - twin.offset) for v in (source.minimum, source.maximum)) >= EXACT:
        return None
    total = k.cast(k.reduce(tfl.Sum, twin.value, axes, keep_dims=keep_dims), i32)
    return k.add(total, twin.offset * count) if twin.offset else total


@lowering(ReduceAll, ReduceAny)
def reduce_logical(op: ReduceAll | ReduceAny, k: Tflite) -> Value:
    kind = tfl.ReduceMin if isinstance(op, ReduceAll) else tfl.ReduceMax
    x = k.cast(k.value(op.input), i8)
    return k.cast(k.reduce(kind, x, [op.axis]), i1)


@lowering(ArgMax)
def argmax(op: ArgMax, k: Tflite) -> Value:
    x = k.value(op.input)
    twin = None if k.restricted else k.twins.get(x)
    return arg_of(op, k, x if twin is None else twin.value, tfl.ArgMax)


def arg_of(op: ArgMax, k: Tflite, x: Value, kind: type[Operator]) -> Value:
    """ARG_MAX or ARG_MIN, with the widening of its result, if that is its only reader."""
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
