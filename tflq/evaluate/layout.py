"""Evaluators of the tosa ops that pad, repeat, turn round and pick elements.

GATHER and SCATTER are of rows, per batch: values [N, K, C], indices [N, W], rows [N, W, C].
"""

from __future__ import annotations

import numpy as np

from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op

__all__: list[str] = []


@evaluator("tosa.pad")
def _pad(op: Op, x: np.ndarray) -> np.ndarray:
    amounts = np.reshape(op.attributes["padding"], (-1, 2))
    if not amounts.size:
        return x
    return np.pad(x, amounts, constant_values=np.asarray(op.attributes["pad_const"]).astype(x.dtype))


@evaluator("tosa.tile")
def _tile(op: Op, x: np.ndarray) -> np.ndarray:
    return np.tile(x, op.attributes["multiples"])


@evaluator("tosa.reverse")
def _reverse(op: Op, x: np.ndarray) -> np.ndarray:
    return np.flip(x, op.attributes["axis"])


@evaluator("tosa.gather")
def _gather(op: Op, values: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return values[np.arange(len(values))[:, None], indices]


@evaluator("tosa.scatter")
def _scatter(op: Op, values: np.ndarray, indices: np.ndarray, rows: np.ndarray) -> np.ndarray:
    out = values.copy()
    out[np.arange(len(out))[:, None], indices] = rows
    return out
