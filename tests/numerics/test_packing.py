"""Elements as files store them: several to a byte, or of a sparse tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.numerics.signless import densified, packed


def test_low_bits_come_first() -> None:
    assert packed(np.asarray([[1, -2, 7]], np.int8), 4).tolist() == [0xE1, 0x07]
    assert packed(np.asarray([1, -2, 0, -1, 1], np.int8), 2).tolist() == [0b11_00_10_01, 0b01]


def _dense(size: int) -> dict[str, Any]:
    return {"format": "DENSE", "dense_size": size}


def _compressed(segments: list[int], indices: list[int]) -> dict[str, Any]:
    words = {"array_segments": segments, "array_indices": indices}
    return {"format": "SPARSE_CSR", **{key: ("Int32Vector", {"values": values}) for key, values in words.items()}}


def test_rows_of_compressed_columns() -> None:
    sparsity = {
        "traversal_order": [0, 1],
        "block_map": None,
        "dim_metadata": [_dense(3), _compressed([0, 2, 2, 3], [0, 3, 1])],
    }
    got = densified(np.asarray([5, 6, 7], np.int8), (3, 4), sparsity)
    np.testing.assert_array_equal(got, [[5, 0, 0, 6], [0, 0, 0, 0], [0, 7, 0, 0]])


def test_columns_first() -> None:
    sparsity = {
        "traversal_order": [1, 0],
        "block_map": None,
        "dim_metadata": [_dense(2), _compressed([0, 1, 3], [2, 0, 1])],
    }
    got = densified(np.asarray([5, 6, 7], np.int16), (3, 2), sparsity)
    np.testing.assert_array_equal(got, [[0, 6], [0, 7], [5, 0]])


def test_blocks() -> None:
    """The matrix of the schema's own example: 2x2 blocks, two of four stored."""
    sparsity = {
        "traversal_order": [0, 1, 2, 3],
        "block_map": [0, 1],
        "dim_metadata": [_dense(2), _compressed([0, 1, 2], [1, 0]), _dense(2), _dense(2)],
    }
    got = densified(np.arange(1, 9, dtype=np.int8), (4, 4), sparsity)
    np.testing.assert_array_equal(got, [[0, 0, 1, 2], [0, 0, 3, 4], [5, 6, 0, 0], [7, 8, 0, 0]])
