"""Sparse constants as dense arrays.

A sparse tensor stores elements level by level, in the traversal order: a dense level has every index of its dim, a
compressed one those that its segments and indices list. Block dims come after the tensor's own, and count within a
dim. Source: `SparsityParameters` in schema.fbs, tools/optimize/sparsity/format_converter.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["densified"]


def densified(stored: np.ndarray, shape: Sequence[int], sparsity: Mapping[str, Any]) -> np.ndarray:
    """The dense array of stored elements; what is not stored is 0."""
    order, blocks = sparsity["traversal_order"], sparsity["block_map"]
    coordinates: list[np.ndarray] = []
    count = 1
    for level in sparsity["dim_metadata"]:
        if level["format"] == "DENSE":
            size = level["dense_size"]
            parents, indices = np.repeat(np.arange(count), size), np.tile(np.arange(size), count)
        else:
            segments, indices = (np.asarray(level[key][1]["values"], np.int64) for key in _COMPRESSED)
            parents = np.repeat(np.arange(count), np.diff(segments))
        coordinates = [c[parents] for c in coordinates] + [indices]
        count = len(indices)
    place = [coordinates[list(order).index(axis)] for axis in range(len(shape))]
    for block, axis in enumerate(() if blocks is None else blocks):
        level = list(order).index(len(shape) + block)
        place[axis] = place[axis] * sparsity["dim_metadata"][level]["dense_size"] + coordinates[level]
    dense = np.zeros(tuple(shape), stored.dtype)
    dense[tuple(place)] = stored.reshape(-1)[:count]
    return dense


_COMPRESSED = ("array_segments", "array_indices")
