"""Pooling over windows of rows and columns.

    average[y, x] = (sum ± count // 2) / count, truncated; + for a positive sum: the mean, half away from zero
    maximum[y, x] = the greatest element

over the elements of the window that lie inside the input: padding is neither summed nor counted. Neither kernel looks
at scales or zero points, so both are the same on stored integers of any parameters.

TOSA's AVG_POOL2D sums x - input_zp, multiplies by a reciprocal and adds output_zp:

    (sum * m + 2^(s - 1)) >> s        m = ((2^30 + 1) << k) // count, s = 30 + k, k the bits of count - 1

That is the mean, half away from zero, of every |sum| < 2^29. For m * count = 2^s + d with 0 < d <= 2^k, since count <=
2^k: the product is sum / count * (1 + d / 2^s), farther from zero, which takes both halves away from it. No other
quotient is closer than 1 / (2 count) to a half, and |sum| / count * 2^-30 is less than that.

Sources: kernels/internal/reference/integer_ops/pooling.h, kernels/internal/reference/pooling.h; TOSA 1.0 specification,
AVG_POOL2D, reciprocal_scale.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np

__all__ = [
    "average_is_exact",
    "average_pool",
    "max_pool",
    "reciprocal_average_pool",
    "reciprocal_scale",
    "window_counts",
]


def reciprocal_scale(count: int) -> tuple[int, int]:
    """TOSA's multiplier and shift for a division by `count`."""
    k = (count - 1).bit_length()
    return (((1 << 30) + 1) << k) // count, 30 + k


def average_is_exact(kernel: Sequence[int], low: int, high: int, zero_point: int) -> bool:
    """Whether TOSA's average of integers within [low, high] less their zero point is the mean, half away from zero."""
    return kernel[0] * kernel[1] * max(high - zero_point, zero_point - low) < 1 << 29


def average_pool(x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]) -> np.ndarray:
    """AVERAGE_POOL_2D of NHWC integers, int64; `kernel` and `stride` are y, x, `pad` is top, bottom, left, right.

    The quotient itself, float64, of floats.
    """
    total, count = _sums(x, kernel, stride, pad)
    if x.dtype.kind == "f":
        return total / count
    return np.sign(total) * ((np.abs(total) + count // 2) // count)


def reciprocal_average_pool(
    x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]
) -> np.ndarray:
    """TOSA's AVG_POOL2D of NHWC integers less their zero point, int64; arguments as for `average_pool`."""
    total, count = _sums(x, kernel, stride, pad)
    counts, place = np.unique(count, return_inverse=True)
    scales = np.asarray([reciprocal_scale(int(c)) for c in counts], np.int64)
    multiplier, shift = scales[place.reshape(count.shape)].transpose(4, 0, 1, 2, 3)
    return (total * multiplier + (np.int64(1) << (shift - 1))) >> shift


def window_counts(sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]) -> np.ndarray:
    """The elements of each window that are not padding, for an input of `sizes` rows and columns: [OH, OW]."""
    ones = np.ones((1, *sizes, 1), np.int64)
    return _added(ones, kernel, stride, pad)[0, :, :, 0]


def _sums(
    x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """The sum of each window, in int64 or float64, and the number of its elements."""
    wide = x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
    counts = window_counts(x.shape[1:3], kernel, stride, pad)
    return _added(wide, kernel, stride, pad), counts[None, :, :, None]


def _added(x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]) -> np.ndarray:
    return functools.reduce(np.add, _shifted(x, kernel, stride, pad, 0))


def max_pool(x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int]) -> np.ndarray:
    """MAX_POOL_2D of NHWC integers; arguments as for `average_pool`."""
    shifted = _shifted(x, kernel, stride, pad, -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min)
    out = next(shifted)
    for other in shifted:
        out = np.maximum(out, other)
    return out


def _shifted(
    x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int], fill: float
) -> Iterator[np.ndarray]:
    """For each position in the window, the element there of every window."""
    top, bottom, left, right = pad
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    rows, columns = ((size - k) // s + 1 for size, k, s in zip(padded.shape[1:3], kernel, stride, strict=True))
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            yield padded[:, row :: stride[0], column :: stride[1]][:, :rows, :columns]
