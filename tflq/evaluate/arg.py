"""Evaluator of tosa.argmax, which takes the first of equals."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.reduction import ArgMax
from tflq.evaluate.registry import evaluator

__all__: list[str] = []


@evaluator(ArgMax)
def _argmax(op: ArgMax, x: np.ndarray) -> np.ndarray:
    return np.asarray(x.argmax(op.axis))
