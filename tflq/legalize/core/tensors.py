"""Tensors made of elements, their parts, other shapes of them, and shapes as values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.shape.extents import Dim as ExtentOf
from tflq.dialects.shape.extents import GetExtent, ShapeOf
from tflq.dialects.tensor.making import Empty, FromElements, Splat
from tflq.dialects.tensor.parts import GIVEN, Concat, Dim, Extract, ExtractSlice, Rank, places
from tflq.dialects.tensor.views import Cast, CollapseShape, ExpandShape, Reshape
from tflq.dialects.tfl import movement as tfl
from tflq.dialects.tfl.indexing import Gather, GatherND
from tflq.dialects.tfl.shape import Shape
from tflq.dialects.tosa.movement import Identity
from tflq.errors import Refused
from tflq.evaluate import held_dtype
from tflq.ir.core import Value
from tflq.ir.types import Shape as Dims
from tflq.ir.types import TensorType, i32, i64
from tflq.legalize.core.emitter import plain_type
from tflq.legalize.core.registry import of_tensors
from tflq.legalize.core.translation import Translation

__all__: list[str] = []


@of_tensors(Empty)
def _empty(op: Empty, t: Translation) -> Value:
    """Something writes its elements before they are read: zeros."""
    kind = plain_type(op.result.type)
    return t.constant(np.zeros((), held_dtype(kind)), kind)


@of_tensors(Splat)
def _splat(op: Splat, t: Translation) -> Value:
    return t.value(op.input)


@of_tensors(FromElements)
def _from_elements(op: FromElements, t: Translation) -> Value:
    made = plain_type(op.result.type)
    row = _packed(t, [t.value(v) for v in op.elements])
    return row if made.shape == row.type.shape else t.b.reshape(row, made.shape or ())


def _packed(t: Translation, scalars: Sequence[Value]) -> Value:
    """A tensor of one dim of scalars."""
    kind = TensorType((len(scalars),), scalars[0].type.element)
    return t.b.emit(tfl.Pack, list(scalars), kind, values_count=len(scalars), axis=0)


@of_tensors(Cast)
def _cast(op: Cast, t: Translation) -> Value:
    x, made = t.value(op.source), plain_type(op.dest.type)
    if made.shape is None or x.type.shape == made.shape or x.is_constant:
        return x
    return t.b.emit(Identity, [t.whole(op.source)], made)


@of_tensors(Reshape)
def _reshape(op: Reshape, t: Translation) -> Value:
    x, made = t.whole(op.source), op.result.type.shape
    shape = t.known(op.shape)
    sizes: Dims = made if shape is None else tuple(int(n) for n in shape)
    if sizes is None:
        raise Refused("its result is of unknown rank", "state the rank")
    if sizes.count(None) <= 1 and (None not in sizes or x.type.is_static):
        return t.b.reshape(x, sizes)
    dims = t.b.converted(t.whole(op.shape), i32)
    return t.b.emit(tfl.Reshape, [x, dims], TensorType(sizes, x.type.element))


@of_tensors(CollapseShape, ExpandShape)
def _regrouped(op: CollapseShape | ExpandShape, t: Translation) -> Value:
    made = op.result.type.shape or ()
    if made.count(None) > 1:
        raise Refused("more than one dim of its result is not known", "state the dims")
    return t.b.reshape(t.whole(op.source), made)


@of_tensors(Concat)
def _concat(op: Concat, t: Translation) -> Value:
    return t.b.concat([t.whole(v) for v in op.inputs], op.dim)


@of_tensors(Dim)
def _dim(op: Dim, t: Translation) -> Value:
    return _size(t, op.source, op.index)


@of_tensors(ExtentOf)
def _extent_of(op: ExtentOf, t: Translation) -> Value:
    return _size(t, op.value, op.index)


def _size(t: Translation, x: Value, index: Value) -> Value:
    """The size of a dim: a constant, or what SHAPE gives as the model runs."""
    at, shape = t.known(index), x.type.shape
    if shape is not None and at is not None and not 0 <= int(at) < len(shape):
        raise Refused(f"it is undefined: the tensor has {len(shape)} dims, and no dim {int(at)}")
    if shape is not None and at is not None and shape[int(at)] is not None:
        return t.constant(np.asarray(shape[int(at)], np.int64), TensorType((), i64))
    return _picked(t, _shape(t, x), t.value(index))


def _shape(t: Translation, x: Value) -> Value:
    now = t.whole(x)
    return t.b.emit(Shape, [now], TensorType((now.type.rank,), i64), out_type="INT64")


def _picked(t: Translation, row: Value, at: Value) -> Value:
    return t.b.emit(Gather, [row, at], TensorType((), row.type.element), axis=0, batch_dims=0)


@of_tensors(Rank)
def _rank(op: Rank, t: Translation) -> Value:
    rank = op.tensor.type.rank
    if rank is None:
        raise Refused("the rank is not known before the model runs", "state it")
    return t.constant(np.asarray(rank, np.int64), TensorType((), i64))


@of_tensors(ShapeOf)
def _shape_of(op: ShapeOf, t: Translation) -> Value:
    shape = op.arg.type.shape
    if shape is not None and None not in shape:
        return t.constant(np.array(shape, np.int64), TensorType((len(shape),), i64))
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
    if any(GIVEN in numbers for numbers in listed) or min(listed[2], default=1) < 1:
        raise Refused("its places are not known before the model runs, or its strides are negative", "state them")
    offsets, sizes, strides = (np.array(numbers, np.int32) for numbers in listed)
    ends = offsets + (sizes - 1) * strides + 1
    x = t.whole(op.source)
    operands = [x, *(t.b.constant(numbers, i32) for numbers in (offsets, ends, strides))]
    made = t.b.emit(tfl.StridedSlice, operands, TensorType(tuple(map(int, sizes)), x.type.element))
    shape = op.result.type.shape or ()
    return made if made.type.shape == shape else t.b.reshape(made, shape)
