"""Operators that move elements: reshaped, sliced, gathered, padded, filled."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.coverage.samples.entry import Entry, Plain, entry, indices, ints
from tflq.ir.types import ui8

__all__ = ["ENTRIES"]

_X = (2, 3)
_IMAGE = (1, 4, 4, 4)
_HALF = np.asarray(0.5, np.float32)

ENTRIES: Mapping[str, Entry] = {
    "batch_to_space_nd": entry([(4, 2, 2, 2), ints(2, 2), ints([[0, 0], [0, 0]])], [(1, 4, 4, 2)]),
    "broadcast_to": entry([(1, 3), ints(2, 3)], [_X]),
    "concatenation": entry([_X, _X], [(2, 6)], axis=1),
    "depth_to_space": entry([(1, 2, 2, 8)], [(1, 4, 4, 2)], block_size=2),
    "dilate": entry([_X, ints(2, 1), ()], [(3, 3)]),
    "dynamic_update_slice": entry([_X, (1, 3), ints(0, 0)], [_X]),
    "embedding_lookup": entry([indices(2), _X], [_X]),
    "expand_dims": entry([_X, ints(0)], [(1, 2, 3)]),
    "fill": entry([ints(2, 3), ()], [_X]),
    "gather": entry([_X, ints([1])], [(1, 3)], axis=0, batch_dims=0),
    "gather_nd": entry([_X, ints([[1]])], [(1, 3)]),
    "hashtable_lookup": entry([indices(2), indices(2), _X], [_X, Plain((2,), ui8)]),
    "matrix_diag": entry([_X], [(2, 3, 3)]),
    "matrix_set_diag": entry([_X, (2,)], [_X]),
    "mirror_pad": entry([_X, ints([[1, 1], [1, 1]])], [(4, 5)], {"symmetric": {"mode": "SYMMETRIC"}}, mode="REFLECT"),
    "one_hot": entry([indices(2), ints(3), (), ()], [_X], axis=1),
    "pack": entry([_X, _X], [(2, 2, 3)], values_count=2, axis=0),
    "pad": entry([_X, ints([[1, 1], [0, 0]])], [(4, 3)]),
    "padv2": entry([_X, ints([[1, 1], [0, 0]]), ()], [(4, 3)]),
    "reshape": entry([_X, ints(3, 2)], [(3, 2)], new_shape=np.asarray([3, 2], np.int32)),
    "resize_bilinear": entry(
        [_IMAGE, ints(8, 8)],
        [(1, 8, 8, 4)],
        {"aligned corners": {"align_corners": True}, "half-pixel centers": {"half_pixel_centers": True}},
    ),
    "resize_nearest_neighbor": entry(
        [_IMAGE, ints(8, 8)],
        [(1, 8, 8, 4)],
        {"aligned corners": {"align_corners": True}, "half-pixel centers": {"half_pixel_centers": True}},
    ),
    "reverse_sequence": entry([_X, ints(1, 2)], [_X], seq_dim=1, batch_dim=0),
    "reverse_v2": entry([_X, ints([1])], [_X]),
    "scatter_nd": entry([ints([[1]]), (1, 3), ints(2, 3)], [_X]),
    "slice": entry([_X, ints(1, 0), ints(1, 3)], [(1, 3)]),
    "space_to_batch_nd": entry([(1, 4, 4, 2), ints(2, 2), ints([[0, 0], [0, 0]])], [(4, 2, 2, 2)]),
    "space_to_depth": entry([(1, 4, 4, 2)], [(1, 2, 2, 8)], block_size=2),
    "sparse_to_dense": entry([ints([[0, 1], [1, 2]]), ints(2, 3), (2,), ()], [_X]),
    "split": entry([ints(1), (2, 4)], [(2, 2), (2, 2)], num_splits=2),
    "split_v": entry([(2, 4), ints(1, 3), ints(1)], [(2, 1), (2, 3)], num_splits=2),
    "squeeze": entry([(1, 3)], [(3,)], squeeze_dims=np.asarray([0], np.int32)),
    "strided_slice": entry([_X, ints(0, 2), ints(2, -4), ints(1, -2)], [(2, 2)]),
    "tile": entry([_X, ints(2, 1)], [(4, 3)]),
    "transpose": entry([_X, ints(1, 0)], [(3, 2)]),
    "unpack": entry([_X], [(3,), (3,)], num=2, axis=0),
    **{
        f"non_max_suppression_{version}": entry(
            [(4, 4), (4,), ints(2), _HALF, _HALF, *more],
            [indices(2), *scores, indices()],
        )
        for version, more, scores in (("v4", (), ()), ("v5", (_HALF,), ((2,),)))
    },
}
