"""Bodies of ops that are computed at many points: all points at once, on arrays of a shape.

What a body computes on are scalars, so each of its ops computes element by element. It may use what is computed outside
of it, and take elements of tensors from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tflq.dialects.func import Call, CallIndirect, Constant
from tflq.dialects.linalg import Generic, Index, Yield
from tflq.dialects.shape import Broadcast, Concat, ConstShape, GetExtent, NumElements, ShapeOf, SplitAt
from tflq.dialects.shape import Dim as ShapeDim
from tflq.dialects.shape import Rank as ShapeRank
from tflq.dialects.tensor import (
    GIVEN,
    Bitcast,
    Cast,
    CollapseShape,
    Dim,
    Empty,
    ExpandShape,
    Extract,
    ExtractSlice,
    FromElements,
    Generate,
    Insert,
    InsertSlice,
    Pad,
    Rank,
    Reshape,
    Splat,
    groups,
    places,
)
from tflq.dialects.tensor import Concat as TensorConcat
from tflq.dialects.tensor import Yield as TensorYield
from tflq.evaluate.registry import Run, evaluate_one, evaluator, held_array, held_dtype, running
from tflq.ir.attributes import applied, dim_of
from tflq.ir.core import Op, Value
from tflq.ir.types import BareType, TensorType


class Body:
    """The one block of an op. `run`: it knows the values outside."""

    def __init__(self, op: Op, run: Run) -> None:
        self._block = op.regions[0].block
        self._run = run
        self._outer = run.scope

    def of(
        self, arguments: Sequence[np.ndarray], shape: tuple[int, ...], points: Sequence[np.ndarray] = ()
    ) -> list[np.ndarray]:
        """What it yields of arguments at points whose places are `points`: arrays that broadcast to the shape.
        NotImplementedError names an op that cannot be computed so."""
        env = dict(zip(self._block.arguments, arguments, strict=True))
        for op in self._block.ops:
            given = [self._array(v, env) for v in op.operands if v is not None]
            if isinstance(op, (Yield, TensorYield)):
                return given
            if isinstance(op, Index):
                made = [np.broadcast_to(points[op.dim], shape)]
            elif _of_scalars(op):
                made = evaluate_one(op, given, self._run)
            else:
                raise NotImplementedError(f"{op.name} inside of a body is not evaluated")
            env.update(zip(op.results, made, strict=True))
        raise NotImplementedError("a body does not end in a yield")

    def _array(self, value: Value, env: dict[Value, np.ndarray]) -> np.ndarray:
        for known in (env, self._outer):
            if value in known:
                return known[value]
        return held_array(value)


def _of_scalars(op: Op) -> bool:
    """Whether an op computes on scalars, or takes one from a tensor."""
    if op.regions:
        return False
    values = op.results if isinstance(op, (Dim, Extract, Rank)) else list(op.tensors)
    return all(isinstance(v.type, BareType) for v in values)


# Calls of functions of the module; a function as a value is its name.


@running(Call)
def _call(op: Call, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return run.call_named(str(op.callee), arrays)


@running(CallIndirect)
def _call_indirect(op: CallIndirect, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return run.call_named(str(arrays[0].item()), arrays[1:])


@evaluator(Constant)
def _constant(op: Constant) -> np.ndarray:
    return np.array(str(op.value), object)


# Shapes as arrays of sizes.


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


@evaluator(ShapeDim)
def _dim(op: ShapeDim, x: np.ndarray, index: np.ndarray) -> np.ndarray:
    return _size(x.shape, int(index))


def _size(sizes: tuple[int, ...], index: int) -> np.ndarray:
    if not 0 <= index < len(sizes):
        raise IndexError(f"a shape of {len(sizes)} dims has no dim {index}")
    return np.asarray(sizes[index])


@evaluator(ShapeRank)
def _rank(op: ShapeRank, sizes: np.ndarray) -> np.ndarray:
    return np.asarray(sizes.size)


# linalg.generic: its body on whole arrays along the parallel iterators, in order along those of reductions.


@running(Generic)
def _generic(op: Generic, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    sizes, kinds = _sizes(op, arrays), op.iterators or ()
    reduced = [axis for axis, kind in enumerate(kinds) if kind != "parallel"]
    shape = tuple(1 if axis in reduced else size for axis, size in enumerate(sizes))
    inputs, outs = arrays[: len(op.inputs)], [np.array(a) for a in arrays[len(op.inputs) :]]
    body = Body(op, run)
    for point in np.ndindex(*(sizes[axis] for axis in reduced)):
        places = _places(shape, dict(zip(reduced, point, strict=True)))
        maps = [tuple(_grid(p, shape) for p in applied(where, places)) for where in op.indexing_maps]
        given = [a[where] for a, where in zip((*inputs, *outs), maps, strict=True)]
        for out, where, made in zip(outs, maps[len(inputs) :], body.of(given, shape, places), strict=True):
            out[where] = np.broadcast_to(made, shape) if where else np.broadcast_to(made, shape).reshape(-1)[-1]
    return outs


def _sizes(op: Generic, arrays: Sequence[np.ndarray]) -> tuple[int, ...]:
    """The sizes of the iteration space, from the operands of which a dim is one of its. NotImplementedError if there is
    none for one."""
    known: dict[int, int] = {}
    for where, array in zip(op.indexing_maps, arrays, strict=True):
        for result, size in enumerate(array.shape):
            dim = dim_of(where, result)
            if dim is not None and known.setdefault(dim, size) != size:
                raise ValueError(f"dim {dim} of linalg.generic is {known[dim]} by one operand, and {size} by another")
    count = len(op.iterators or ())
    if len(known) < count:
        raise NotImplementedError("linalg.generic with a dim that is no operand's own has no evaluator")
    return tuple(known[dim] for dim in range(count))


def _places(shape: tuple[int, ...], fixed: dict[int, int]) -> list[np.ndarray]:
    """The place along each iterator, of every point: arrays that broadcast to the shape."""
    rank = len(shape)
    return [
        np.full((1,) * rank, fixed[axis])
        if axis in fixed
        else np.arange(size).reshape([-1 if i == axis else 1 for i in range(rank)])
        for axis, size in enumerate(shape)
    ]


def _grid(place: np.ndarray | int, shape: tuple[int, ...]) -> np.ndarray:
    """Places for every point."""
    return np.broadcast_to(place, shape)


# Tensors of elements, their parts, and the same elements in other shapes.


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
def _tensors_dim(op: Dim, x: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.asarray(x.shape[_within(int(index), x.ndim)])


@evaluator(Rank)
def _tensors_rank(op: Rank, x: np.ndarray) -> np.ndarray:
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


@evaluator(TensorConcat)
def _tensors_concat(op: TensorConcat, *arrays: np.ndarray) -> np.ndarray:
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
