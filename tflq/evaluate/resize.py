"""Evaluators of resizing, on NHWC."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.resize import ResizeNearestNeighbor
from tflq.dialects.tosa.resize import Resize
from tflq.evaluate.registry import evaluator
from tflq.numerics.resize import float_nearest_index, nearest_index, steps_of, taps

__all__: list[str] = []


@evaluator(Resize)
def _resize(op: Resize, x: np.ndarray) -> np.ndarray:
    """Both dims in turn; sums of floats are divided by both n."""
    dtype = np.dtype(np.float64) if x.dtype.kind == "f" else np.dtype(np.int64)
    shape = op.output.type.shape or ()
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
    rows, columns = (float_nearest_index(n, int(o), *flags) for n, o in zip(x.shape[1:3], size, strict=True))
    return x.take(rows, 1).take(columns, 2)
