"""GATHER, GATHER_ND, EMBEDDING_LOOKUP, ONE_HOT and REVERSE_SEQUENCE.

TOSA's GATHER takes values [N, K, C] and int32 indices [N, W] and gives [N, W, C]. The kernels fail where an index is
out of bounds, so there is nothing to reproduce there. Kernels: gather.cc, internal/reference/gather.h, gather_nd.cc,
embedding_lookup.cc, one_hot.cc, reverse_sequence.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tflq.dialects.tfl.indexing import EmbeddingLookup, GatherND, OneHot
from tflq.dialects.tfl.indexing import Gather as TflGather
from tflq.dialects.tosa.indexing import Gather
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import i1, i8, i32
from tflq.tosa.lowering.floats.real_constants import real
from tflq.tosa.lowering.known import constant_of, dims_of, known_array, product
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.shaping import part, reshaped
from tflq.tosa.lowering.wide import narrow

__all__ = ["as_index", "flat_index", "gathered", "taken"]


def as_index(t: Tosa, operand: Value) -> Value:
    """An operand of indices as int32."""
    array = known_array(operand)
    if array is not None:
        info = np.iinfo(np.int32)
        if array.size and (array.min() < info.min or array.max() > info.max):
            raise Refused(f"an index of '{operand.name}' does not fit int32")
        return t.constant(array, i32)
    x = t.value(operand)
    storage = x.type.storage
    if storage.bits > 32:
        raise Refused(f"indices '{operand.name}' are computed in 64 bits, and TOSA's are of 32")
    x = t.cast(x, i32)
    offset = t.offset(operand)
    return t.add(x, t.constant(np.full((1,) * len(dims_of(x)), offset))) if offset else x


def taken(t: Tosa, values: Value, indices: Value) -> Value:
    """GATHER; of booleans, as int8."""
    if values.type.storage == i1:
        return t.cast(t.gather(t.cast(values, i8), indices), i1)
    return t.gather(values, indices)


@lowering(Gather)
def gather_by_operands(op: Gather, t: Tosa) -> Value:
    return taken(t, narrow(op.values, t), narrow(op.indices, t))


@lowering(TflGather)
def gather(op: TflGather, t: Tosa) -> Value:
    """x[batch, before axis, indices[batch, ...], after axis]."""
    x, where = op.input, op.indices
    rank = len(dims_of(x))
    axis, batch = op.axis % rank, op.batch_dims
    batch += len(dims_of(where)) if batch < 0 else 0
    indices = as_index(t, where)
    if indices.is_constant:
        _check(indices.array, dims_of(x)[axis], where.name)
        consecutive = _consecutive(indices.array, batch)
        if consecutive is not None:
            return _sliced(t, narrow(x, t), axis, consecutive, dims_of(where), batch)
    return gathered(t, narrow(x, t), indices, axis, batch)


def _check(indices: np.ndarray, size: int | None, name: str) -> None:
    """Refused if a constant index is out of bounds."""
    if indices.size and (indices.min() < 0 or (size is not None and indices.max() >= size)):
        raise Refused(f"an index of '{name}' is out of bounds")


def _consecutive(indices: np.ndarray, batch: int) -> tuple[int, int] | None:
    """(first, count) if the indices count up by one, in every batch alike."""
    rows = indices.reshape(math.prod(indices.shape[:batch]), -1)
    if not rows.size or (rows != rows[0, 0] + np.arange(rows.shape[1])).any():
        return None
    return int(rows[0, 0]), rows.shape[1]


def _sliced(t: Tosa, x: Value, axis: int, rows: tuple[int, int], where: Sequence[int | None], batch: int) -> Value:
    shape = dims_of(x)
    return reshaped(t, part(t, x, axis, *rows), (*shape[:axis], *where[batch:], *shape[axis + 1 :]))


def gathered(t: Tosa, x: Value, indices: Value, axis: int, batch: int) -> Value:
    """The batch as N, the axis moved in front of what else there is, which is C."""
    shape, where = dims_of(x), dims_of(indices)
    order = [*range(batch), axis, *(i for i in range(batch, len(shape)) if i != axis)]
    rest = [shape[i] for i in order[batch + 1 :]]
    if any(shape[i] != 1 for i in range(batch, axis)):
        x = t.transpose(x, order)
    n, w = product(shape[:batch]), product(where[batch:])
    found = taken(t, reshaped(t, x, (n, shape[axis], product(rest))), reshaped(t, indices, (n, w)))
    found = reshaped(t, found, (*shape[:batch], *where[batch:], *rest))
    extra = len(where) - batch
    before = axis - batch
    if any(d != 1 for d in rest[:before]):
        places = range(batch + extra, batch + extra + before)
        found = t.transpose(
            found,
            (*range(batch), *places, *range(batch, batch + extra), *range(batch + extra + before, len(dims_of(found)))),
        )
    return reshaped(t, found, (*shape[:axis], *where[batch:], *shape[axis + 1 :]))


@lowering(GatherND)
def gather_nd(op: GatherND, t: Tosa) -> Value:
    """x[indices[..., 0], indices[..., 1], ...]: one index into the leading dims, taken as one."""
    x, where = op.input, op.indices
    shape, places = dims_of(x), dims_of(where)
    depth = places[-1]
    if depth is None or None in shape[:depth]:
        raise Refused("a dim that is indexed is not known, and TOSA 1.0 has no run-time shapes")
    leading = [d or 0 for d in shape[:depth]]
    indices = as_index(t, where)
    if indices.is_constant:
        for i, size in enumerate(leading):
            _check(indices.array[..., i], size, where.name)
    flat = reshaped(t, flat_index(t, indices, leading), (1, product(places[:-1])))
    values = reshaped(t, narrow(x, t), (1, math.prod(leading), product(shape[depth:])))
    return reshaped(t, taken(t, values, flat), (*places[:-1], *shape[depth:]))


def flat_index(t: Tosa, indices: Value, leading: Sequence[int]) -> Value:
    """The position in row-major order of index tuples in the last dim, which becomes 1."""
    strides = [math.prod(leading[i + 1 :]) for i in range(len(leading))]
    if indices.is_constant:
        return t.constant((indices.array.astype(np.int64) * strides).sum(-1, keepdims=True))
    shape = dims_of(indices)
    if len(leading) == 0:
        return t.constant(np.zeros([d or 0 for d in (*shape[:-1], 1)]))
    scaled = t.mul(indices, t.constant(np.reshape(strides, (1,) * (len(shape) - 1) + (-1,))))
    return t.reduce("sum", scaled, len(shape) - 1)


@lowering(EmbeddingLookup)
def embedding_lookup(op: EmbeddingLookup, t: Tosa) -> Value:
    """The rows of a table; of a quantized one, as floats."""
    ids, table = op.ids, op.values
    indices = as_index(t, ids)
    if indices.is_constant:
        _check(indices.array, dims_of(table)[0], ids.name)
    return gathered(t, real(t, table) if table.type.quantized else narrow(table, t), indices, 0, 0)


@lowering(OneHot)
def one_hot(op: OneHot, t: Tosa) -> Value:
    """on where the new axis counts to the index, else off."""
    where = op.indices
    indices = as_index(t, where)
    depth = int(constant_of(op.depth, "depth").reshape(-1)[0])
    on, off = narrow(op.on, t), narrow(op.off, t)
    shape = dims_of(indices)
    axis = op.axis
    axis = len(shape) if axis == -1 else axis
    ones = (1,) * (len(shape) + 1)
    count = t.constant(np.arange(depth).reshape([depth if i == axis else 1 for i in range(len(ones))]))
    hit = t.equal(reshaped(t, indices, (*shape[:axis], 1, *shape[axis:])), count)
    return t.select(hit, reshaped(t, on, ones), reshaped(t, off, ones))


def _turned(t: Tosa, lengths: Value, size: int) -> Value:
    """Where each element of each sequence comes from: int32 [batches, size]."""
    known = as_index(t, lengths)
    places = np.arange(size)[None]
    if known.is_constant:
        ends = known.array.reshape(-1, 1)
        return t.constant(np.where(places < ends, ends - 1 - places, places))
    end, here = t.reshape(known, (dims_of(known)[0], 1)), t.constant(places)
    return t.select(t.greater(end, here), t.sub(end, t.constant(places + 1)), here)
