"""Pieces of data movement that lowerings of many families use: reshape, join, cut, take.

CONCAT takes 64 tensors at most at level 8k (MAX_TENSOR_LIST_SIZE), so more are joined in groups. It takes int16 only
with the extension of that name; without it the values are joined as int32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.errors import Refused
from tflq.ir.core import Value, constant
from tflq.ir.types import ScalarType, Shape, i16, i32, i64
from tflq.tosa.lowering.known import dims_of
from tflq.tosa.lowering.registry import Tosa

__all__ = ["joined", "kept_storage", "part", "reshaped", "take"]

_MOST = 64


def reshaped(t: Tosa, x: Value, shape: Shape) -> Value:
    """RESHAPE, which infers one dim at most."""
    if shape is None or sum(d is None for d in shape) > 1:
        raise Refused("the shape of the result has more than one dim that is not known, and TOSA infers only one")
    return t.reshape(x, shape)


def joined(t: Tosa, parts: Sequence[Value], axis: int) -> Value:
    """CONCAT of tensors, those without elements left out; none if only one is left."""
    parts = [p for p in parts if dims_of(p)[axis] != 0] or list(parts[:1])
    if parts[0].type.storage == i16 and len(parts) > 1 and not t.target.has("int16"):
        return t.cast(joined(t, [t.cast(p, i32) for p in parts], axis), i16)
    while len(parts) > _MOST:
        parts = [_concat(t, parts[i : i + _MOST], axis) for i in range(0, len(parts), _MOST)]
    return _concat(t, parts, axis)


def _concat(t: Tosa, parts: Sequence[Value], axis: int) -> Value:
    if len(parts) == 1:
        return parts[0]
    shapes = [dims_of(p) for p in parts]
    dims = [next((d for d in column if d is not None), None) for column in zip(*shapes, strict=True)]
    along = [s[axis] for s in shapes]
    dims[axis] = None if None in along else sum(d or 0 for d in along)
    return t.concat(parts, axis)


def part(t: Tosa, x: Value, axis: int, start: int, size: int) -> Value:
    """SLICE along one axis."""
    shape = dims_of(x)
    starts, sizes = [0] * len(shape), list(shape)
    starts[axis], sizes[axis] = start, size
    return t.slice(x, starts, sizes)


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


def kept_storage(t: Tosa, value: Value) -> ScalarType:
    """The element type of what a value becomes: int32 for int64, which TOSA lacks."""
    storage = t.storage(value)
    return i32 if storage == i64 else storage
