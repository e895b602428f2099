"""Evaluators of what picks elements by index.

TOSA's GATHER and SCATTER are of rows, per batch: values [N, K, C], indices [N, W], rows [N, W, C].
Sources of TFLite's: kernels/gather.cc, gather_nd.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl import indexing as tfl
from tflq.dialects.tosa.indexing import Gather, Scatter, Table
from tflq.evaluate.registry import evaluator

__all__: list[str] = []


@evaluator(Table)
def _table(op: Table, x: np.ndarray, table: np.ndarray) -> np.ndarray:
    index = x.astype(np.int32) - op.input.type.storage.minimum
    if op.input.type.storage.bits == 8:
        return table[index]
    base, wide = index >> 7, table.astype(np.int32)
    return (wide[base] << 7) + (wide[base + 1] - wide[base]) * (index & 0x7F)


@evaluator(Gather)
def _gather(op: Gather, values: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return values[np.arange(len(values))[:, None], indices]


@evaluator(Scatter)
def _scatter(op: Scatter, values: np.ndarray, indices: np.ndarray, rows: np.ndarray) -> np.ndarray:
    out = values.copy()
    out[np.arange(len(out))[:, None], indices] = rows
    return out


@evaluator(tfl.Gather)
def _gather_axis(op: tfl.Gather, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """x[batch, before axis, indices[batch, ...], after axis]."""
    axis, batch = op.axis % x.ndim, op.batch_dims
    if batch < 0:
        batch += indices.ndim
    if not batch:
        return x.take(indices, axis)
    rows = x.reshape(-1, *x.shape[batch:])
    picks = indices.reshape(len(rows), *indices.shape[batch:])
    taken = np.stack([row.take(pick, axis - batch) for row, pick in zip(rows, picks, strict=True)])
    return taken.reshape(*x.shape[:batch], *taken.shape[1:])


@evaluator(tfl.GatherND)
def _gather_nd(op: tfl.GatherND, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return x[tuple(np.moveaxis(indices, -1, 0))]
