"""Array helpers."""

from __future__ import annotations

import numpy as np

__all__ = ["distinct"]


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted distinct elements of an array, and for each element (flattened) its index among them.

    As numpy.unique with its inverse, which imports numpy.ma (20 ms) when it is first called.
    """
    flat = values.reshape(-1)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    first = np.ones(flat.shape, bool)
    first[1:] = ordered[1:] != ordered[:-1]
    inverse = np.empty(flat.shape, np.intp)
    inverse[order] = np.cumsum(first) - 1
    return ordered[first], inverse
