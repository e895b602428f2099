"""Forms of `tensor`, `shape` and `linalg.generic`: tensors made of elements, their parts, other shapes of them, and
shapes as values.

linalg.generic along parallel iterators is its body on whole tensors: each operand gets its dims where the iterators
are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.analysis.evaluate.registry import array_dtype, array_of
from tflq.base.errors import Refused
from tflq.dialects.tfl import movement as tfl
from tflq.dialects.tfl.indexing import Gather, GatherND
from tflq.dialects.tfl.shape import Shape as TflShape
from tflq.dialects.tosa.movement import Identity
from tflq.formats.mlir.dialects.linalg import Generic, Index
from tflq.formats.mlir.dialects.tensor import (
    DYNAMIC,
    Cast,
    CollapseShape,
    Concat,
    Dim,
    Empty,
    ExpandShape,
    Extract,
    ExtractSlice,
    FromElements,
    GetExtent,
    Rank,
    Reshape,
    ShapeDim,
    ShapeOf,
    Splat,
    places,
)
from tflq.formats.mlir.rules import Translation, constant, form, of_tensors, plain_type
from tflq.ir.attributes import AffineMap, applied, dim_of
from tflq.ir.ops import Op, Value
from tflq.ir.types import Shape, TensorType, i32, i64


@of_tensors(Generic)
def _generic(op: Generic, t: Translation) -> list[Value]:
    if any(kind != "parallel" for kind in op.iterators or ()):
        raise Refused("no builtin reduces in the order of its points", "write the reduction in ops of stablehlo or tfl")
    space = _space(op)
    block = op.regions[0].block
    for value, where, argument in zip(op.values, op.indexing_maps, block.arguments, strict=True):
        if any(argument in inner.operands for inner in block.ops):
            t.become(argument, _aligned(t, value, where, space))
    for inner in block.ops[:-1]:
        _check(inner)
        if isinstance(inner, Index):
            t.become(inner.result, _places(t, inner.dim, space))
        else:
            t.translate([inner])
    yielded = [v for v in block.ops[-1].operands if v is not None]
    maps = op.indexing_maps[len(op.inputs) :]
    return [_out(t, t.value(v), where, space) for v, where in zip(yielded, maps, strict=True)]


def _check(op: Op) -> None:
    if not isinstance(op, Index) and form.get(type(op)) is None:
        raise Refused(f"its body has {op.name}, which is not computed element by element", "take it out of the body")


def _space(op: Generic) -> Shape:
    """The sizes of the iterators; None where the operands' types leave it open."""
    known: dict[int, int | None] = {}
    for where, value in zip(op.indexing_maps, op.values, strict=True):
        for result, size in enumerate(value.type.dims):
            dim = dim_of(where, result)
            if dim is not None:
                known[dim] = known.get(dim) or size
    count = len(op.iterators or ())
    if len(known) < count:
        raise Refused("no operand has one of its dims", "give it an operand with that dim")
    return tuple(known[dim] for dim in range(count))


def _places(t: Translation, dim: int, space: Shape) -> Value:
    """Where each point is along an iterator."""
    assert space is not None
    size = space[dim]
    if size is None:
        raise Refused("linalg.index needs the size of its dim", "state it")
    row = np.arange(size, dtype=np.int64).reshape([-1 if d == dim else 1 for d in range(len(space))])
    return constant(row, i64)


def _aligned(t: Translation, value: Value, where: AffineMap, space: Shape) -> Value:
    """An operand, shaped so that it broadcasts to the space of all points."""
    assert space is not None
    now = t.value(value)
    if now.type.shape == ():
        return now
    dims = [dim_of(where, result) for result in range(len(where.results))]
    if None in dims or len(set(dims)) < len(dims):
        return _gather_constant(t, value, where, space)
    x = t.whole(value)
    order = sorted(range(len(dims)), key=lambda place: dims[place] or 0)
    shape = [x.type.shape[dims.index(d)] if d in dims else 1 for d in range(len(space))]  # type: ignore[index]
    if x.is_constant:
        return constant(array_of(x).transpose(order).reshape([n or 0 for n in shape]), x.type.storage)
    reach = t.b.reach(x)
    if order != list(range(len(order))):
        x = t.b.transpose(x, order)
    if len(dims) < len(space):
        if shape.count(None) > 1:
            raise Refused("more than one dim of an operand is not known", "state the dims")
        x = t.b.reshape(x, shape)
    return t.b.within(x, reach)


def _gather_constant(t: Translation, value: Value, where: AffineMap, space: Sequence[int | None]) -> Value:
    """The elements of a constant that a map with computed places picks."""
    array = t.known(value)
    if array is None or None in space:
        raise Refused(
            f"{where.text} computes places of what is not known before the model runs", "pick dims as they are"
        )
    grids = np.ogrid[tuple(slice(0, n) for n in space)]
    return constant(np.asarray(array[applied(where, list(grids))]), value.type.storage)


def _out(t: Translation, yielded: Value, where: AffineMap, space: Shape) -> Value:
    """The yielded value, with its dims in the order of the result."""
    assert space is not None
    dims = [dim_of(where, result) for result in range(len(where.results))]
    if sorted(d for d in dims if d is not None) != list(range(len(space))) or len(dims) != len(space):
        raise Refused(f"{where.text} writes to places that it computes, or more than once", "write each place once")
    if dims == sorted(dims, key=lambda d: d or 0) or yielded.type.shape == ():
        return yielded
    if yielded.type.shape != space:
        if None in space:
            raise Refused("a dim of its result is not known", "state the dims")
        yielded = t.b.emit(tfl.BroadcastTo, [yielded, t.b.constant(np.array(space, np.int32), i32)], yielded.type)
        yielded.type = TensorType(space, yielded.type.element)
    return t.b.transpose(yielded, [d or 0 for d in dims])


# tensor and shape.


@of_tensors(Empty)
def _empty(op: Empty, t: Translation) -> Value:
    """Zeros: something writes its elements before they are read."""
    kind = plain_type(op.result.type)
    return constant(np.zeros((), array_dtype(kind)), kind.storage)


@of_tensors(Splat)
def _splat(op: Splat, t: Translation) -> Value:
    return t.value(op.input)


@of_tensors(FromElements)
def _from_elements(op: FromElements, t: Translation) -> Value:
    kind = plain_type(op.result.type)
    row = _packed(t, [t.value(v) for v in op.elements])
    return row if kind.shape == row.type.shape else t.b.reshape(row, kind.shape or ())


def _packed(t: Translation, scalars: Sequence[Value]) -> Value:
    """Scalars as a tensor of one dim."""
    kind = TensorType((len(scalars),), scalars[0].type.element)
    return t.b.emit(tfl.Pack, list(scalars), kind, values_count=len(scalars), axis=0)


@of_tensors(Cast)
def _cast(op: Cast, t: Translation) -> Value:
    x, kind = t.value(op.source), plain_type(op.dest.type)
    if kind.shape is None or x.type.shape == kind.shape or x.is_constant:
        return x
    return t.b.emit(Identity, [t.whole(op.source)], kind)


@of_tensors(Reshape)
def _reshape(op: Reshape, t: Translation) -> Value:
    x, declared_shape = t.whole(op.source), op.result.type.shape
    shape = t.known(op.shape)
    sizes: Shape = declared_shape if shape is None else tuple(int(n) for n in shape)
    if sizes is None:
        raise Refused("its result is of unknown rank", "state the rank")
    if sizes.count(None) <= 1 and (None not in sizes or x.type.is_static):
        return t.b.reshape(x, sizes)
    dims = t.b.converted(t.whole(op.shape), i32)
    return t.b.emit(tfl.Reshape, [x, dims], TensorType(sizes, x.type.element))


@of_tensors(CollapseShape, ExpandShape)
def _regrouped(op: CollapseShape | ExpandShape, t: Translation) -> Value:
    shape = op.result.type.dims
    if shape.count(None) > 1:
        raise Refused("more than one dim of its result is not known", "state the dims")
    return t.b.reshape(t.whole(op.source), shape)


@of_tensors(Concat)
def _concat(op: Concat, t: Translation) -> Value:
    return t.b.concat([t.whole(v) for v in op.inputs], op.dim)


@of_tensors(Dim, ShapeDim)
def _dim(op: Dim | ShapeDim, t: Translation) -> Value:
    """The size of a dim: a constant, or what SHAPE gives as the model runs."""
    x = op.source if isinstance(op, Dim) else op.value
    at, shape = t.known(op.index), x.type.shape
    if shape is not None and at is not None and not 0 <= int(at) < len(shape):
        raise Refused(f"it is undefined: the tensor has {len(shape)} dims, and no dim {int(at)}")
    if shape is not None and at is not None and shape[int(at)] is not None:
        return constant(np.asarray(shape[int(at)], np.int64), i64)
    return _picked(t, _shape(t, x), t.value(op.index))


def _shape(t: Translation, x: Value) -> Value:
    now = t.whole(x)
    return t.b.emit(TflShape, [now], TensorType((now.type.rank,), i64), out_type="INT64")


def _picked(t: Translation, row: Value, at: Value) -> Value:
    return t.b.emit(Gather, [row, at], TensorType((), row.type.element), axis=0, batch_dims=0)


@of_tensors(Rank)
def _rank(op: Rank, t: Translation) -> Value:
    rank = op.tensor.type.rank
    if rank is None:
        raise Refused("the rank is not known before the model runs", "state it")
    return constant(np.asarray(rank, np.int64), i64)


@of_tensors(ShapeOf)
def _shape_of(op: ShapeOf, t: Translation) -> Value:
    shape = op.arg.type.shape
    if shape is not None and None not in shape:
        return constant(np.array(shape, np.int64), i64)
    return _shape(t, op.arg)


@of_tensors(GetExtent)
def _get_extent(op: GetExtent, t: Translation) -> Value:
    return _picked(t, t.whole(op.shape), t.value(op.dim))


@of_tensors(Extract)
def _extract(op: Extract, t: Translation) -> Value:
    x = t.whole(op.tensor)
    if x.type.shape == ():
        return x
    at = _packed(t, [t.value(v) for v in op.indices])
    return t.b.emit(GatherND, [x, at], TensorType((), x.type.element))


@of_tensors(ExtractSlice)
def _extract_slice(op: ExtractSlice, t: Translation) -> Value:
    listed = [places(op, f"static_{kind}") for kind in ("offsets", "sizes", "strides")]
    if any(DYNAMIC in numbers for numbers in listed) or min(listed[2], default=1) < 1:
        raise Refused("its places are not known before the model runs, or its strides are negative", "state them")
    offsets, sizes, strides = (np.array(numbers, np.int32) for numbers in listed)
    ends = offsets + (sizes - 1) * strides + 1
    x = t.whole(op.source)
    operands = [x, *(t.b.constant(numbers, i32) for numbers in (offsets, ends, strides))]
    part = t.b.emit(tfl.StridedSlice, operands, TensorType(tuple(map(int, sizes)), x.type.element))
    shape = op.result.type.dims
    return part if part.type.shape == shape else t.b.reshape(part, shape)
