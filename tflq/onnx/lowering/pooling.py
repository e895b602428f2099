"""Pools and resized images.

The mean of a window is its sum, by a CONV with weights of 1, times the reciprocal of the number of its elements,
rounded half away from zero. With a the sum's size and half the number n, the quotient a / n is 1 / (2 n) at least from
where (a + 1/2) / n, rounded down, would change; float32's product with its reciprocal is less than that away below
2^22. Elsewhere DIV of int32 is exact. Sources: kernels/pooling.cc, resize_bilinear.cc, resize_nearest_neighbor.cc; TOSA
1.0 specification, AVG_POOL2D, RESIZE.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.onnx import convolution as onnx
from tflq.dialects.tfl.pooling import AveragePool2D, ResizeNearestNeighbor
from tflq.dialects.tfl.pooling import MaxPool2D as TflMaxPool2D
from tflq.dialects.tosa.convolution import AvgPool2D, MaxPool2D
from tflq.dialects.tosa.movement import Resize
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import f32, i32, i64
from tflq.numerics.convolution import window_counts
from tflq.numerics.resize import float_nearest_index, nearest_index, steps_of, taps
from tflq.onnx.lowering.arithmetic import activated
from tflq.onnx.lowering.context import Onnx, lowering, static
from tflq.onnx.lowering.convolution_real import padding
from tflq.onnx.lowering.held import EXACT, Form, Held
from tflq.onnx.lowering.movement import numbers

_RECIPROCAL = 1 << 22
"""Sums and half the number of elements together stay below it where a product with the reciprocal is exact."""


@lowering(MaxPool2D)
def max_pool(op: MaxPool2D, t: Onnx) -> Held:
    return _greatest(t, op.input, op.kernel, op.stride, _ends(op.pad), op.result)


@lowering(AvgPool2D)
def average_pool(op: AvgPool2D, t: Onnx) -> Held:
    """The mean of x - input_zp, plus output_zp, saturated."""
    if op.input.type.storage.is_float:
        return _real_mean(t, op.input, op.kernel, op.stride, _ends(op.pad), op.result)
    _, height, width, channels = op.input.type.shape or ()
    sizes = static((height, width, channels))
    counts = window_counts(sizes[:2], op.kernel, op.stride, op.pad)
    low, high = (v - op.input_zp for v in t.bounds(op.input))
    reach = max(-low, high, 1) * prod(op.kernel)
    if reach >= EXACT:
        raise Refused(f"float32 does not hold the sum of {prod(op.kernel)} elements")
    x = t.whole(op.input, op.input_zp, first=True)
    ones = t.stored(np.ones((sizes[2], 1, *op.kernel), np.int64), f32)
    pads = _ends(op.pad)
    total = t.conv(x, ones, None, strides=op.stride, pads=pads, dilations=(1, 1), group=sizes[2])
    mean = _mean(t, total, counts, reach, signed=low < 0)
    storage = op.result.type.storage
    least, most = storage.minimum - op.output_zp, storage.maximum - op.output_zp
    mean = t.clip(mean, least, most) if low < least or high > most else mean
    return t.made(mean, op.result, offset=op.output_zp, first=True)


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


@lowering(AveragePool2D, TflMaxPool2D)
def kernel_pool(op: AveragePool2D | TflMaxPool2D, t: Onnx) -> Held:
    """Of float32, or the greatest of plain integers."""
    kernel, stride = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    pads = padding((op.input.type.shape or ())[1:3], kernel, stride, (1, 1), op.padding)
    real = op.input.type.storage.is_float
    if not real and (isinstance(op, AveragePool2D) or op.fused_activation_function != "NONE"):
        raise Refused("a pool of plain integers")
    pool = _real_mean if isinstance(op, AveragePool2D) else _greatest
    held = pool(t, op.input, kernel, stride, pads, op.result)
    (form, y), *_ = held.forms.items()
    made = activated(t, y, op.fused_activation_function)
    return held if made is y else t.made(made, op.result, first=form.first)


def _ends(pad: Sequence[int]) -> list[int]:
    """top, bottom, left, right as ONNX has them: those before each dim, then those after."""
    return [*pad[::2], *pad[1::2]]


def _greatest(
    t: Onnx, x: Value, kernel: Sequence[int], stride: Sequence[int], pads: Sequence[int], result: Value
) -> Held:
    """MAXPOOL in float32, in the form that the tensor has."""
    held = t.held(x)
    forms = [form for form in held.forms if form.element == f32]
    form = max(forms, key=lambda f: f.first)._replace(first=True) if forms else Form(f32, first=True)
    if not x.type.storage.is_float:
        t.whole(x, form.offset, first=True)
    y = _pooled(t, onnx.MaxPool, held.get(t, form), kernel, stride, pads)
    return t.made(y, result, offset=form.offset, first=True)


def _real_mean(
    t: Onnx, x: Value, kernel: Sequence[int], stride: Sequence[int], pads: Sequence[int], result: Value
) -> Held:
    y = _pooled(t, onnx.AveragePool, t.held(x).get(t, Form(f32, first=True)), kernel, stride, pads)
    return t.made(y, result, first=True)


def _pooled(
    t: Onnx, kind: type[Operator], x: Value, kernel: Sequence[int], stride: Sequence[int], pads: Sequence[int]
) -> Value:
    return t.emit(kind, [x], kernel_shape=tuple(kernel), strides=tuple(stride), pads=tuple(pads))


@lowering(Resize)
def resize(op: Resize, t: Onnx) -> Held:
    """Elements by index, or sums of two with whole weights, of rows and then of columns."""
    sizes = static((op.input.type.shape or ())[1:3]), static((op.result.type.shape or ())[1:3])
    steps = steps_of(op.scale, op.offset)
    if op.mode == "NEAREST_NEIGHBOR":
        index = [nearest_index(*row) for row in zip(steps, *sizes, strict=True)]
        return _taken(t, op.input, index, op.result)
    if op.input.type.storage.is_float:
        raise Refused("BILINEAR of floats")
    low, high = t.bounds(op.input)
    reach = max(-low, high) * prod(step.n for step in steps)
    element = f32 if reach <= EXACT else i32 if reach < 1 << 31 else i64
    x = t.integers(op.input, element)
    for axis, row in enumerate(zip(steps, *sizes, strict=True), 1):
        x = _blended(t, x, row[0].n, *taps(*row), axis)
    made = t.made(x, op.result)
    made.low, made.high = max(made.low, -reach), min(made.high, reach)
    return made


def _blended(t: Onnx, x: Value, n: int, lower: np.ndarray, upper: np.ndarray, fraction: np.ndarray, axis: int) -> Value:
    """x[lower] * (n - fraction) + x[upper] * fraction."""
    weight = fraction.astype(np.int64).reshape(-1, *(1,) * (3 - axis))
    below = t.mul(t.gather(x, t.vector(lower), axis), t.like(n - weight, x))
    if not weight.any():
        return below
    return t.add(below, t.mul(t.gather(x, t.vector(upper), axis), t.like(weight, x)))


@lowering(ResizeNearestNeighbor)
def resize_nearest(op: ResizeNearestNeighbor, t: Onnx) -> Held:
    sizes = static((op.input.type.shape or ())[1:3])
    flags = op.align_corners, op.half_pixel_centers
    index = [float_nearest_index(n, out, *flags) for n, out in zip(sizes, numbers(op.size), strict=True)]
    return _taken(t, op.input, index, op.result)


def _taken(t: Onnx, x: Value, index: Sequence[np.ndarray], result: Value) -> Held:
    """GATHER of rows and of columns."""

    def emit(v: Value) -> Value:
        for axis, row in enumerate(index, 1):
            v = t.gather(v, t.vector(row), axis)
        return v

    return t.moved(x, emit, result)
