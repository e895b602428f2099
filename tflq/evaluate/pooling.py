"""Evaluators of pooling: tosa.avg_pool2d without zero points, tosa.max_pool2d."""

from __future__ import annotations

import numpy as np

from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op
from tflq.numerics.pooling import average_pool, max_pool

__all__: list[str] = []


@evaluator("tosa.avg_pool2d")
def _average(op: Op, x: np.ndarray) -> np.ndarray:
    a = op.attributes
    return average_pool(x, a["kernel"], a["stride"], a["pad"])


@evaluator("tosa.max_pool2d")
def _maximum(op: Op, x: np.ndarray) -> np.ndarray:
    a = op.attributes
    return max_pool(x, a["kernel"], a["stride"], a["pad"])
