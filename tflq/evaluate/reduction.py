"""Evaluators of reductions. TOSA's are over one axis, which stays with size 1; TFLite's over several.

Sums of integers wrap; TOSA's sums and products of floats are computed in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tflq.dialects.tfl import reduction as tfl
from tflq.dialects.tosa import reduction as tosa
from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op

__all__: list[str] = []


_REDUCTIONS: Final[dict[type[Op], Callable[..., Any]]] = {
    tosa.ReduceAll: np.all,
    tosa.ReduceAny: np.any,
    tosa.ReduceMax: np.max,
    tosa.ReduceMin: np.min,
    tfl.ReduceAll: np.all,
    tfl.ReduceAny: np.any,
    tfl.ReduceMax: np.max,
    tfl.ReduceMin: np.min,
    tfl.ReduceProd: np.prod,
    tfl.Sum: np.sum,
}


@evaluator(tosa.ReduceAll, tosa.ReduceAny, tosa.ReduceMax, tosa.ReduceMin)
def _reduce(op: tosa.ReduceAll | tosa.ReduceAny | tosa.ReduceMax | tosa.ReduceMin, x: np.ndarray) -> np.ndarray:
    return np.asarray(_REDUCTIONS[type(op)](x, axis=op.axis, keepdims=True, **_start(op, x)))


def _start(op: Op, x: np.ndarray) -> dict[str, Any]:
    """What the greatest or least of no elements is: the end of the type that any other number replaces."""
    if x.size or not isinstance(op, (tosa.ReduceMax, tosa.ReduceMin, tfl.ReduceMax, tfl.ReduceMin)):
        return {}
    ends = np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype)
    return {"initial": ends.min if isinstance(op, (tosa.ReduceMax, tfl.ReduceMax)) else ends.max}


@evaluator(tfl.ReduceAll, tfl.ReduceAny, tfl.ReduceMax, tfl.ReduceMin, tfl.ReduceProd, tfl.Sum)
def _reduce_axes(op: tfl.Reduction, x: np.ndarray, axes: np.ndarray) -> np.ndarray:
    along = tuple(int(a) % x.ndim for a in axes.reshape(-1))
    return np.asarray(_REDUCTIONS[type(op)](x, axis=along, keepdims=op.keep_dims, **_start(op, x)))


@evaluator(tosa.ReduceSum)
def _sum(op: tosa.ReduceSum, x: np.ndarray) -> np.ndarray:
    return x.sum(axis=op.axis, keepdims=True, dtype=_accumulator(x))


@evaluator(tosa.ReduceProduct)
def _product(op: tosa.ReduceProduct, x: np.ndarray) -> np.ndarray:
    return x.prod(axis=op.axis, keepdims=True, dtype=_accumulator(x))


def _accumulator(x: np.ndarray) -> np.dtype:
    return np.dtype(np.float64) if x.dtype.kind == "f" else x.dtype


@evaluator(tosa.ArgMax)
def _argmax(op: tosa.ArgMax, x: np.ndarray) -> np.ndarray:
    """The first of equals; of no elements 0."""
    if x.shape[op.axis] == 0:
        return np.zeros(np.delete(x.shape, op.axis), np.int32)
    return np.asarray(x.argmax(op.axis))
