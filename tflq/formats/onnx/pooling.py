"""Pools, resized images, and reductions over axes.

The mean of a window is its sum, by a CONV with weights of 1, times the reciprocal of the number of its elements,
rounded half away from zero. With a the sum's size and half the number n, the quotient a / n is 1 / (2 n) at least from
where (a + 1/2) / n, rounded down, would change; float32's product with its reciprocal is less than that away below
2^22. Elsewhere DIV of int32 is exact. Sources: kernels/pooling.cc, resize_bilinear.cc, resize_nearest_neighbor.cc; TOSA
1.0 specification, AVG_POOL2D, RESIZE.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.base import sized
from tflq.base.errors import Refused
from tflq.dialects.declare import Operator
from tflq.dialects.tfl import pooling as tfl
from tflq.dialects.tosa import movement as tosa
from tflq.dialects.tosa.convolution import AvgPool2D, MaxPool2D
from tflq.dialects.tosa.movement import Resize
from tflq.formats.onnx import dialect as onnx
from tflq.formats.onnx.arithmetic import activated
from tflq.formats.onnx.context import EXACT, Onnx, OnnxTensor, Result, TensorForm, lowering, static
from tflq.formats.onnx.convolution import padding, real_sum
from tflq.formats.onnx.limbs import BITS, plus, split
from tflq.formats.onnx.movement import numbers, ordered_axes
from tflq.ir.ops import Value
from tflq.ir.types import f32, i1, i32, i64
from tflq.numerics.convolution import window_counts
from tflq.numerics.resize import float_nearest_index, float_taps, nearest_index, steps_of, taps

_Window: TypeAlias = dict[str, Any]

_MOST_PLACES = 1 << 20
_RECIPROCAL = 1 << 22
"""Sums and half the number of elements together stay below it where a product with the reciprocal is exact."""


@lowering(MaxPool2D)
def max_pool(op: MaxPool2D, t: Onnx) -> OnnxTensor:
    return _greatest(t, op.input, _window(op.kernel, op.stride, _ends(op.pad)), op.result)


@lowering(AvgPool2D)
def average_pool(op: AvgPool2D, t: Onnx) -> OnnxTensor:
    """The mean of x - input_zp, plus output_zp, saturated."""
    if op.input.type.storage.is_float:
        return _real_mean(t, op.input, _window(op.kernel, op.stride, _ends(op.pad)), op.result)
    _, height, width, channels = op.input.type.dims
    sizes = static((height, width, channels))
    counts = window_counts(sizes[:2], op.kernel, op.stride, op.pad)
    low, high = (v - op.input_zp for v in t.bounds(op.input))
    reach = max(-low, high, 1) * prod(op.kernel)
    if reach >= EXACT:
        raise Refused(f"float32 does not hold the sum of {prod(op.kernel)} elements")
    x = t.whole(op.input, op.input_zp, first=True)
    ones = t.stored(sized.ones((sizes[2], 1, *op.kernel), np.int64), f32)
    pads = _ends(op.pad)
    total = t.conv(x, ones, None, strides=op.stride, pads=pads, dilations=(1, 1), group=sizes[2])
    mean = _mean(t, total, counts, reach, signed=low < 0)
    least, most = op.result.type.storage.less(op.output_zp)
    mean = t.clip(mean, least, most) if low < least or high > most else mean
    return t.bind(mean, op.result, offset=op.output_zp, first=True)


def _mean(t: Onnx, total: Value, counts: np.ndarray, reach: int, *, signed: bool) -> Value:
    """Sums divided by counts, half away from zero, in float32. counts: one for each place of a window."""
    count = counts.astype(np.int64)
    size = t.abs(total) if signed else total
    alike = (count == count.flat[0]).all()
    row = count.reshape(-1)[:1].reshape(()) if alike else count
    if reach + int(count.max()) < _RECIPROCAL:
        up = t.add(size, t.constant(row // 2 + 0.5, f32))
        mean = t.floor(t.mul(up, t.constant(1 / row.astype(np.float64), f32)))
    else:
        up = t.add(t.cast(size, i32), t.constant(row // 2, i32))
        mean = t.cast(t.div(up, t.constant(row, i32)), f32)
    return t.where(t.below_zero(total), t.negative(mean), mean) if signed else mean


@lowering(tfl.AveragePool2D, tfl.MaxPool2D)
def kernel_pool(op: tfl.AveragePool2D | tfl.MaxPool2D, t: Onnx) -> OnnxTensor:
    """Of float32, or the greatest of plain integers."""
    if 0 in op.result.type.dims:
        raise Refused("the result has no elements")
    kernel, stride = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    pads = padding(op.input.type.dims[1:3], kernel, stride, (1, 1), op.padding)
    real = op.input.type.storage.is_float
    if not real and (isinstance(op, tfl.AveragePool2D) or op.fused_activation_function != "NONE"):
        raise Refused("a pool of plain integers")
    pool = _real_mean if isinstance(op, tfl.AveragePool2D) else _greatest
    tensor = pool(t, op.input, _window(kernel, stride, pads), op.result)
    (form, y), *_ = tensor.forms.items()
    clamped = activated(t, y, op.fused_activation_function)
    return tensor if clamped is y else t.bind(clamped, op.result, first=form.first)


@lowering(tfl.L2Pool2D)
def l2_pool(op: tfl.L2Pool2D, t: Onnx) -> OnnxTensor:
    """The root of the mean of squares."""
    kernel, stride = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    pads = padding(op.input.type.dims[1:3], kernel, stride, (1, 1), op.padding)
    x = t.tensor(op.input).get(t, TensorForm(f32, first=True))
    mean = real_sum(op, t.emit(onnx.AveragePool, [t.mul(x, x)], **_window(kernel, stride, pads)))
    return t.bind(activated(t, t.emit(onnx.Sqrt, [mean]), op.fused_activation_function), op.result, first=True)


def _ends(pad: Sequence[int]) -> list[int]:
    """top, bottom, left, right as ONNX has them: those before each dim, then those after."""
    return [*pad[::2], *pad[1::2]]


def _window(kernel: Sequence[int], stride: Sequence[int], pads: Sequence[int]) -> _Window:
    """The attributes of a pool."""
    return {"kernel_shape": tuple(kernel), "strides": tuple(stride), "pads": tuple(pads)}


def _greatest(t: Onnx, x: Value, window: _Window, result: Value) -> OnnxTensor:
    """MAXPOOL in float32, in the form that the tensor has."""
    tensor = t.tensor(x)
    forms = [form for form in tensor.forms if form.element == f32]
    form = max(forms, key=lambda f: f.first)._replace(first=True) if forms else TensorForm(f32, first=True)
    if not x.type.storage.is_float:
        t.whole(x, form.offset, first=True)
    y = t.emit(onnx.MaxPool, [tensor.get(t, form)], **window)
    return t.bind(y, result, offset=form.offset, first=True)


def _real_mean(t: Onnx, x: Value, window: _Window, result: Value) -> OnnxTensor:
    y = t.emit(onnx.AveragePool, [t.tensor(x).get(t, TensorForm(f32, first=True))], **window)
    return t.bind(y, result, first=True)


@lowering(Resize)
def resize(op: Resize, t: Onnx) -> OnnxTensor:
    """Elements by index, or sums of two with whole weights, of rows and then of columns."""
    sizes = _plane(op.input), _plane(op.result)
    steps = steps_of(op.scale, op.offset)
    if op.mode == "NEAREST_NEIGHBOR":
        index = [nearest_index(*row) for row in zip(steps, *sizes, strict=True)]
        return _gather_plane(t, op.input, index, op.result)
    if op.input.type.storage.is_float:
        raise Refused("BILINEAR of floats")
    low, high = t.bounds(op.input)
    reach = max(-low, high) * prod(step.n for step in steps)
    element = f32 if reach <= EXACT else i32 if reach < 1 << 31 else i64
    x = t.integers(op.input, element)
    for axis, row in enumerate(zip(steps, *sizes, strict=True), 1):
        x = _blended(t, x, row[0].n, *taps(*row), axis)
    return t.bind(x, op.result).within(-reach, reach)


def _plane(x: Value) -> tuple[int, int]:
    """Height and width of images. Refused if there are none, or more than an index of each is stored for."""
    height, width = static(x.type.dims[1:3])
    if min(height, width) < 1:
        raise Refused(f"images of {height} rows and {width} columns have no elements to resize")
    if max(height, width) > _MOST_PLACES:
        raise Refused(f"images of {height} rows and {width} columns; at most {_MOST_PLACES} of either are resized")
    return height, width


def _blended(t: Onnx, x: Value, n: int, lower: np.ndarray, upper: np.ndarray, fraction: np.ndarray, axis: int) -> Value:
    """x[lower] * (n - fraction) + x[upper] * fraction."""
    weight = fraction.astype(np.int64).reshape(-1, *(1,) * (3 - axis))
    below = t.mul(t.gather(x, t.vector(lower), axis), t.like(n - weight, x))
    if not weight.any():
        return below
    return t.add(below, t.mul(t.gather(x, t.vector(upper), axis), t.like(weight, x)))


@lowering(tfl.ResizeBilinear)
def resize_bilinear(op: tfl.ResizeBilinear, t: Onnx) -> OnnxTensor:
    """Of float32: the sum of the four elements around each position, each times the weight of its row, then of its
    column, in the kernel's order."""
    if op.output.type.storage != f32:
        raise Refused(f"BILINEAR of plain {op.output.type.storage}")
    sizes = zip(_plane(op.input), _plane(op.output), strict=True)
    rows, columns = (float_taps(*row, op.align_corners, op.half_pixel_centers) for row in sizes)
    x, one = t.value(op.input), np.float32(1)

    def weighted(v: Value, index: np.ndarray, axis: int, weight: np.ndarray) -> Value:
        return t.mul(t.gather(v, t.vector(index), axis), t.constant(weight.reshape(-1, *(1,) * (3 - axis)), f32))

    upper, lower = weighted(x, rows.lower, 1, one - rows.fraction), weighted(x, rows.upper, 1, rows.fraction)
    left, right = (columns.lower, 2, one - columns.fraction), (columns.upper, 2, columns.fraction)
    parts = [weighted(upper, *left), weighted(lower, *left), weighted(upper, *right), weighted(lower, *right)]
    return t.bind(real_sum(op, reduce(t.add, parts)), op.output)


@lowering(tfl.ResizeNearestNeighbor)
def resize_nearest(op: tfl.ResizeNearestNeighbor, t: Onnx) -> OnnxTensor:
    sizes = zip(_plane(op.input), _plane(op.output), strict=True)
    flags = op.align_corners, op.half_pixel_centers
    index = [float_nearest_index(n, out, *flags) for n, out in sizes]
    return _gather_plane(t, op.input, index, op.result)


def _gather_plane(t: Onnx, x: Value, index: Sequence[np.ndarray], result: Value) -> OnnxTensor:
    """GATHER of rows and of columns."""

    def emit(v: Value) -> Value:
        for axis, row in enumerate(index, 1):
            v = t.gather(v, t.vector(row), axis)
        return v

    return t.moved(x, emit, result)


# Reductions over axes, indices of the greatest elements, running sums.
#
# Sums are in float32 where no partial sum reaches 2^24. Sources: kernels/reduce.cc, arg_min_max.cc, cumsum.cc,
# topk_v2.cc.


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
def reduce_axis(op: tosa.Reduction, t: Onnx) -> OnnxTensor:
    return _reduced(t, op, op.input, [op.axis], op.result, keep=True)


@lowering(tfl.Sum, tfl.ReduceMax, tfl.ReduceMin, tfl.ReduceProd, tfl.ReduceAll, tfl.ReduceAny)
def reduce_axes(op: tfl.AxesReduced, t: Onnx) -> OnnxTensor:
    return _reduced(t, op, op.input, numbers(op.axes), op.result, keep=op.keep_dims)


def _reduced(t: Onnx, op: Operator, x: Value, axes: Sequence[int], result: Value, *, keep: bool) -> OnnxTensor:
    kind, rank = _KINDS[type(op)], len(x.type.dims)
    axes = ordered_axes(axes, rank)
    if not axes:
        return t.tensor(x)
    if x.type.storage == i1:
        truth = t.reduce(kind, t.cast(t.value(x), f32), axes, keep=keep)
        return t.bind(t.cast(truth, i1), result)
    if x.type.storage.is_float or kind in (onnx.ReduceMax, onnx.ReduceMin):
        return t.bind(t.reduce(kind, t.integers(x, t.computing([x])), axes, keep=keep), result)
    if kind == onnx.ReduceProd:
        return t.bind(_product(t, x, axes, keep=keep), result)
    return t.bind(_sum(t, x, axes, keep=keep), result)


def _sum(t: Onnx, x: Value, axes: Sequence[int], *, keep: bool) -> Value:
    """A sum that wraps. ONNX Runtime adds int32 in float64 and saturates, and OpenVINO loses rows of it: so it is one
    of float32, or those of limbs."""
    low, high = t.bounds(x)
    count = prod(static(tuple(x.type.dims[a] for a in axes)))
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
    return _index_along(t, onnx.ArgMax, op.input, op.axis, op.result)


@lowering(tfl.ArgMax, tfl.ArgMin)
def kernel_arg(op: tfl.ArgMax | tfl.ArgMin, t: Onnx) -> Value:
    (axis,) = numbers(op.axis)
    return _index_along(t, onnx.ArgMax if isinstance(op, tfl.ArgMax) else onnx.ArgMin, op.input, axis, op.output)


def _index_along(t: Onnx, kind: type[Operator], x: Value, axis: int, result: Value) -> Value:
    """Of equals the first."""
    numbers = t.cast(t.value(x), f32) if x.type.storage == i1 else t.integers(x, t.computing([x]))
    if numbers.type.storage == i64:
        raise Refused(f"the places of numbers of {x.type.storage}")
    return t.cast(t.emit(kind, [numbers], axis=axis % len(x.type.dims), keepdims=0), result.type.storage)


@lowering(tfl.Cumsum)
def cumulate(op: tfl.Cumsum, t: Onnx) -> Value:
    if op.result.type.storage not in (i32, i64, f32):
        raise Refused(f"CUMSUM of {op.result.type.storage}")
    (axis,) = numbers(op.axis)
    return t.cumulate(t.value(op.input), axis, exclusive=op.exclusive, reverse=op.reverse)


@lowering(tfl.TopKV2)
def top_k(op: tfl.TopKV2, t: Onnx) -> list[Result]:
    """Of equals the first, as in the kernel."""
    x = t.integers(op.input, t.computing([op.input]))
    rank = len(op.input.type.dims)
    types = [x.type, x.type.with_element(i64)]
    for i, result in enumerate(op.results):
        types[i] = result.type.with_element(types[i].element)
    values, indices = t.op(onnx.TopK, [x, t.reshape(t.integers(op.k, i64), (1,))], types, {"axis": rank - 1}).results
    return [t.bind(values, op.values), t.bind(t.cast(indices, i32), op.indices)]


@lowering(tfl.Mean)
def mean(op: tfl.Mean, t: Onnx) -> OnnxTensor:
    """The sum divided by the number of elements; of integers in int64, rounded towards 0."""
    storage = op.output.type.storage
    if storage not in (f32, i32, i64):
        raise Refused(f"MEAN of plain {storage}")
    rank = len(op.input.type.dims)
    axes = ordered_axes(numbers(op.axes), rank)
    if not axes:
        return t.tensor(op.input)
    count = prod(static(tuple(op.input.type.dims[a] for a in axes)))
    if storage != f32:
        low, high = t.bounds(op.input)
        if max(-low, high, 1) * count >= _OF_DOUBLES:
            raise Refused(f"a sum of {count} elements of {storage}, which wraps")
        sums = t.reduce(onnx.ReduceSum, t.integers(op.input, i64), axes, keep=op.keep_dims)
        return t.bind(t.cast(t.div(sums, t.like(count, sums)), storage), op.output)
    total = real_sum(op, t.reduce(onnx.ReduceSum, t.value(op.input), axes, keep=op.keep_dims))
    return t.bind(t.div(total, t.like(count, total)), op.output)
