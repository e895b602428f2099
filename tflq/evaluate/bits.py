"""Evaluators of ops on the bits of i32 values."""

from __future__ import annotations

import numpy as np

from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op

__all__: list[str] = []


@evaluator("tosa.clz")
def _clz(op: Op, x: np.ndarray) -> np.ndarray:
    """The exponent of an integer below 2^53 is its number of bits."""
    return np.where(x < 0, 0, 32 - np.frexp(np.maximum(x, 0).astype(np.float64))[1])


@evaluator("tosa.logical_left_shift")
def _logical_left_shift(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.int64) << b
