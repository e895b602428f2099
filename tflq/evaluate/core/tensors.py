"""Tensors of elements, their parts, and the same elements in other shapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tflq.dialects.tensor.making import Empty, FromElements, Generate, Splat
from tflq.dialects.tensor.parts import (
    GIVEN,
    Concat,
    Dim,
    Extract,
    ExtractSlice,
    Insert,
    InsertSlice,
    Pad,
    Rank,
    places,
)
from tflq.dialects.tensor.views import Bitcast, Cast, CollapseShape, ExpandShape, Reshape, groups
from tflq.evaluate.core.bodies import Body
from tflq.evaluate.held import held_dtype
from tflq.evaluate.registry import Run, evaluator, running
from tflq.ir.types import TensorType

__all__: list[str] = []


def _shape(type: TensorType, sizes: Sequence[Any]) -> tuple[int, ...]:
    """A shape whose unknown dims are of these sizes. ValueError if one is negative."""
    rest = iter(sizes)
    shape = tuple(int(next(rest)) if dim is None else dim for dim in type.shape or ())
    if min(shape, default=0) < 0:
        raise ValueError(f"a size of {shape} is negative")
    return shape


@evaluator(Empty)
def _empty(op: Empty, *sizes: np.ndarray) -> np.ndarray:
    return np.zeros(_shape(op.result.type, sizes), held_dtype(op.result.type))


@evaluator(Splat)
def _splat(op: Splat, x: np.ndarray, *sizes: np.ndarray) -> np.ndarray:
    return np.full(_shape(op.result.type, sizes), x, held_dtype(op.result.type))


@evaluator(FromElements)
def _from_elements(op: FromElements, *elements: np.ndarray) -> np.ndarray:
    made = np.array([np.asarray(e).item() for e in elements], held_dtype(op.result.type))
    return made.reshape(_shape(op.result.type, ()))


@running(Generate)
def _generate(op: Generate, sizes: list[np.ndarray], run: Run) -> list[np.ndarray]:
    shape = _shape(op.result.type, sizes)
    body = Body(op, run)
    return [np.broadcast_to(body.of(np.meshgrid(*map(np.arange, shape), indexing="ij"), shape)[0], shape)]


@evaluator(Cast)
def _cast(op: Cast, x: np.ndarray) -> np.ndarray:
    """ValueError if it is not of the shape that is said now."""
    shape = op.dest.type.shape
    if shape is not None and (
        len(shape) != x.ndim or any(d not in (None, n) for d, n in zip(shape, x.shape, strict=True))
    ):
        raise ValueError(f"tensor.cast of a tensor of shape {x.shape} to {op.dest.type}")
    return x


@evaluator(Bitcast)
def _bitcast(op: Bitcast, x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(held_dtype(op.dest.type)).reshape(x.shape)


@evaluator(Reshape)
def _reshape(op: Reshape, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return x.reshape([int(n) for n in shape])


@evaluator(CollapseShape)
def _collapse(op: CollapseShape, x: np.ndarray) -> np.ndarray:
    return x.reshape([prod(x.shape[i] for i in group) for group in groups(op) or ()])


@evaluator(ExpandShape)
def _expand(op: ExpandShape, x: np.ndarray, *sizes: np.ndarray) -> np.ndarray:
    shape = list(op.result.type.shape or ())
    rest = iter(sizes)
    for dim, group in zip(x.shape, groups(op) or (), strict=False):
        unknown = [i for i in group if shape[i] is None]
        known = prod(shape[i] or 1 for i in group)
        for i in unknown:
            shape[i] = int(next(rest)) if sizes else dim // known
    return x.reshape([dim or 0 for dim in shape])


@evaluator(Dim)
def _dim(op: Dim, x: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.asarray(x.shape[_within(int(index), x.ndim)])


@evaluator(Rank)
def _rank(op: Rank, x: np.ndarray) -> np.ndarray:
    return np.asarray(x.ndim)


def _within(index: int, size: int) -> int:
    if not 0 <= index < size:
        raise IndexError(f"index {index} is not below {size}")
    return index


def _check(indices: Sequence[np.ndarray], shape: tuple[int, ...]) -> None:
    for index, size in zip(indices, shape, strict=True):
        if ((np.asarray(index) < 0) | (np.asarray(index) >= size)).any():
            raise IndexError(f"an index of a dim of {size} is outside of it")


@evaluator(Extract)
def _extract(op: Extract, x: np.ndarray, *indices: np.ndarray) -> np.ndarray:
    _check(indices, x.shape)
    return np.asarray(x[tuple(indices)])


@evaluator(Insert)
def _insert(op: Insert, scalar: np.ndarray, dest: np.ndarray, *indices: np.ndarray) -> np.ndarray:
    _check(indices, dest.shape)
    out = dest.copy()
    out[tuple(int(i) for i in indices)] = scalar
    return out


@evaluator(Concat)
def _concat(op: Concat, *arrays: np.ndarray) -> np.ndarray:
    return np.concatenate(arrays, op.dim)


def _slices(
    op: ExtractSlice | InsertSlice, given: Sequence[np.ndarray], shape: tuple[int, ...]
) -> tuple[np.ndarray, ...]:
    """The places of a slice, one array for each dim. IndexError if one is outside."""
    rest = iter(given)
    listed = [
        [int(next(rest)) if n == GIVEN else n for n in places(op, f"static_{kind}")]
        for kind in ("offsets", "sizes", "strides")
    ]
    found = tuple(o + s * np.arange(n) for o, n, s in zip(*listed, strict=True))
    _check(found, shape)
    return np.ix_(*found)


@evaluator(ExtractSlice)
def _extract_slice(op: ExtractSlice, x: np.ndarray, *given: np.ndarray) -> np.ndarray:
    part = x[_slices(op, given, x.shape)]
    return part.reshape(_without_ones(part.shape, op.result.type))


def _without_ones(shape: tuple[int, ...], made: TensorType) -> tuple[int, ...]:
    """A shape without the dims of size 1 that a type leaves out."""
    wanted = list(made.shape or ())
    kept: list[int] = []
    for place, size in enumerate(shape):
        left = len(shape) - place
        takes = len(kept) < len(wanted) and wanted[len(kept)] in (None, size)
        if takes and (size != 1 or left <= len(wanted) - len(kept) or wanted[len(kept)] == 1):
            kept.append(size)
    return tuple(kept)


@evaluator(InsertSlice)
def _insert_slice(op: InsertSlice, source: np.ndarray, dest: np.ndarray, *given: np.ndarray) -> np.ndarray:
    out = dest.copy()
    where = _slices(op, given, dest.shape)
    out[where] = source.reshape(out[where].shape)
    return out


@running(Pad)
def _pad(op: Pad, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    x, rest = arrays[0], iter(arrays[1:])
    low, high = (
        [int(next(rest)) if n == GIVEN else n for n in places(op, key)] for key in ("static_low", "static_high")
    )
    shape = tuple(a + n + b for a, n, b in zip(low, x.shape, high, strict=True))
    grids = np.meshgrid(*map(np.arange, shape), indexing="ij")
    out = np.array(np.broadcast_to(Body(op, run).of(grids, shape)[0], shape), x.dtype)
    inside = tuple(slice(max(a, 0), a + n + min(b, 0)) for a, n, b in zip(low, x.shape, high, strict=True))
    taken = tuple(slice(max(-a, 0), n + min(b, 0)) for a, n, b in zip(low, x.shape, high, strict=True))
    out[inside] = x[taken]
    return [out]
