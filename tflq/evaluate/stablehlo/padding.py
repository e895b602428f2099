"""What windows are taken from: elements spread apart, then a margin, which may be negative; and where they lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.stablehlo.convolution import Window

__all__ = ["dilated_and_padded", "places"]


def dilated_and_padded(
    x: np.ndarray, padding: Sequence[tuple[int, int]], dilations: Sequence[int], fill: np.ndarray | np.generic
) -> np.ndarray:
    """An array with `dilation - 1` elements `fill` between two of its own along each dimension, and as many as
    `padding` says before and after; fewer than none cut off."""
    spread = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape, dilations, strict=True)]
    sizes = [max(0, n + low + high) for n, (low, high) in zip(spread, padding, strict=True)]
    out = np.empty(sizes, x.dtype)
    out[...] = fill
    source, target = [], []
    for n, dilation, (low, _), size in zip(x.shape, dilations, padding, sizes, strict=True):
        first = max(0, -(low // dilation)) if low < 0 else 0
        last = min(n, -(-(size - low) // dilation)) if size > low else 0
        source.append(slice(first, max(first, last)))
        start = first * dilation + low
        target.append(
            slice(start, start + max(0, (last - first - 1)) * dilation + 1 if last > first else start, dilation)
        )
    out[tuple(target)] = x[tuple(source)]
    return out


def places(offset: Sequence[int], window: Window, counts: Sequence[int]) -> tuple[slice, ...]:
    """Where the elements at an offset in each window are in a padded array, which has `counts` windows along each
    dimension."""
    return tuple(
        slice(o * dilation, o * dilation + (count - 1) * stride + 1 if count else 0, stride)
        for o, dilation, stride, count in zip(offset, window.dilations, window.strides, counts, strict=True)
    )
