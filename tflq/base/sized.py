"""Arrays whose size a model states: no larger than a bound, so that a small file cannot ask for much memory.

Each function is numpy's of that name, and raises `TooLarge` where the result would have more than `MOST` elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tflq.base.errors import Refused

MOST: Final = 1 << 23
"""Elements of an array that a conversion makes because of a shape or a count: 64 MiB of int64."""
MOST_PARTS: Final = 1 << 12
"""Operators that stand for one operator because of a count: windows, steps, rows."""


class TooLarge(Refused):
    """An operator has no form of bounded size. Where a rule meets it, the next rule is tried."""


def need_few(elements: int, most: int = MOST, what: str = "a constant of {} elements") -> None:
    """TooLarge if there are more than that."""
    if elements > most:
        subject = what.format(f"{elements:,}")
        raise TooLarge(f"its shapes or counts ask for {subject}, and tflq makes {most:,} at most", "state smaller ones")


def need_few_parts(count: int) -> None:
    """TooLarge if an operator would become too many."""
    need_few(count, MOST_PARTS, "{} operators in its place")


def _count(shape: int | Sequence[int]) -> int:
    return shape if isinstance(shape, int) else math.prod(map(int, shape))


def full(shape: int | Sequence[int], fill: Any, dtype: Any = None) -> np.ndarray:
    need_few(_count(shape))
    return np.full(shape, fill, dtype)


def zeros(shape: int | Sequence[int], dtype: Any = None) -> np.ndarray:
    need_few(_count(shape))
    return np.zeros(shape, dtype)


def ones(shape: int | Sequence[int], dtype: Any = None) -> np.ndarray:
    need_few(_count(shape))
    return np.ones(shape, dtype)


def arange(*ends: int, dtype: Any = None) -> np.ndarray:
    need_few(max(len(range(*ends)), 0))
    return np.arange(*ends, dtype=dtype)


def eye(rows: int, columns: int | None = None, *, dtype: Any = float) -> np.ndarray:
    need_few(rows * (rows if columns is None else columns))
    return np.eye(rows, columns, dtype=dtype)


def tile(array: np.ndarray, repeats: int | Sequence[int]) -> np.ndarray:
    need_few(array.size * _count(repeats))
    return np.tile(array, repeats)
