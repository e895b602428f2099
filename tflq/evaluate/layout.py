"""Evaluators of the tosa ops that pad, repeat, turn round and pick elements.

GATHER and SCATTER are of rows, per batch: values [N, K, C], indices [N, W], rows [N, W, C].
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.indexing import Gather, Scatter
from tflq.dialects.tosa.movement import Pad, Reverse, Tile
from tflq.evaluate.registry import evaluator

__all__: list[str] = []


@evaluator(Pad)
def _pad(op: Pad, x: np.ndarray) -> np.ndarray:
    amounts = np.reshape(op.padding, (-1, 2))
    if not amounts.size:
        return x
    return np.pad(x, amounts, constant_values=np.asarray(op.pad_const).astype(x.dtype))


@evaluator(Tile)
def _tile(op: Tile, x: np.ndarray) -> np.ndarray:
    return np.tile(x, op.multiples)


@evaluator(Reverse)
def _reverse(op: Reverse, x: np.ndarray) -> np.ndarray:
    return np.flip(x, op.axis)


@evaluator(Gather)
def _gather(op: Gather, values: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return values[np.arange(len(values))[:, None], indices]


@evaluator(Scatter)
def _scatter(op: Scatter, values: np.ndarray, indices: np.ndarray, rows: np.ndarray) -> np.ndarray:
    out = values.copy()
    out[np.arange(len(out))[:, None], indices] = rows
    return out
