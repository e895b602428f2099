"""Evaluator of the matrix product: numbers less their zero points, multiplied and summed.

Products are summed in float64, exact for integers while the sum of their magnitudes stays below 2^53; the result wraps
in i32. Floats are rounded once.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.matmul import MatMul
from tflq.evaluate.registry import evaluator

__all__: list[str] = []


@evaluator(MatMul)
def _matmul(op: MatMul, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    left, right = a.astype(np.float64) - op.a_zp, b.astype(np.float64) - op.b_zp
    product, dtype = np.matmul(left, right), op.result.type.storage.dtype
    return product.astype(dtype) if dtype.kind == "f" else product.astype(np.int64).astype(dtype)
