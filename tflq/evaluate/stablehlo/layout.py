"""Data movement: elements keep their stored values."""

from __future__ import annotations

import numpy as np

from tflq.dialects.stablehlo.movement import BroadcastInDim, Concatenate, Reshape, Reverse, Slice, Transpose
from tflq.dialects.stablehlo.rules import integers
from tflq.evaluate.registry import evaluator

__all__: list[str] = []


@evaluator(Reshape)
def _reshape(op: Reshape, x: np.ndarray) -> np.ndarray:
    return x.reshape([d or 0 for d in op.result.type.shape or ()])


@evaluator(Transpose)
def _transpose(op: Transpose, x: np.ndarray) -> np.ndarray:
    return x.transpose(integers(op, "permutation") or ())


@evaluator(BroadcastInDim)
def _broadcast_in_dim(op: BroadcastInDim, x: np.ndarray) -> np.ndarray:
    shape = [d or 0 for d in op.result.type.shape or ()]
    dims = integers(op, "broadcast_dimensions") or ()
    order = sorted(range(len(dims)), key=dims.__getitem__)
    view = [1] * len(shape)
    for axis in order:
        view[dims[axis]] = x.shape[axis]
    return np.broadcast_to(x.transpose(order).reshape(view), shape)


@evaluator(Slice)
def _slice(op: Slice, x: np.ndarray) -> np.ndarray:
    bounds = [integers(op, key) or () for key in ("start_indices", "limit_indices", "strides")]
    return x[tuple(slice(*row) for row in zip(*bounds, strict=True))]


@evaluator(Concatenate)
def _concatenate(op: Concatenate, *arrays: np.ndarray) -> np.ndarray:
    return np.concatenate(arrays, op.attributes["dimension"])


@evaluator(Reverse)
def _reverse(op: Reverse, x: np.ndarray) -> np.ndarray:
    return np.flip(x, integers(op, "dimensions") or ())
