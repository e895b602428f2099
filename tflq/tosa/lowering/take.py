"""Elements of one dim by constant indices: GATHER [N, K, C] by [N, W], with that dim in the place of K."""

from __future__ import annotations

import numpy as np

from tflq.ir.core import Value, constant
from tflq.tosa.lowering.context import Tosa

__all__ = ["take"]


def take(t: Tosa, x: Value, index: np.ndarray, axis: int) -> Value:
    """x.take(index, axis); a SLICE or a TILE where that is all it is."""
    shape = list(x.type.shape or ())
    size, count = shape[axis], int(index.size)
    if (np.diff(index) == 1).all():
        start = [0] * len(shape)
        start[axis], shape[axis] = int(index[0]), count
        return t.slice(x, start, shape)
    if size == 1:
        return t.tile(x, [count if a == axis else 1 for a in range(len(shape))])
    order = [axis, *(a for a in range(len(shape)) if a != axis)]
    first = x if axis == 0 or all(shape[a] == 1 for a in range(axis)) else t.transpose(x, order)
    moved = first is not x
    rest = [shape[a] for a in order[1:]] if moved else [d for a, d in enumerate(shape) if a != axis]
    width = None if None in rest else int(np.prod([d or 0 for d in rest], dtype=np.int64))
    indices = constant(np.ascontiguousarray(index, np.int32).reshape(1, -1))
    taken = t.gather(t.reshape(first, (1, size, width)), indices)
    if not moved:
        shape[axis] = count
        return t.reshape(taken, shape)
    back = np.argsort(order).tolist()
    return t.transpose(t.reshape(taken, (count, *rest)), back)
