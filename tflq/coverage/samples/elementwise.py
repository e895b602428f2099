"""Operators of one element each, comparisons, reductions and normalizations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.coverage.samples.entry import Entry, Plain, condition, entry, indices, ints
from tflq.ir.types import i64

__all__ = ["ENTRIES"]

_X = (2, 3)
_UNARY = (
    "abs ceil cos elu exp floor hard_swish l2_normalization log log_softmax logistic neg relu relu6 relu_0_to_1 "
    "relu_n1_to_1 round rsqrt sign sin sqrt square tanh zeros_like"
).split()
_BINARY = "atan2 floor_div floor_mod maximum minimum pow squared_difference".split()
_ACTIVATED = "add div mul sub".split()
_COMPARISONS = "equal greater greater_equal less less_equal not_equal".split()
_REDUCTIONS = "mean reduce_max reduce_min reduce_prod sum".split()
_RELU = {"fused RELU": {"fused_activation_function": "RELU"}}

ENTRIES: Mapping[str, Entry] = {
    **dict.fromkeys(_UNARY, entry([_X], [_X])),
    "fake_quant": entry([_X], [_X], min=-1.0, max=1.0, num_bits=8),
    "gelu": entry([_X], [_X], {"approximate": {"approximate": True}}),
    "leaky_relu": entry([_X], [_X], alpha=0.25),
    "prelu": entry([_X, (3,)], [_X]),
    "softmax": entry([_X], [_X], {"beta 0.5": {"beta": 0.5}}, beta=1.0),
    **dict.fromkeys(_BINARY, entry([_X, _X], [_X])),
    **dict.fromkeys(_ACTIVATED, entry([_X, _X], [_X], _RELU)),
    **dict.fromkeys(("bitwise_xor", "right_shift"), entry([_X, _X], [_X])),
    **dict.fromkeys(_COMPARISONS, entry([_X, _X], [condition(*_X)])),
    "add_n": entry([_X, _X], [_X]),
    "select": entry([condition(*_X), _X, _X], [_X]),
    "select_v2": entry([condition(2, 1), _X, _X], [_X]),
    "bitcast": replace(entry([_X], [_X]), mixed=False),
    "bucketize": entry([_X], [indices(*_X)], boundaries=np.asarray([-1.0, 0.0, 1.0], np.float32)),
    **dict.fromkeys(_REDUCTIONS, entry([_X, ints([1])], [(2,)])),
    "cumsum": entry([_X, ints(1)], [_X], {"exclusive, reverse": {"exclusive": True, "reverse": True}}),
    **dict.fromkeys(
        ("arg_max", "arg_min"),
        entry([_X, ints(1)], [indices(2)], output_type="INT32"),
    ),
    "topk_v2": entry([_X, ints(2)], [(2, 2), indices(2, 2)]),
    "unique": entry([(6,)], [(6,), indices(6)], idx_out_type="INT32"),
    "where": entry([_X], [Plain((6, 2), i64)]),
    "shape": entry([_X], [indices(2)], out_type="INT32"),
    "rank": entry([_X], [indices()]),
    "batch_matmul": entry([(2, 3, 4), (2, 4, 5)], [(2, 3, 5)]),
    "segment_sum": entry([_X, ints([0, 0])], [(1, 3)]),
    **{f"unsorted_segment_{kind}": entry([_X, ints([1, 0]), ints(2)], [_X]) for kind in ("max", "min", "prod", "sum")},
}
