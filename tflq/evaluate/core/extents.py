"""Shapes as arrays of sizes."""

from __future__ import annotations

import numpy as np

from tflq.dialects.shape.extents import (
    Broadcast,
    Concat,
    ConstShape,
    Dim,
    GetExtent,
    NumElements,
    Rank,
    ShapeOf,
    SplitAt,
)
from tflq.evaluate.registry import evaluator

__all__: list[str] = []


@evaluator(ConstShape)
def _const_shape(op: ConstShape) -> np.ndarray:
    return np.asarray(op.shape, np.int64)


@evaluator(ShapeOf)
def _shape_of(op: ShapeOf, x: np.ndarray) -> np.ndarray:
    return np.array(x.shape, np.int64)


@evaluator(NumElements)
def _num_elements(op: NumElements, sizes: np.ndarray) -> np.ndarray:
    return np.asarray(np.prod(sizes, dtype=np.int64))


@evaluator(SplitAt)
def _split_at(op: SplitAt, sizes: np.ndarray, index: np.ndarray) -> list[np.ndarray]:
    if not -sizes.size <= int(index) <= sizes.size:
        raise IndexError(f"a shape of {sizes.size} dims cannot be split at {int(index)}")
    return [sizes[: int(index)], sizes[int(index) :]]


@evaluator(Concat)
def _concat(op: Concat, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.concatenate([a, b])


@evaluator(Broadcast)
def _broadcast(op: Broadcast, *shapes: np.ndarray) -> np.ndarray:
    return np.array(np.broadcast_shapes(*(tuple(map(int, shape)) for shape in shapes)), np.int64)


@evaluator(GetExtent)
def _get_extent(op: GetExtent, sizes: np.ndarray, dim: np.ndarray) -> np.ndarray:
    return _size(tuple(sizes), int(dim))


@evaluator(Dim)
def _dim(op: Dim, x: np.ndarray, index: np.ndarray) -> np.ndarray:
    return _size(x.shape, int(index))


def _size(sizes: tuple[int, ...], index: int) -> np.ndarray:
    if not 0 <= index < len(sizes):
        raise IndexError(f"a shape of {len(sizes)} dims has no dim {index}")
    return np.asarray(sizes[index])


@evaluator(Rank)
def _rank(op: Rank, sizes: np.ndarray) -> np.ndarray:
    return np.asarray(sizes.size)
