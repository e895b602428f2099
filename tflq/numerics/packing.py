"""Elements of constants as files store them: several to a byte if they have fewer than 8 bits, those that are not 0
alone if the tensor is sparse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_COMPRESSED = ("array_segments", "array_indices")


def packed(array: np.ndarray, bits: int) -> np.ndarray:
    """The bytes of integers of 4 or 2 bits, low bits first, uint8; the last byte is filled with zeros."""
    per = 8 // bits
    fields = np.zeros(-(-array.size // per) * per, np.uint8)
    fields[: array.size] = array.reshape(-1).astype(np.uint8) & np.uint8((1 << bits) - 1)
    shifts = np.arange(per, dtype=np.uint8) * np.uint8(bits)
    return np.bitwise_or.reduce(fields.reshape(-1, per) << shifts, axis=1)


def unpacked(data: np.ndarray, bits: int, shape: Sequence[int], *, signed: bool) -> np.ndarray:
    """The counterpart of `packed`: int8, sign extended, or uint8, in a shape."""
    per = 8 // bits
    count = int(np.prod(shape, dtype=np.int64))
    shifts = np.arange(per, dtype=np.uint8) * bits
    fields = (data[:, None] >> shifts) & np.uint8((1 << bits) - 1)
    flat = fields.reshape(-1)[:count].reshape(shape)
    if not signed:
        return flat
    up = np.uint8(8 - bits)
    return (flat << up).view(np.int8) >> up.astype(np.int8)


def densified(stored: np.ndarray, shape: Sequence[int], sparsity: Mapping[str, Any]) -> np.ndarray:
    """The dense array of a sparse tensor; elements that are not stored are 0.

    A sparse tensor stores elements level by level, in the traversal order: a dense level has every index of its dim, a
    compressed one those that its segments and indices list. Block dims come after the tensor's own, and count within a
    dim. Source: `SparsityParameters` in schema.fbs, tools/optimize/sparsity/format_converter.cc.
    """
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
