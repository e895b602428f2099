"""Evaluator of tables with an entry for every int16."""

from __future__ import annotations

import numpy as np

from tflq.evaluate.registry import evaluator
from tflq.ir.core import Op

__all__: list[str] = []


@evaluator("ext.table_16bit")
def _table_16bit(op: Op, x: np.ndarray, table: np.ndarray) -> np.ndarray:
    return table[x.astype(np.int32) + (1 << 15)]
