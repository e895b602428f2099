"""Evaluators of pooling: tosa.avg_pool2d, tosa.max_pool2d."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.pooling import AvgPool2D, MaxPool2D
from tflq.evaluate.registry import evaluator
from tflq.numerics.pooling import average_pool, max_pool, reciprocal_average_pool

__all__: list[str] = []


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
