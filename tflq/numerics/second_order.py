"""Weights that are rounded so that products, not the weights themselves, are near: by second moments of what they are
multiplied with.

Of a row of weights w that is stored as numbers q of scale s, and inputs x with M = Σ x xᵀ, the products are off by
(w - s q)ᵀ M (w - s q) in all. Columns are rounded in order, and what each is off by is made up for by those behind it:

    U = upper Cholesky factor of (M + λ I)⁻¹, UᵀU of it; λ = 0.01 · mean of the diagonal of M
    q_i = round half even(w_i / s), clamped;  e = (w_i - s q_i) / U_ii;  w_j -= e U_ij for j > i

Source: "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers" (arXiv 2210.17323),
algorithm 1.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.numerics.weight_ranges import stored_weights

DAMPING: Final = 0.01
_BLOCK: Final = 128
"""Columns after which the ones behind them are corrected at once."""


def compensated_weights(weights: np.ndarray, scales: np.ndarray, moments: np.ndarray, bits: int) -> np.ndarray:
    """Weights as int8, each column made up for by those behind it. weights: [rows, columns]. scales: [rows, 1].
    moments: [columns, columns], float64. bits: 4 or 8."""
    inverse = _factor(moments)
    if inverse is None:
        return stored_weights(weights, scales, bits)
    left = weights.astype(np.float64)
    stored = np.empty(weights.shape, np.int8)
    for start in range(0, weights.shape[1], _BLOCK):
        end = min(start + _BLOCK, weights.shape[1])
        errors = np.zeros((len(weights), end - start))
        for column in range(start, end):
            each = stored_weights(left[:, column, None], scales, bits)
            error = (left[:, column, None] - each * scales.astype(np.float64)) / inverse[column, column]
            left[:, column:end] -= error * inverse[column, column:end]
            errors[:, column - start], stored[:, column] = error[:, 0], each[:, 0]
        left[:, end:] -= errors @ inverse[start:end, end:]
    return stored


def error_of_products(differences: np.ndarray, moments: np.ndarray) -> float:
    """Σ of the squared errors of all products whose weights differ by [rows, columns] from the right ones."""
    apart = differences.astype(np.float64)
    return float(((apart @ moments) * apart).sum())


def _factor(moments: np.ndarray) -> np.ndarray | None:
    """U of the inverse; None if nothing was seen but zeros."""
    damping = DAMPING * float(np.trace(moments)) / len(moments)
    if not damping > 0:
        return None
    inverse = np.linalg.inv(moments + damping * np.eye(len(moments)))
    return np.linalg.cholesky((inverse + inverse.T) / 2).T
