"""Evaluators of the reductions over one axis, which stays with size 1. Sums of integers wrap; sums and products of
floats are made in float64 and rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.dialects.tosa.reduction import ReduceProduct, ReduceSum
from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op

__all__: list[str] = []

_REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "tosa.reduce_all": np.all,
    "tosa.reduce_any": np.any,
    "tosa.reduce_max": np.max,
    "tosa.reduce_min": np.min,
}


@evaluator(*_REDUCTIONS)
def _choice(op: Op, x: np.ndarray) -> np.ndarray:
    return _REDUCTIONS[op.name](x, axis=op.attributes["axis"], keepdims=True)


@evaluator(ReduceSum)
def _sum(op: ReduceSum, x: np.ndarray) -> np.ndarray:
    return x.sum(axis=op.axis, keepdims=True, dtype=_accumulator(x))


@evaluator(ReduceProduct)
def _product(op: ReduceProduct, x: np.ndarray) -> np.ndarray:
    return x.prod(axis=op.axis, keepdims=True, dtype=_accumulator(x))


def _accumulator(x: np.ndarray) -> np.dtype:
    return np.dtype(np.float64) if x.dtype.kind == "f" else x.dtype
