"""Pooling over windows of rows and columns.

    average[y, x] = (sum ± count // 2) / count, truncated; + for a positive sum: the mean, half away from zero
    maximum[y, x] = the greatest element

over the elements of the window that lie inside the input: padding is neither summed nor counted. Neither kernel looks
at scales or zero points, so both are the same on stored integers of any parameters. TOSA's AVG_POOL2D of zero points 0
is the same number: its reciprocal of `count` is a little too large, which takes both halves away from zero.

Sources: kernels/internal/reference/integer_ops/pooling.h, kernels/internal/reference/pooling.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

__all__ = ["average_pool", "max_pool"]


def average_pool(x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]) -> np.ndarray:
    """AVERAGE_POOL_2D of NHWC integers, int64; `kernel` and `stride` are y, x, `pad` is top, bottom, left, right."""
    total = sum(_shifted(x.astype(np.int64), kernel, stride, pad, 0))
    count = sum(_shifted(np.ones((1, *x.shape[1:3], 1), np.int64), kernel, stride, pad, 0))
    return np.sign(total) * ((np.abs(total) + count // 2) // count)


def max_pool(x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]) -> np.ndarray:
    """MAX_POOL_2D of NHWC integers; arguments as for `average_pool`."""
    shifted = _shifted(x, kernel, stride, pad, np.iinfo(x.dtype).min)
    out = next(shifted)
    for other in shifted:
        out = np.maximum(out, other)
    return out


def _shifted(
    x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int], fill: int
) -> Iterator[np.ndarray]:
    """For each position in the window, the element there of every window."""
    top, bottom, left, right = pad
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    rows, columns = ((size - k) // s + 1 for size, k, s in zip(padded.shape[1:3], kernel, stride, strict=True))
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            yield padded[:, row :: stride[0], column :: stride[1]][:, :rows, :columns]
