"""Evaluators of ext tables: an entry for every int16, or for every pair of two 8-bit integers."""

from __future__ import annotations

import numpy as np

from tflq.dialects.ext.tables import Table2D, Table16Bit
from tflq.evaluate.registry import evaluator

__all__: list[str] = []


@evaluator(Table16Bit)
def _table_16bit(op: Table16Bit, x: np.ndarray, table: np.ndarray) -> np.ndarray:
    return table[x.astype(np.int32) + (1 << 15)]


@evaluator(Table2D)
def _table_2d(op: Table2D, x: np.ndarray, y: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Entry 256 (x - minimum of x's type) + (y - minimum of y's type)."""
    rows, columns = (
        v.astype(np.int32) - operand.type.storage.minimum for v, operand in ((x, op.input1), (y, op.input2))
    )
    return entries[rows * 256 + columns]
