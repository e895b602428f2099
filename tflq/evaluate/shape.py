"""Evaluators of shapes, ranges, and tensors of one value."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.shape import BroadcastArgs, Fill, Range, Rank, Shape
from tflq.evaluate.registry import evaluator

__all__: list[str] = []


@evaluator(Shape)
def _shape(op: Shape, x: np.ndarray) -> np.ndarray:
    return np.asarray(x.shape)


@evaluator(Rank)
def _rank(op: Rank, x: np.ndarray) -> np.ndarray:
    return np.asarray(x.ndim)


@evaluator(Fill)
def _fill(op: Fill, dims: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.full(dims.tolist(), value.reshape(()))


@evaluator(Range)
def _range(op: Range, start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
    return np.arange(start.item(), limit.item(), delta.item()).astype(start.dtype)


@evaluator(BroadcastArgs)
def _broadcast_args(op: BroadcastArgs, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(np.broadcast_shapes(tuple(a.tolist()), tuple(b.tolist())))
