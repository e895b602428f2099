"""Evaluators of the convolutions: products of integers less their zero points, summed, plus the bias.

Products are summed in float64, exact while the sum of their magnitudes stays below 2^53; the result wraps in i32.
"""

from __future__ import annotations

import numpy as np

from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op

__all__: list[str] = []


def _taps(x: np.ndarray, kernel: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int]) -> np.ndarray:
    """The elements under the filter at each output position: [N, OH, OW, C, KH, KW], a view of padded x."""
    extent = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    views = np.lib.stride_tricks.sliding_window_view(x, extent, axis=(1, 2))
    return views[:, :: stride[0], :: stride[1], :, :: dilation[0], :: dilation[1]]


def _operands(op: Op, x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x.astype(np.float64) - op.attributes["input_zp"], weights.astype(np.float64) - op.attributes["weight_zp"]


def _sum(op: Op, products: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return (products.astype(np.int64) + bias.astype(np.int64)).astype(op.result.type.storage.dtype)


def _padded(op: Op, x: np.ndarray) -> np.ndarray:
    top, bottom, left, right = op.attributes["pad"]
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))


@evaluator("tosa.conv2d")
def _conv2d(op: Op, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    a = op.attributes
    values, filters = _operands(op, x, weights)
    taps = _taps(_padded(op, values), weights.shape[1:3], a["stride"], a["dilation"])
    return _sum(op, np.tensordot(taps, filters, ((3, 4, 5), (3, 1, 2))), bias)


@evaluator("tosa.depthwise_conv2d")
def _depthwise_conv2d(op: Op, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    a = op.attributes
    values, filters = _operands(op, x, weights)
    taps = _taps(_padded(op, values), weights.shape[:2], a["stride"], a["dilation"])
    products = np.einsum("nhwcij,ijcm->nhwcm", taps, filters)
    return _sum(op, products.reshape(*products.shape[:3], -1), bias)


@evaluator("tosa.transpose_conv2d")
def _transpose_conv2d(op: Op, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """out_pad (top, bottom, left, right) is added to the full result; less than 0 crops it."""
    (stride_h, stride_w), (top, bottom, left, right) = op.attributes["stride"], op.attributes["out_pad"]
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
