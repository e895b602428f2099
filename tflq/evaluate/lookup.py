"""Evaluator of tables with an entry for every int16."""

from __future__ import annotations

import numpy as np

from tflq.dialects.ext.tables import Table16Bit
from tflq.evaluate.registry import evaluator

__all__: list[str] = []


@evaluator(Table16Bit)
def _table_16bit(op: Table16Bit, x: np.ndarray, table: np.ndarray) -> np.ndarray:
    return table[x.astype(np.int32) + (1 << 15)]
