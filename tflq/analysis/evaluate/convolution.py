"""Evaluators of convolutions, products of matrices, pooling, reductions and resizing.

Products of numbers less their zero points are summed in float64, exact for integers while the sum of their magnitudes
stays below 2^53; the result wraps in i32. Floats are rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.analysis.evaluate.registry import evaluator
from tflq.dialects.tfl import pooling as tfl
from tflq.dialects.tfl.pooling import ResizeNearestNeighbor
from tflq.dialects.tosa import movement as tosa
from tflq.dialects.tosa.convolution import (
    AvgPool2D,
    Conv2D,
    Conv3D,
    DepthwiseConv2D,
    MatMul,
    MaxPool2D,
    TransposeConv2D,
)
from tflq.dialects.tosa.movement import Resize
from tflq.ir.ops import Op
from tflq.numerics.convolution import average_pool, max_pool, reciprocal_average_pool
from tflq.numerics.resize import float_nearest_index, nearest_index, steps_of, taps

_Convolution: TypeAlias = Conv2D | Conv3D | DepthwiseConv2D | TransposeConv2D


def _taps(x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> np.ndarray:
    """The elements under the filter at each output position, a view of padded x: [N, OH, OW, C, KH, KW], or with a
    dim of depth before both others."""
    extent = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    axes: Any = tuple(range(1, x.ndim - 1))
    if max(extent) == 1:
        views = x.reshape(*x.shape, *extent)
    else:
        views = np.lib.stride_tricks.sliding_window_view(x, extent, axis=axes)
    steps = (slice(None, None, s) for s in stride)
    return views[(slice(None), *steps, slice(None), *(slice(None, None, d) for d in dilation))]


def _operands(op: _Convolution, x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, filters = x.astype(np.float64), weights.astype(np.float64)
    return values - op.input_zp if op.input_zp else values, filters - op.weight_zp if op.weight_zp else filters


def _sum(op: _Convolution, products: np.ndarray, bias: np.ndarray) -> np.ndarray:
    dtype = op.output.type.storage.dtype
    wide = np.dtype(np.float64) if dtype.kind == "f" else np.dtype(np.int64)
    return (products.astype(wide) + bias.astype(wide)).astype(dtype)


def _padded(op: Conv2D | Conv3D | DepthwiseConv2D, x: np.ndarray) -> np.ndarray:
    """x with `pad` around its spatial dims: before and after each."""
    amounts = np.reshape(op.pad, (-1, 2)).tolist()
    return np.pad(x, ((0, 0), *amounts, (0, 0))) if any(op.pad) else x


@evaluator(Conv2D)
def _conv2d(op: Conv2D, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    values, filters = _operands(op, x, weights)
    taps = _taps(_padded(op, values), weights.shape[1:3], op.stride, op.dilation)
    return _sum(op, np.tensordot(taps, filters, ((3, 4, 5), (3, 1, 2))), bias)


@evaluator(Conv3D)
def _conv3d(op: Conv3D, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    values, filters = _operands(op, x, weights)
    taps = _taps(_padded(op, values), weights.shape[1:4], op.stride, op.dilation)
    return _sum(op, np.tensordot(taps, filters, ((4, 5, 6, 7), (4, 1, 2, 3))), bias)


@evaluator(DepthwiseConv2D)
def _depthwise_conv2d(op: DepthwiseConv2D, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    values, filters = _operands(op, x, weights)
    taps = _taps(_padded(op, values), weights.shape[:2], op.stride, op.dilation)
    products = np.einsum("nhwcij,ijcm->nhwcm", taps, filters)
    return _sum(op, products.reshape(*products.shape[:3], -1), bias)


@evaluator(TransposeConv2D)
def _transpose_conv2d(op: TransposeConv2D, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """out_pad (top, bottom, left, right) is added to the full result; less than 0 crops it."""
    (stride_h, stride_w), (top, bottom, left, right) = op.stride, op.out_pad
    values, filters = _operands(op, x, weights)
    outputs, kernel_h, kernel_w, _ = weights.shape
    batch, height, width, _ = x.shape
    full = np.zeros((batch, (height - 1) * stride_h + kernel_h, (width - 1) * stride_w + kernel_w, outputs))
    for i in range(kernel_h):
        for j in range(kernel_w):
            rows = slice(i, i + (height - 1) * stride_h + 1, stride_h)
            full[:, rows, j : j + (width - 1) * stride_w + 1 : stride_w] += values @ filters[:, i, j].T
    full = np.pad(full, ((0, 0), (max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0)), (0, 0)))
    crop = [
        slice(max(-before, 0), size - max(-after, 0))
        for before, after, size in ((top, bottom, full.shape[1]), (left, right, full.shape[2]))
    ]
    return _sum(op, full[:, crop[0], crop[1]], bias)


@evaluator(MatMul)
def _matmul(op: MatMul, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    left, right = a.astype(np.float64) - op.a_zp, b.astype(np.float64) - op.b_zp
    product, dtype = np.matmul(left, right), op.result.type.storage.dtype
    return product.astype(dtype) if dtype.kind == "f" else product.astype(np.int64).astype(dtype)


# Pooling.


@evaluator(AvgPool2D)
def _average(op: AvgPool2D, x: np.ndarray) -> np.ndarray:
    """The average of x - input_zp, plus output_zp, saturated."""
    if x.dtype.kind == "f":
        return average_pool(x, op.kernel, op.stride, op.pad)
    mean = reciprocal_average_pool(x.astype(np.int64) - op.input_zp, op.kernel, op.stride, op.pad)
    storage = op.result.type.storage
    return np.clip(mean + op.output_zp, storage.minimum, storage.maximum)


@evaluator(MaxPool2D)
def _maximum(op: MaxPool2D, x: np.ndarray) -> np.ndarray:
    return max_pool(x, op.kernel, op.stride, op.pad)


# Reductions. TOSA's are over one axis, which stays with size 1; TFLite's over several. Sums of integers wrap; TOSA's
# sums and products of floats are computed in float64 and rounded once.

_REDUCTIONS: Final[dict[type[Op], Callable[..., Any]]] = {
    tosa.ReduceAll: np.all,
    tosa.ReduceAny: np.any,
    tosa.ReduceMax: np.max,
    tosa.ReduceMin: np.min,
    tosa.ReduceProduct: np.prod,
    tosa.ReduceSum: np.sum,
    tfl.ReduceAll: np.all,
    tfl.ReduceAny: np.any,
    tfl.ReduceMax: np.max,
    tfl.ReduceMin: np.min,
    tfl.ReduceProd: np.prod,
    tfl.Sum: np.sum,
}


@evaluator(tosa.ReduceAll, tosa.ReduceAny, tosa.ReduceMax, tosa.ReduceMin)
def _reduce(op: tosa.ReduceAll | tosa.ReduceAny | tosa.ReduceMax | tosa.ReduceMin, x: np.ndarray) -> np.ndarray:
    return np.asarray(_REDUCTIONS[type(op)](x, axis=op.axis, keepdims=True, **_start(op, x)))


def _start(op: Op, x: np.ndarray) -> dict[str, Any]:
    """The greatest or least of no elements: the end of the type that any other number replaces."""
    if x.size or not isinstance(op, (tosa.ReduceMax, tosa.ReduceMin, tfl.ReduceMax, tfl.ReduceMin)):
        return {}
    ends = np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype)
    return {"initial": ends.min if isinstance(op, (tosa.ReduceMax, tfl.ReduceMax)) else ends.max}


@evaluator(tfl.ReduceAll, tfl.ReduceAny, tfl.ReduceMax, tfl.ReduceMin, tfl.ReduceProd, tfl.Sum)
def _reduce_axes(op: tfl.Reduction, x: np.ndarray, axes: np.ndarray) -> np.ndarray:
    along = tuple(int(a) % x.ndim for a in axes.reshape(-1))
    return np.asarray(_REDUCTIONS[type(op)](x, axis=along, keepdims=op.keep_dims, **_start(op, x)))


@evaluator(tosa.ReduceSum, tosa.ReduceProduct)
def _accumulated(op: tosa.ReduceSum | tosa.ReduceProduct, x: np.ndarray) -> np.ndarray:
    dtype = np.dtype(np.float64) if x.dtype.kind == "f" else x.dtype
    return np.asarray(_REDUCTIONS[type(op)](x, axis=op.axis, keepdims=True, dtype=dtype))


@evaluator(tosa.ArgMax)
def _argmax(op: tosa.ArgMax, x: np.ndarray) -> np.ndarray:
    """The first of equals; 0 of no elements."""
    if x.shape[op.axis] == 0:
        return np.zeros(np.delete(x.shape, op.axis), np.int32)
    return np.asarray(x.argmax(op.axis))


# Resizing, on NHWC.


@evaluator(Resize)
def _resize(op: Resize, x: np.ndarray) -> np.ndarray:
    """Both dims in turn; sums of floats are divided by both n."""
    dtype = np.dtype(np.float64) if x.dtype.kind == "f" else np.dtype(np.int64)
    shape = op.output.type.dims
    for axis, steps in zip((1, 2), steps_of(op.scale, op.offset), strict=True):
        size, out = x.shape[axis], shape[axis] or 0
        if op.mode == "NEAREST_NEIGHBOR":
            x = x.take(nearest_index(steps, size, out), axis)
        else:
            lower, upper, fraction = taps(steps, size, out)
            weight = fraction.astype(dtype).reshape(-1, *(1,) * (3 - axis))
            x = x.take(lower, axis) * (steps.n - weight) + x.take(upper, axis) * weight
            x = x / steps.n if dtype.kind == "f" else x
    return x


@evaluator(ResizeNearestNeighbor)
def _nearest(op: ResizeNearestNeighbor, x: np.ndarray, size: np.ndarray) -> np.ndarray:
    flags = op.align_corners, op.half_pixel_centers
    wanted = zip(x.shape[1:3], size.reshape(-1).tolist(), strict=True)
    rows, columns = (float_nearest_index(n, o, *flags) for n, o in wanted)
    return x.take(rows, 1).take(columns, 2)
