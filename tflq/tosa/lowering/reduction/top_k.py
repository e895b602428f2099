"""TOPK_V2: in each round the greatest element that is left, of equal ones the first.

The kernel (topk_v2.cc, TopContainer) sorts by value downwards, then by index upwards. A flag per element says whether
it is left, so that elements at the low end of the type are told from those that are taken.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.reduction import TopKV2
from tflq.dialects.tosa.bits import LogicalAnd, LogicalNot
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import i32
from tflq.tosa.lowering.known import constant_of, dims_of
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.shaping import joined
from tflq.tosa.lowering.wide import narrow

__all__: list[str] = []

_MOST_ROUNDS = 256


@lowering(TopKV2)
def top_k(op: TopKV2, t: Tosa) -> list[Value]:
    """Values and their indices."""
    x = narrow(op.input, t)
    k = int(constant_of(op.k, "k").reshape(-1)[0])
    storage, rank = x.type.storage, len(dims_of(x))
    size = dims_of(x)[-1]
    if size is None or storage.bits > 32 or op.indices.type.storage != i32:
        raise Refused("TOPK_V2 over a dim that is not known, or of 64 bits, has no form in TOSA")
    if not 0 < k <= _MOST_ROUNDS:
        raise Refused(f"TOPK_V2 of {k} elements has no form in TOSA; of 1 to {_MOST_ROUNDS} it has")
    if storage.is_float:
        t.need("pro_fp", "TOPK_V2 in float")
        wide, lowest = x, -np.inf
    else:
        wide, lowest = t.cast(x, i32), np.iinfo(np.int32).min
    one = (1,) * rank
    places = t.constant(np.arange(size).reshape(*one[1:], size))
    bottom, beyond = t.constant(np.full(one, lowest), wide.type.storage), t.constant(np.full(one, size))
    left: Value | None = None
    values, indices = [], []
    for turn in range(k):
        rest = wide if left is None else t.select(left, wide, bottom)
        best = t.reduce("max", rest, rank - 1)
        hit = t.equal(rest, best)
        if left is not None:
            hit = t.emit(LogicalAnd, [hit, left])
        first = t.reduce("min", t.select(hit, places, beyond), rank - 1)
        values.append(best)
        indices.append(first)
        if turn + 1 < k:
            others = t.emit(LogicalNot, [t.equal(places, first)])
            left = others if left is None else t.emit(LogicalAnd, [left, others])
    return [t.cast(joined(t, values, rank - 1), storage), joined(t, indices, rank - 1)]
