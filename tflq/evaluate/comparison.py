"""Evaluators of comparisons, and of what is chosen by them."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl import comparison as tfl
from tflq.dialects.tosa import comparison as tosa
from tflq.evaluate.registry import evaluator, of_arrays

__all__: list[str] = []


evaluator(tosa.Equal, tfl.Equal)(of_arrays(np.equal))
evaluator(tfl.NotEqual)(of_arrays(np.not_equal))
evaluator(tosa.Greater, tfl.Greater)(of_arrays(np.greater))
evaluator(tosa.GreaterEqual, tfl.GreaterEqual)(of_arrays(np.greater_equal))
evaluator(tfl.Less)(of_arrays(np.less))
evaluator(tfl.LessEqual)(of_arrays(np.less_equal))
evaluator(tfl.LogicalAnd)(of_arrays(np.logical_and))
evaluator(tfl.LogicalOr)(of_arrays(np.logical_or))
evaluator(tfl.LogicalNot)(of_arrays(np.logical_not))
evaluator(tosa.Select, tfl.SelectV2)(of_arrays(np.where))


@evaluator(tfl.Select)
def _select_rows(op: tfl.Select, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A condition of rank 1 chooses whole rows."""
    return np.where(condition.reshape((*condition.shape, *(1,) * (a.ndim - condition.ndim))), a, b)
