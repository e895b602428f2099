"""Evaluators of the convolutions: products of numbers less their zero points, summed, plus the bias.

Products are summed in float64, exact for integers while the sum of their magnitudes stays below 2^53; the result wraps
in i32. Floats are rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tflq.dialects.tosa.convolution import Conv2D, Conv3D, DepthwiseConv2D, TransposeConv2D
from tflq.evaluate.registry import evaluator

__all__: list[str] = []

_Convolution: TypeAlias = Conv2D | Conv3D | DepthwiseConv2D | TransposeConv2D


def _taps(x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> np.ndarray:
    """The elements under the filter at each output position, a view of padded x: [N, OH, OW, C, KH, KW], or with a
    dim of depth before both others."""
    extent = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    axes: Any = tuple(range(1, x.ndim - 1))
    views = np.lib.stride_tricks.sliding_window_view(x, extent, axis=axes)
    steps = (slice(None, None, s) for s in stride)
    return views[(slice(None), *steps, slice(None), *(slice(None, None, d) for d in dilation))]


def _operands(op: _Convolution, x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x.astype(np.float64) - op.input_zp, weights.astype(np.float64) - op.weight_zp


def _sum(op: _Convolution, products: np.ndarray, bias: np.ndarray) -> np.ndarray:
    dtype = op.output.type.storage.dtype
    wide = np.dtype(np.float64) if dtype.kind == "f" else np.dtype(np.int64)
    return (products.astype(wide) + bias.astype(wide)).astype(dtype)


def _padded(op: Conv2D | Conv3D | DepthwiseConv2D, x: np.ndarray) -> np.ndarray:
    """x with `pad` around its spatial dims: before and after each."""
    amounts = np.reshape(op.pad, (-1, 2)).tolist()
    return np.pad(x, ((0, 0), *amounts, (0, 0)))


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
