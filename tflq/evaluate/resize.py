"""Evaluators of resizing: tosa.resize on NHWC, both modes, and the halves of its rounding."""

from __future__ import annotations

import numpy as np

from tflq.dialects.ext.rescale import RoundingDivideByPot
from tflq.dialects.tfl.resize import ResizeNearestNeighbor
from tflq.dialects.tosa.arithmetic import IntDiv
from tflq.dialects.tosa.resize import Resize
from tflq.evaluate.registry import evaluator
from tflq.numerics.fixed_point import rounding_divide_by_pot
from tflq.numerics.resize import float_nearest_index, nearest_index, steps_of, taps

__all__: list[str] = []


@evaluator(Resize)
def _resize(op: Resize, x: np.ndarray) -> np.ndarray:
    """Both dims in turn; sums of floats are divided by both n."""
    dtype = np.dtype(np.float64) if x.dtype.kind == "f" else np.dtype(np.int64)
    a, shape = op.attributes, op.result.type.shape or ()
    for axis, steps in zip((1, 2), steps_of(a["scale"], a["offset"]), strict=True):
        size, out = x.shape[axis], shape[axis] or 0
        if a["mode"] == "NEAREST_NEIGHBOR":
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


@evaluator(IntDiv)
def _divide(op: IntDiv, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.sign(y) * (np.abs(x.astype(np.int64)) // np.abs(y.astype(np.int64)))


@evaluator(RoundingDivideByPot)
def _rounding_divide(op: RoundingDivideByPot, x: np.ndarray) -> np.ndarray:
    return rounding_divide_by_pot(x, op.exponent)
