"""Sums of products in numpy, by the operators' definitions: one filter tap after another, on whole numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tflq.ir.types import UniformQuantizedType

_BOUNDS = {
    "NONE": (-np.inf, np.inf),
    "RELU": (0.0, np.inf),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
}


def _padding(size: int, kernel: int, stride: int, dilation: int, padding: str) -> tuple[int, int]:
    """Outputs and what is padded before. Source: kernels/padding.h."""
    extent = (kernel - 1) * dilation + 1
    if padding == "VALID":
        return math.ceil((size - extent + 1) / stride), 0
    out = math.ceil(size / stride)
    return out, max((out - 1) * stride + extent - size, 0) // 2


def _taps(x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], padding: str) -> Any:
    """For each tap, its place and what it meets; zeros beyond the edges."""
    dims = [_padding(n, k, s, d, padding) for n, k, s, d in zip(x.shape[1:], kernel, stride, dilation, strict=False)]
    room = [(k - 1) * d + s * out for k, d, s, (out, _) in zip(kernel, dilation, stride, dims, strict=True)]
    wide = np.pad(x, [(0, 0), *((before, r) for (_, before), r in zip(dims, room, strict=True)), (0, 0)])
    for place in itertools.product(*map(range, kernel)):
        cut = [
            slice(p * d, p * d + (o - 1) * s + 1, s)
            for p, d, s, (o, _) in zip(place, dilation, stride, dims, strict=True)
        ]
        yield place, wide[(slice(None), *cut)]


def convolved(x: np.ndarray, w: np.ndarray, stride: Sequence[int], dilation: Sequence[int], padding: str) -> np.ndarray:
    """Filters [O, ..., I], in groups where the input has more channels."""
    groups = x.shape[-1] // w.shape[-1]
    inputs, outputs = w.shape[-1], w.shape[0] // groups
    parts = []
    for g in range(groups):
        own = w[g * outputs : (g + 1) * outputs]
        of = x[..., g * inputs : (g + 1) * inputs]
        taps = _taps(of, w.shape[1:-1], stride, dilation, padding)
        parts.append(sum(met @ own[(slice(None), *place)].T for place, met in taps))
    return np.concatenate(parts, axis=-1)


def depthwise(x: np.ndarray, w: np.ndarray, stride: Sequence[int], dilation: Sequence[int], padding: str) -> np.ndarray:
    """Filters [1, KH, KW, C * M]."""
    each = np.repeat(x, w.shape[-1] // x.shape[-1], axis=-1)
    taps = _taps(each, w.shape[1:3], stride, dilation, padding)
    return np.asarray(sum(met * w[(0, *place)] for place, met in taps))


def transposed(
    x: np.ndarray, w: np.ndarray, out: Sequence[int], stride: Sequence[int], dilation: Sequence[int], padding: str
) -> np.ndarray:
    """Filters [O, ..., I]; `out` are the spatial sizes of the result."""
    kernel = w.shape[1:-1]
    before = [_padding(o, k, s, d, padding)[1] for o, k, s, d in zip(out, kernel, stride, dilation, strict=True)]
    full = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(x.shape[1:], stride, kernel, dilation, strict=False)]
    room = [max(f, b + o) for f, b, o in zip(full, before, out, strict=True)]
    sums = np.zeros((x.shape[0], *room, w.shape[0]), x.dtype)
    for place in itertools.product(*map(range, kernel)):
        cut = [
            slice(p * d, p * d + (n - 1) * s + 1, s)
            for p, d, n, s in zip(place, dilation, x.shape[1:], stride, strict=False)
        ]
        under: Any = (slice(None), *cut)
        tap: Any = (slice(None), *place)
        sums[under] += x @ w[tap].T
    inside: Any = (slice(None), *(slice(b, b + o) for b, o in zip(before, out, strict=True)))
    return np.asarray(sums[inside])


def requantized(
    sums: np.ndarray, bias: np.ndarray | float, scale: np.ndarray, to: UniformQuantizedType, activation: str
) -> np.ndarray:
    """(sums + bias) * scale in the result's type, rounded half away from zero; scale and bias per channel."""
    real = (sums.astype(np.float64) + bias) * scale
    rounded = np.sign(real) * np.floor(np.abs(real) + 0.5)
    low, high = _BOUNDS[activation]
    steps = [np.float64(np.float32(bound) / np.float32(to.scale)) for bound in (low, high)]
    rounded = np.clip(rounded, *(np.sign(s) * np.floor(np.abs(s) + 0.5) for s in steps)) + to.zero_point
    return np.clip(rounded, to.storage.minimum, to.storage.maximum).astype(to.storage.dtype)
