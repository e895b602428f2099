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
    a = op.attributes
    if x.dtype.kind == "f":
        return average_pool(x, a["kernel"], a["stride"], a["pad"])
    mean = reciprocal_average_pool(x.astype(np.int64) - a["input_zp"], a["kernel"], a["stride"], a["pad"])
    storage = op.result.type.storage
    return np.clip(mean + a["output_zp"], storage.minimum, storage.maximum)


@evaluator(MaxPool2D)
def _maximum(op: MaxPool2D, x: np.ndarray) -> np.ndarray:
    a = op.attributes
    return max_pool(x, a["kernel"], a["stride"], a["pad"])
