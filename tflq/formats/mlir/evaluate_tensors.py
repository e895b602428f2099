"""Evaluators of `func`, `shape`, `linalg` and `tensor`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tflq.analysis.evaluate.registry import (
    Run,
    array_dtype,
    array_of,
    evaluate_block,
    evaluate_one,
    evaluator,
    of_arrays,
    running,
)
from tflq.dialects.declare import Operator
from tflq.formats.mlir.dialects import linalg, tensor
from tflq.ir.attributes import applied, dim_of
from tflq.ir.ops import Op
from tflq.ir.types import BareType, TensorType

# Bodies of ops that are computed at many points: all points at once, on arrays of a shape. A body computes on scalars,
# so each of its ops computes element by element. It may use values from outside, and take elements of tensors there.


def _body(
    op: Op, run: Run, arguments: Sequence[np.ndarray], shape: tuple[int, ...], points: Sequence[np.ndarray] = ()
) -> list[np.ndarray]:
    """The results of the body of `op` for arguments, at all points at once: arrays that broadcast to the shape.

    points: the places of the points. run: knows the values outside. NotImplementedError names an op that cannot be
    computed so.
    """
    outer = run.scope

    def compute(step: Op, operands: list[np.ndarray | None]) -> list[np.ndarray]:
        if isinstance(step, linalg.Index):
            return [np.broadcast_to(points[step.dim], shape)]
        if not _of_scalars(step):
            raise NotImplementedError(f"{step.name} inside of a body is not evaluated")
        return evaluate_one(step, operands, run)

    return evaluate_block(op.regions[0].block, arguments, compute, lambda v: outer[v] if v in outer else array_of(v))


def _of_scalars(op: Op) -> bool:
    """Whether an op computes on scalars, or takes one from a tensor."""
    if op.regions:
        return False
    values = op.results if isinstance(op, (tensor.Dim, tensor.Extract, tensor.Rank)) else list(op.tensors)
    return all(isinstance(v.type, BareType) for v in values)


# Calls of functions of the module; a function as a value is its name.


@running(linalg.Call)
def _call(op: linalg.Call, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return run.call_named(str(op.callee), arrays)


@running(linalg.CallIndirect)
def _call_indirect(op: linalg.CallIndirect, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return run.call_named(str(arrays[0].item()), arrays[1:])


@evaluator(linalg.Constant)
def _constant(op: linalg.Constant) -> np.ndarray:
    return np.array(str(op.value), object)


# Shapes as arrays of sizes.


evaluator(tensor.ShapeOf)(of_arrays(np.shape))
evaluator(tensor.NumElements)(of_arrays(np.prod))
evaluator(tensor.ShapeRank)(of_arrays(np.size))
evaluator(tensor.Rank)(of_arrays(np.ndim))


@evaluator(tensor.ConstShape)
def _const_shape(op: tensor.ConstShape) -> np.ndarray:
    return np.asarray(op.shape, np.int64)


@evaluator(tensor.SplitAt)
def _split_at(op: tensor.SplitAt, sizes: np.ndarray, index: np.ndarray) -> list[np.ndarray]:
    if not -sizes.size <= int(index) <= sizes.size:
        raise IndexError(f"a shape of {sizes.size} dims cannot be split at {int(index)}")
    return [sizes[: int(index)], sizes[int(index) :]]


@evaluator(tensor.ShapeConcat)
def _concat(op: tensor.ShapeConcat, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.concatenate([a, b])


@evaluator(tensor.Broadcast)
def _broadcast(op: tensor.Broadcast, *shapes: np.ndarray) -> np.ndarray:
    return np.array(np.broadcast_shapes(*(tuple(map(int, shape)) for shape in shapes)), np.int64)


@evaluator(tensor.GetExtent)
def _get_extent(op: tensor.GetExtent, sizes: np.ndarray, dim: np.ndarray) -> np.ndarray:
    return _size(tuple(sizes), int(dim))


@evaluator(tensor.ShapeDim)
def _dim(op: tensor.ShapeDim, x: np.ndarray, index: np.ndarray) -> np.ndarray:
    return _size(x.shape, int(index))


def _size(sizes: tuple[int, ...], index: int) -> np.ndarray:
    if not 0 <= index < len(sizes):
        raise IndexError(f"a shape of {len(sizes)} dims has no dim {index}")
    return np.asarray(sizes[index])


# linalg.generic: its body on whole arrays along the parallel iterators, in order along those of reductions.


@running(linalg.Generic)
def _generic(op: linalg.Generic, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    sizes, kinds = _sizes(op, arrays), op.iterators or ()
    reduced = [axis for axis, kind in enumerate(kinds) if kind != "parallel"]
    shape = tuple(1 if axis in reduced else size for axis, size in enumerate(sizes))
    inputs, outs = arrays[: len(op.inputs)], [np.array(a) for a in arrays[len(op.inputs) :]]
    for point in np.ndindex(*(sizes[axis] for axis in reduced)):
        places = _places(shape, dict(zip(reduced, point, strict=True)))
        maps = [tuple(np.broadcast_to(p, shape) for p in applied(where, places)) for where in op.indexing_maps]
        elements = [a[where] for a, where in zip((*inputs, *outs), maps, strict=True)]
        for out, where, result in zip(outs, maps[len(inputs) :], _body(op, run, elements, shape, places), strict=True):
            out[where] = np.broadcast_to(result, shape) if where else np.broadcast_to(result, shape).reshape(-1)[-1]
    return outs


def _sizes(op: linalg.Generic, arrays: Sequence[np.ndarray]) -> tuple[int, ...]:
    """The sizes of the iteration space, from operands that have one of its dims as their own. NotImplementedError if a
    dim has no such operand."""
    known: dict[int, int] = {}
    for where, array in zip(op.indexing_maps, arrays, strict=True):
        for result, size in enumerate(array.shape):
            dim = dim_of(where, result)
            if dim is not None and known.setdefault(dim, size) != size:
                raise ValueError(f"dim {dim} of linalg.generic is {known[dim]} in one operand and {size} in another")
    count = len(op.iterators or ())
    if len(known) < count:
        raise NotImplementedError("linalg.generic with a dim that no operand has as its own has no evaluator")
    return tuple(known[dim] for dim in range(count))


def _places(shape: tuple[int, ...], fixed: dict[int, int]) -> list[np.ndarray]:
    """The place of every point along each iterator: arrays that broadcast to the shape."""
    rank = len(shape)
    return [
        np.full((1,) * rank, fixed[axis])
        if axis in fixed
        else np.arange(size).reshape([-1 if i == axis else 1 for i in range(rank)])
        for axis, size in enumerate(shape)
    ]


# Tensors of elements, their parts, and the same elements in other types and shapes.


# Tensors of elements, their parts, and the same elements in other shapes.


def _shape(type: TensorType, sizes: Sequence[Any]) -> tuple[int, ...]:
    """A type's shape, its unknown dims of these sizes. ValueError if one is negative."""
    rest = iter(sizes)
    shape = tuple(int(next(rest)) if dim is None else dim for dim in type.shape or ())
    if min(shape, default=0) < 0:
        raise ValueError(f"a size of {shape} is negative")
    return shape


@evaluator(tensor.Empty)
def _empty(op: tensor.Empty, *sizes: np.ndarray) -> np.ndarray:
    return np.zeros(_shape(op.result.type, sizes), array_dtype(op.result.type))


@evaluator(tensor.Splat)
def _splat(op: tensor.Splat, x: np.ndarray, *sizes: np.ndarray) -> np.ndarray:
    return np.full(_shape(op.result.type, sizes), x, array_dtype(op.result.type))


@evaluator(tensor.FromElements)
def _from_elements(op: tensor.FromElements, *elements: np.ndarray) -> np.ndarray:
    flat = np.array([np.asarray(e).item() for e in elements], array_dtype(op.result.type))
    return flat.reshape(_shape(op.result.type, ()))


@running(tensor.Generate)
def _generate(op: tensor.Generate, sizes: list[np.ndarray], run: Run) -> list[np.ndarray]:
    shape = _shape(op.result.type, sizes)
    return [_at_all_places(op, run, shape)]


def _at_all_places(op: Op, run: Run, shape: tuple[int, ...]) -> np.ndarray:
    grids = np.meshgrid(*map(np.arange, shape), indexing="ij")
    return np.broadcast_to(_body(op, run, grids, shape)[0], shape)


@evaluator(tensor.Cast)
def _cast(op: tensor.Cast, x: np.ndarray) -> np.ndarray:
    """ValueError if the tensor does not have the new shape."""
    shape = op.dest.type.shape
    if shape is not None and (
        len(shape) != x.ndim or any(d not in (None, n) for d, n in zip(shape, x.shape, strict=True))
    ):
        raise ValueError(f"{op.name} of a tensor of shape {x.shape} to {op.dest.type}")
    return x


@evaluator(tensor.Bitcast)
def _bitcast(op: tensor.Bitcast, x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(array_dtype(op.dest.type)).reshape(x.shape)


@evaluator(tensor.Reshape)
def _reshape(op: tensor.Reshape, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return x.reshape([int(n) for n in shape])


@evaluator(tensor.CollapseShape)
def _collapse(op: tensor.CollapseShape, x: np.ndarray) -> np.ndarray:
    return x.reshape([prod(x.shape[i] for i in group) for group in tensor.groups(op) or ()])


@evaluator(tensor.ExpandShape)
def _expand(op: tensor.ExpandShape, x: np.ndarray, *sizes: np.ndarray) -> np.ndarray:
    shape = list(op.result.type.dims)
    rest = iter(sizes)
    for dim, group in zip(x.shape, tensor.groups(op) or (), strict=False):
        unknown = [i for i in group if shape[i] is None]
        known = prod(shape[i] or 1 for i in group)
        for i in unknown:
            shape[i] = int(next(rest)) if sizes else dim // known
    return x.reshape([dim or 0 for dim in shape])


@evaluator(tensor.Dim)
def _tensors_dim(op: tensor.Dim, x: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.asarray(x.shape[_within(int(index), x.ndim)])


def _within(index: int, size: int) -> int:
    if not 0 <= index < size:
        raise IndexError(f"index {index} is not below {size}")
    return index


def _check(indices: Sequence[np.ndarray], shape: tuple[int, ...]) -> None:
    for index, size in zip(indices, shape, strict=True):
        if ((np.asarray(index) < 0) | (np.asarray(index) >= size)).any():
            raise IndexError(f"an index of a dim of {size} is outside of it")


@evaluator(tensor.Extract)
def _extract(op: tensor.Extract, x: np.ndarray, *indices: np.ndarray) -> np.ndarray:
    _check(indices, x.shape)
    return np.asarray(x[tuple(indices)])


@evaluator(tensor.Insert)
def _insert(op: tensor.Insert, scalar: np.ndarray, dest: np.ndarray, *indices: np.ndarray) -> np.ndarray:
    _check(indices, dest.shape)
    out = dest.copy()
    out[tuple(int(i) for i in indices)] = scalar
    return out


@evaluator(tensor.Concat)
def _tensors_concat(op: tensor.Concat, *arrays: np.ndarray) -> np.ndarray:
    return np.concatenate(arrays, op.dim)


def _completed(op: Operator, numbers: Sequence[np.ndarray], *keys: str) -> list[list[int]]:
    """Lists of integers that an op has as attributes, with operands where these say so."""
    rest = iter(numbers)
    return [[int(next(rest)) if n == tensor.DYNAMIC else n for n in tensor.places(op, key)] for key in keys]


def _slices(op: Operator, numbers: Sequence[np.ndarray], shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """The places of a slice, one array for each dim. IndexError if one is outside."""
    offsets, sizes, strides = _completed(op, numbers, "static_offsets", "static_sizes", "static_strides")
    along = tuple(o + s * np.arange(n) for o, n, s in zip(offsets, sizes, strides, strict=True))
    _check(along, shape)
    return np.ix_(*along)


@evaluator(tensor.ExtractSlice)
def _extract_slice(op: tensor.ExtractSlice, x: np.ndarray, *numbers: np.ndarray) -> np.ndarray:
    part = x[_slices(op, numbers, x.shape)]
    return part.reshape(_without_ones(part.shape, op.result.type))


def _without_ones(shape: tuple[int, ...], type: TensorType) -> tuple[int, ...]:
    """A shape without the dims of size 1 that a type leaves out."""
    wanted = list(type.shape or ())
    sizes: list[int] = []
    for place, size in enumerate(shape):
        left = len(shape) - place
        takes = len(sizes) < len(wanted) and wanted[len(sizes)] in (None, size)
        if takes and (size != 1 or left <= len(wanted) - len(sizes) or wanted[len(sizes)] == 1):
            sizes.append(size)
    return tuple(sizes)


@evaluator(tensor.InsertSlice)
def _insert_slice(op: tensor.InsertSlice, source: np.ndarray, dest: np.ndarray, *numbers: np.ndarray) -> np.ndarray:
    out = dest.copy()
    where = _slices(op, numbers, dest.shape)
    out[where] = source.reshape(out[where].shape)
    return out


@running(tensor.Pad)
def _pad(op: tensor.Pad, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    x = arrays[0]
    low, high = _completed(op, arrays[1:], "static_low", "static_high")
    shape = tuple(a + n + b for a, n, b in zip(low, x.shape, high, strict=True))
    out = np.array(_at_all_places(op, run, shape), x.dtype)
    inside = tuple(slice(max(a, 0), a + n + min(b, 0)) for a, n, b in zip(low, x.shape, high, strict=True))
    source = tuple(slice(max(-a, 0), n + min(b, 0)) for a, n, b in zip(low, x.shape, high, strict=True))
    out[inside] = x[source]
    return [out]
