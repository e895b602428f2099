"""Evaluator of tosa.argmax, which takes the first of equals."""

from __future__ import annotations

import numpy as np

from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op

__all__: list[str] = []


@evaluator("tosa.argmax")
def _argmax(op: Op, x: np.ndarray) -> np.ndarray:
    return np.asarray(x.argmax(op.attributes["axis"]))
