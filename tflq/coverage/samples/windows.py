"""Operators that slide a window without weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.coverage.samples.entry import Entry, entry

__all__ = ["ENTRIES"]

_IMAGE = (1, 4, 4, 4)
_POOL = {"padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
_OTHERS = {"padding SAME": {"padding": "SAME"}, "fused RELU": {"fused_activation_function": "RELU"}}


def _longs(*data: int) -> np.ndarray:
    return np.asarray(data, np.int64)


ENTRIES: Mapping[str, Entry] = {
    **dict.fromkeys(
        ("average_pool_2d", "l2_pool_2d", "max_pool_2d"), entry([_IMAGE], [(1, 2, 2, 4)], _OTHERS, **_POOL)
    ),
    "local_response_normalization": entry([_IMAGE], [_IMAGE], radius=1, bias=1.0, alpha=1.0, beta=0.5),
    "reduce_window": entry(
        [(4, 4), (), _longs(2, 2), _longs(2, 2), _longs(1, 1)],
        [(2, 2)],
        {kind.lower(): {"reduce_function": kind} for kind in ("MUL", "MINIMUM", "MAXIMUM")},
        reduce_function="ADD",
    ),
}
