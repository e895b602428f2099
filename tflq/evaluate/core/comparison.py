"""Comparison and choice of `arith`."""

from __future__ import annotations

import numpy as np

from tflq.dialects.arith.comparison import COMPARE_FLOAT, COMPARE_INTEGER, CmpF, CmpI, Select
from tflq.evaluate.core.numbers import floats, integers, width
from tflq.evaluate.registry import evaluator
from tflq.numerics.comparison import COMPARISONS
from tflq.numerics.signless import unsigned

__all__: list[str] = []


@evaluator(CmpI)
def _integers(op: CmpI, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    kind, word = op.lhs.type, COMPARE_INTEGER[op.predicate]
    x, y = integers(kind, a), integers(kind, b)
    if word[0] == "u":
        x, y = unsigned(x, width(kind)), unsigned(y, width(kind))
    return np.asarray(COMPARISONS[word[-2:].upper()](x, y))


@evaluator(CmpF)
def _floats(op: CmpF, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    kind, word = op.lhs.type, COMPARE_FLOAT[op.predicate]
    x, y = floats(kind, a), floats(kind, b)
    if word in ("true", "false"):
        return np.full(np.broadcast_shapes(np.shape(x), np.shape(y)), word == "true")
    unordered = np.isnan(x) | np.isnan(y)
    if word in ("ord", "uno"):
        return np.asarray(unordered == (word == "uno"))
    holds = COMPARISONS[word[1:].upper()](x, y)
    return np.asarray(holds | unordered if word[0] == "u" else holds & ~unordered)


@evaluator(Select)
def _select(op: Select, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(condition, a, b)
