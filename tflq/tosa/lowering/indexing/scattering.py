"""SCATTER_ND and DYNAMIC_UPDATE_SLICE.

SCATTER_ND adds updates to zeros, in order (internal/reference/reference_ops.h, ScatterNd; sums wrap). TOSA's SCATTER
forbids to write an element twice. With known indices each row of the result is gathered from the updates, or from a row
of zeros, as often as the most frequent index occurs, and summed; else each row sums the updates that hit it.
DYNAMIC_UPDATE_SLICE writes one block, of which every element has its own place (dynamic_update_slice.cc; the start is
clamped).
"""

from __future__ import annotations

import math

import numpy as np

from tflq.dialects.tfl.indexing import DynamicUpdateSlice, ScatterND
from tflq.dialects.tosa.bits import LogicalOr
from tflq.dialects.tosa.indexing import Scatter
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, i1, i8, i32
from tflq.tosa.lowering.floats.arithmetic import need_float
from tflq.tosa.lowering.indexing.gathering import as_index, flat_index, taken
from tflq.tosa.lowering.known import constant_of, dims_of, known_array, product
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.shaping import joined, part, reshaped
from tflq.tosa.lowering.wide import in_int32, narrow

__all__: list[str] = []


@lowering(ScatterND)
def scatter_nd(op: ScatterND, t: Tosa) -> Value:
    """Row r: the sum of the updates whose index is r."""
    if t.offset(op.updates):
        raise Refused("SCATTER_ND of uint8 has no form in TOSA yet")
    shape = [int(d) for d in constant_of(op.shape, "shape").reshape(-1)]
    if known_array(op.indices) is None:
        return _summed_where_hit(op, t, shape)
    indices = constant_of(op.indices, "indices")
    depth = indices.shape[-1]
    leading, inner = shape[:depth], math.prod(shape[depth:])
    if (indices < 0).any() or (indices >= leading).any():
        raise Refused("an index of SCATTER_ND is out of bounds")
    strides = [math.prod(leading[i + 1 :]) for i in range(depth)]
    targets = (indices.reshape(-1, depth).astype(np.int64) * strides).sum(-1)
    updates = reshaped(t, narrow(op.updates, t), (1, targets.size, inner))
    updates = t.pad(updates, [(0, 0), (0, 1), (0, 0)])
    storage = updates.type.storage
    total: Value | None = None
    rounds = _rounds(targets, math.prod(leading))
    if len(rounds) > 1:
        in_int32(op, t)
    for sources in rounds:
        found = taken(t, updates, t.constant(sources[None]))
        total = found if total is None else _sum(t, total, found, storage)
    if total is None:
        raise Refused("SCATTER_ND without updates has no form in TOSA")
    return reshaped(t, total, tuple(shape))


def _summed_where_hit(op: ScatterND, t: Tosa, shape: list[int]) -> Value:
    """With indices of the run: every row adds all updates whose index is its own, and zeros for the others."""
    in_int32(op, t)
    x, places = narrow(op.updates, t), dims_of(op.indices)
    depth, count = places[-1] or 0, product(places[:-1])
    if x.type.storage.is_float or x.type.storage == i1 or count is None:
        raise Refused("indices of SCATTER_ND are computed when the model runs, and its updates are not integers")
    rows, inner = math.prod(shape[:depth]), math.prod(shape[depth:])
    flat = reshaped(t, flat_index(t, as_index(t, op.indices), shape[:depth]), (1, count, 1))
    hit = t.equal(flat, t.constant(np.arange(rows).reshape(-1, 1, 1)))
    updates = t.cast(reshaped(t, x, (1, count, inner)), i32)
    total = t.reduce("sum", t.select(hit, updates, t.constant(np.zeros((1, 1, 1)))), 1)
    return t.cast(reshaped(t, total, tuple(shape)), x.type.storage)


def _rounds(targets: np.ndarray, rows: int) -> list[np.ndarray]:
    """For each occurrence of a target, first to last: which update each row takes, or the row after them all."""
    order = np.argsort(targets, kind="stable")
    ordered = targets[order]
    occurrence = np.arange(targets.size) - np.searchsorted(ordered, ordered)
    sources = []
    for turn in range(int(occurrence.max(initial=-1)) + 1):
        source = np.full(rows, targets.size)
        source[ordered[occurrence == turn]] = order[occurrence == turn]
        sources.append(source)
    return sources


def _sum(t: Tosa, a: Value, b: Value, storage: ScalarType) -> Value:
    """a + b in a type; narrow integers wrap."""
    if storage.is_float:
        need_float(t, "SCATTER_ND")
        return t.add(a, b)
    if storage == i1:
        return t.emit(LogicalOr, [a, b])
    return t.cast(t.add(t.cast(a, i32), t.cast(b, i32)), storage)


@lowering(DynamicUpdateSlice)
def dynamic_update_slice(op: DynamicUpdateSlice, t: Tosa) -> Value:
    """The operand with a block in it replaced."""
    x, update = narrow(op.input, t), narrow(op.update, t)
    shape, block = dims_of(x), dims_of(update)
    start = known_array(op.starts)
    if None in shape or None in block:
        raise Refused("DYNAMIC_UPDATE_SLICE beside a dim that is not known has no form in TOSA")
    most = [(d or 0) - (b or 0) for d, b in zip(shape, block, strict=True)]
    if start is not None:
        return _replaced(t, x, update, [int(s) for s in np.clip(start.reshape(-1), 0, most)], 0)
    start_value = as_index(t, op.starts)
    rank = len(shape)
    zero = t.constant(np.zeros(rank))
    clamped = t.minimum(t.maximum(start_value, zero), t.constant(most))
    base = flat_index(t, t.reshape(clamped, (1, rank)), [d or 0 for d in shape])
    inside = np.ravel_multi_index(tuple(np.indices([b or 0 for b in block])), [d or 0 for d in shape])
    places = t.add(base, t.constant(inside.reshape(1, -1)))
    held = i8 if x.type.storage == i1 else x.type.storage
    values = t.reshape(t.cast(x, held), (1, product(shape), 1))
    written = t.emit(Scatter, [values, places, t.reshape(t.cast(update, held), (1, product(block), 1))], values.type)
    return t.cast(t.reshape(written, shape), x.type.storage)


def _replaced(t: Tosa, x: Value, update: Value, start: list[int], axis: int) -> Value:
    """Along one dim: what is before, the block (with the dims after replaced in turn), and what is after."""
    shape, block = dims_of(x), dims_of(update)
    if shape == block:
        return update
    size, whole = block[axis] or 0, shape[axis] or 0
    end = start[axis] + size
    inner = _replaced(t, part(t, x, axis, start[axis], size), update, start, axis + 1)
    before = [part(t, x, axis, 0, start[axis])] if start[axis] else []
    after = [part(t, x, axis, end, whole - end)] if end < whole else []
    return joined(t, [*before, inner, *after], axis)
