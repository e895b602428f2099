"""Elements chosen or placed by index.

SCATTER_ND adds updates to zeros, in order; sums wrap. Its places are positions in the flat result, as the kernel takes
them. SCATTERND adds with threads that lose updates of one place (ONNX Runtime 1.32), so it is not used for that. With
known indices each row of the result is gathered from the updates, or from a row of zeros, as often as the most frequent
place occurs, and added. With others it is the product of a matrix that has a 1 where an update hits a row, and of the
updates.

Sources: kernels/gather.cc, gather_nd.cc, embedding_lookup.cc, one_hot.cc, scatter_nd.cc, dynamic_update_slice.cc,
where.cc, matrix_diag.cc, matrix_set_diag.cc; TOSA 1.0 specification, GATHER, SCATTER.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Final

import numpy as np

from tflq.analysis.hybrid import as_read, table_as_read
from tflq.base import sized
from tflq.base.errors import Refused
from tflq.dialects.tfl import indexing as tfl
from tflq.dialects.tfl.comparison import Where
from tflq.dialects.tosa.movement import Gather, Scatter
from tflq.formats.onnx import dialect as onnx
from tflq.formats.onnx.arithmetic import chosen
from tflq.formats.onnx.context import EXACT, Onnx, OnnxTensor, lowering, static
from tflq.formats.onnx.convolution import real_sum
from tflq.formats.onnx.limbs import BITS, split
from tflq.formats.onnx.movement import numbers, padded
from tflq.ir.ops import Value, constant
from tflq.ir.types import (
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
    i1,
    i32,
    i64,
    parameters,
    ui8,
)
from tflq.numerics.convolution import scattered_in_turn


@lowering(tfl.Gather)
def gather(op: tfl.Gather, t: Onnx) -> OnnxTensor:
    """GATHER; with dims of batches GATHERND of rows, each with the index of its batch."""
    rank = len(op.input.type.dims)
    axis, batch = op.axis % rank, op.batch_dims
    batch += len(op.indices.type.dims) if batch < 0 else 0
    if not batch:
        places = t.integers(op.indices, i64 if op.indices.type.storage == i64 else i32)
        return t.moved(op.input, lambda x: t.gather(x, places, axis), op.result)
    if axis != batch:
        raise Refused("GATHER of an axis behind others than those of batches")
    rows = t.integers(op.indices, i64)
    shape = static(op.indices.type.shape)

    def emit(x: Value) -> Value:
        return t.emit(onnx.GatherND, [x, t.reshape(rows, (*shape, 1))], batch_dims=batch)

    return t.moved(op.input, emit, op.result)


@lowering(tfl.GatherND)
def gather_nd(op: tfl.GatherND, t: Onnx) -> OnnxTensor:
    rows = t.integers(op.indices, i64)
    return t.moved(op.input, lambda x: t.emit(onnx.GatherND, [x, rows]), op.result)


@lowering(Gather)
def gather_rows(op: Gather, t: Onnx) -> OnnxTensor:
    """values [N, K, C], indices [N, W] → [N, W, C]."""
    batch, count = op.indices.type.shape or (None, None)
    if batch == 1:

        def pick(x: Value) -> Value:
            return t.gather(x, t.reshape(t.integers(op.indices), (count,)), 1)

        return t.moved(op.values, pick, op.result)
    rows = t.reshape(t.integers(op.indices, i64), (*op.indices.type.dims, 1))
    return t.moved(op.values, lambda x: t.emit(onnx.GatherND, [x, rows], batch_dims=1), op.result)


@lowering(Scatter)
def scatter_rows(op: Scatter, t: Onnx) -> OnnxTensor:
    """SCATTERND of rows by batch and index."""
    batch, count = static(op.indices.type.shape)
    numbers = t.constant(np.repeat(sized.arange(batch, dtype=np.int64), count).reshape(batch, count, 1), i64)
    rows = t.concat([numbers, t.reshape(t.integers(op.indices, i64), (batch, count, 1))], 2)
    (values, updates), form = t.common([op.values_in, op.input])
    return t.bind(t.emit(onnx.ScatterND, [values, rows, updates]), op.result, offset=form.offset)


@lowering(tfl.DynamicUpdateSlice)
def dynamic_update_slice(op: tfl.DynamicUpdateSlice, t: Onnx) -> OnnxTensor:
    """SCATTERND at the start and all places of the update, as far as they are inside."""
    shape, block = static(op.input.type.shape), static(op.update.type.shape)
    last = t.constant(np.subtract(shape, block), i64)
    start = t.minimum(t.maximum(t.integers(op.starts, i64), t.constant(0, i64)), last)
    sized.need_few(prod(block) * len(block))
    places = np.stack(np.meshgrid(*map(np.arange, block), indexing="ij"), -1).reshape(prod(block), len(block))
    rows = t.add(t.reshape(start, (1, len(block))), t.constant(places.astype(np.int64), i64))
    (values, updates), form = t.common([op.input, op.update])
    flat = t.reshape(updates, (prod(block),))
    return t.bind(t.emit(onnx.ScatterND, [values, rows, flat]), op.result, offset=form.offset)


@lowering(tfl.EmbeddingLookup)
def embedding_lookup(op: tfl.EmbeddingLookup, t: Onnx) -> OnnxTensor:
    """The rows of a table; of a quantized one, as floats: stored * scale, as the kernel computes them."""
    table, element = op.values, op.values.type.element
    count = table.type.dims[0]
    if op.ids.is_constant and count is not None and not ((op.ids.array >= 0) & (op.ids.array < count)).all():
        raise Refused(f"an index of '{op.ids.name}' is outside of the {count} rows of '{table.name}'")
    ids = t.integers(op.ids)
    if not table.type.quantized:
        return t.moved(table, lambda x: t.gather(x, ids), op.output)
    if not table.is_constant:
        raise Refused(f"'{table.name}' is quantized, and not a constant")
    read = table_as_read(table)
    by_row = isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType))
    if not by_row or not np.array_equal(read, as_read(table)):
        return t.bind(t.gather(t.constant(read, f32), ids), op.output)
    rows = t.cast(t.gather(constant(table.array.view(np.int8)), ids), f32)
    scale, _ = parameters(table.type)
    scales = t.constant(scale, f32)
    return t.bind(t.mul(rows, t.gather(scales, ids) if np.size(scale) > 1 else scales), op.output)


@lowering(tfl.OneHot)
def one_hot(op: tfl.OneHot, t: Onnx) -> OnnxTensor:
    """`on` where the new axis counts to the index, else `off`."""
    shape = op.indices.type.dims
    rank, (depth,) = len(shape), numbers(op.depth)
    axis = rank if op.axis == -1 else op.axis
    places = np.arange(depth).reshape([depth if i == axis else 1 for i in range(rank + 1)])
    index = t.reshape(t.integers(op.indices), (*shape[:axis], 1, *shape[axis:]))
    hit = Value(TensorType((*shape[:axis], depth, *shape[axis:]), i1))
    t.record(hit, t.equal(index, t.constant(places, i32)))
    return chosen(t, hit, None, op.on, op.off, op.output)


_NONZERO: Final = (i1, ui8, i32, i64, f32)
"""The types on which ONNX Runtime has NONZERO."""


@lowering(Where)
def where(op: Where, t: Onnx) -> Value:
    """The indices of elements that are not 0, a row each."""
    numbers = op.condition
    known = numbers.type.storage in _NONZERO
    x = t.value(numbers) if known else t.integers(numbers, t.computing([numbers]))
    return t.transpose(t.emit(onnx.NonZero, [x]), (1, 0))


@lowering(tfl.MatrixDiag)
def matrix_diag(op: tfl.MatrixDiag, t: Onnx) -> OnnxTensor:
    """The last dim on a diagonal, zeros elsewhere."""
    (size,) = static(op.input.type.dims[-1:])
    zero = constant(np.zeros((), op.output.type.storage.dtype))
    return chosen(
        t, constant(np.eye(size, dtype=bool)), None, _as(t, op.input, (*op.input.type.dims, 1)), zero, op.output
    )


@lowering(tfl.MatrixSetDiag)
def matrix_set_diag(op: tfl.MatrixSetDiag, t: Onnx) -> OnnxTensor:
    """The operand with another diagonal."""
    rows, columns = static(op.input.type.dims[-2:])
    *outer, _ = op.diagonal.type.dims
    diagonal = _as(t, op.diagonal, (*outer, rows, 1) if rows <= columns else (*outer, 1, columns))
    return chosen(t, constant(np.eye(rows, columns, dtype=bool)), None, diagonal, op.input, op.output)


def _as(t: Onnx, operand: Value, shape: Sequence[int | None]) -> Value:
    """A value that stands for an operand in another shape."""
    other = Value(TensorType(tuple(shape), operand.type.storage))
    t.record(other, t.moved(operand, lambda x: t.reshape(x, shape), other))
    return other


# SCATTER_ND.


@lowering(tfl.ScatterND)
def scatter_nd(op: tfl.ScatterND, t: Onnx) -> OnnxTensor:
    """Row r: the sum of the updates whose place is r."""
    shape = numbers(op.shape)
    *outer, depth = static(op.indices.type.shape)
    rows, inner, count = prod(shape[:depth]), prod(shape[depth:]), prod(outer)
    strides = np.asarray([prod(shape[i + 1 : depth]) for i in range(depth)], np.int64)
    updates = _as(t, op.updates, (count, inner))
    if op.indices.is_constant:
        places = (op.indices.array.reshape(count, depth).astype(np.int64) * strides).sum(1)
        if not ((places >= 0) & (places < rows)).all():
            raise Refused(f"an index of '{op.indices.name}' is outside of {tuple(shape)}")
        sized.need_few(rows)
        sums = _gathered(t, updates, scattered_in_turn(places, rows))
    else:
        sums = _where_hit(op, t, updates, strides, rows)
    (form, x), *_ = sums.forms.items()
    return t.bind(t.reshape(x, shape), op.output, offset=form.offset)


def _gathered(t: Onnx, updates: Value, turns: Sequence[np.ndarray]) -> OnnxTensor:
    """In each turn a row takes one of the updates, or the zeros behind them all."""
    count, inner = updates.type.sizes
    storage, total = updates.type.storage, Value(updates.type)
    zeros = Value(TensorType((count + 1, inner), storage))
    t.record(zeros, padded(t, updates, np.asarray([[0, 1], [0, 0]]), 0, zeros))
    if len(turns) == 1:
        return t.moved(zeros, lambda x: t.gather(x, t.vector(turns[0])), total)
    low, high = _ends(t, updates, len(turns))
    element = storage if storage.is_float or storage == i64 else f32 if low >= -EXACT and high <= EXACT else i32
    x = t.cast(t.value(zeros), f32) if storage == i1 else t.integers(zeros, element)
    return _narrowed(t, reduce(t.add, [t.gather(x, t.vector(turn)) for turn in turns]), total, low, high)


def _where_hit(op: tfl.ScatterND, t: Onnx, updates: Value, strides: np.ndarray, rows: int) -> OnnxTensor:
    """A product with the hits [rows, count]: of integers in limbs, where float32 does not hold it."""
    (count, inner), storage, total = updates.type.sizes, updates.type.storage, Value(updates.type)
    low, high = _ends(t, updates, count)
    exact = low >= -EXACT and high <= EXACT
    if rows > EXACT or not (exact or storage.is_float or (storage == i32 and count << BITS <= EXACT)):
        raise Refused(f"sums of {count} updates of {storage} in {rows} rows, by indices that are computed")
    index = t.cast(t.integers(op.indices), f32)
    place = t.reshape(t.matmul(index, t.constant(strides.reshape(-1, 1), f32)), (1, count))
    hit = t.equal(t.constant(np.arange(rows).reshape(-1, 1), f32), place)
    if storage.is_float:
        x = t.reshape(t.value(updates), (1, count, inner))
        terms = t.where(t.reshape(hit, (rows, count, 1)), x, t.like(0, x))
        return t.bind(real_sum(op, t.reduce(onnx.ReduceSum, terms, [1], keep=False)), total)
    hits = t.cast(hit, f32)
    if exact:
        x = t.cast(t.value(updates), f32) if storage == i1 else t.whole(updates)
        return _narrowed(t, t.matmul(hits, x), total, low, high)
    limbs = split(t, t.integers(updates), *t.bounds(updates))
    parts = (t.cast(t.matmul(hits, limb), i32) for limb in limbs)
    return t.bind(reduce(t.add, [t.mul(x, t.constant(1 << i * BITS, i32)) for i, x in enumerate(parts)]), total)


def _ends(t: Onnx, updates: Value, count: int) -> tuple[int, int]:
    """The least and the greatest sum of so many updates."""
    low, high = (0, 1) if updates.type.storage == i1 else t.bounds(updates)
    return min(low * count, low), max(high * count, high)


def _narrowed(t: Onnx, x: Value, total: Value, low: int, high: int) -> OnnxTensor:
    """A sum as the kernel stores it: integers wrap, truth values are true where one is."""
    storage = total.type.storage
    fits = storage.is_float or storage in (i1, i64) or (storage.minimum <= low and high <= storage.maximum)
    return t.bind(t.cast(x, i1) if storage == i1 else x if fits else t.cast(t.cast(x, i32), storage), total)
