"""SCATTER_ND and SPARSE_TO_DENSE.

SCATTER_ND adds updates to stored zeros, in the type they are stored in, whatever scales and zero points are: on 8 bits
that is done in int32 and wraps when it is narrowed. No kernel takes int16: there, and where parameters must hold, what
is added is the distance from the zero point, scaled and saturated. SPARSE_TO_DENSE writes one value after another over
the default value: with known indices each element is picked from them all. Sources: kernels/scatter_nd.cc,
internal/reference/reference_ops.h (ScatterNd), sparse_to_dense.cc, internal/reference/sparse_to_dense.h.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.dialects.tfl.indexing import Gather, ScatterND, SparseToDense
from tflq.ir.core import Op, Value
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, i64, ui8
from tflq.legalize.reference.generic.moved_parameters import parameters_differ, seen_by_kernel
from tflq.legalize.reference.generic.movement import COPIED, under
from tflq.legalize.reference.generic.rescaled import saturated
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import centred, per_layer
from tflq.numerics.fixed_point import quotient

__all__ = ["sum_bounds"]

_ZEROS = "the kernel stores the integer 0 for zeros, though the zero point is not 0"


@rule(ScatterND)
def scatter_nd(op: ScatterND, b: RuleBuilder) -> Answer:
    """result = the sum of the updates of each place, and zero elsewhere."""
    updates, result = op.updates, op.result
    storage = result.type.storage
    if updates.type.storage != storage or storage not in (i8, ui8, i16, i32):
        raise NotApplicable(f"no kernel scatters {updates.type.storage} into {storage}")
    zeros = not np.any(getattr(result.type.element, "zero_points", seen_by_kernel(result)[1]))
    differ, meeting = parameters_differ(op), _most(op.indices)
    if storage != i16 and not (b.real and (differ or not zeros or meeting != 1)):
        raw = _scattered(op, b, b.cast(b.value(updates), i32))
        return Rewritten([b.cast(raw, storage)], warning=COPIED if differ else "" if zeros else _ZEROS)
    elements = per_layer(op, [updates, result])
    if storage == i32:
        raise NotApplicable(COPIED)
    source, output = elements
    total = _scattered(op, b, centred(b, updates, source))
    bounds = sum_bounds(source, meeting)
    return saturated(b, total, np.asarray([quotient(source.scale, output.scale)]), output, "NONE", bounds)


def _scattered(op: Op, b: RuleBuilder, updates: Value) -> Value:
    indices, shape = (b.cast(b.value(op.operand(i)), i32) for i in (0, 2))
    return b.emit(ScatterND, [indices, updates, shape], op.result.type.with_element(i32))


def _most(indices: Value) -> int | None:
    """How many updates can meet in one place; None if that is not known."""
    shape = indices.type.shape or (None,)
    if None in shape:
        return None
    if not indices.is_constant or not indices.array.size:
        return math.prod(d or 0 for d in shape[:-1])
    return int(np.unique(indices.array.reshape(-1, shape[-1] or 1), axis=0, return_counts=True)[1].max())


def sum_bounds(source: UniformQuantizedType, terms: int | None) -> tuple[int, int] | None:
    """Bounds of a sum of stored values less their zero points."""
    if terms is None:
        return None
    storage, zero = source.storage, source.zero_point
    return min(terms * (storage.minimum - zero), 0), max(terms * (storage.maximum - zero), 0)


@rule(SparseToDense)
def sparse_to_dense(op: SparseToDense, b: RuleBuilder) -> Answer:
    """result = the values at their places, and the default value elsewhere."""
    values, default, result = op.values, op.default, op.result
    storage = result.type.storage
    if {values.type.storage, default.type.storage} != {storage} or storage not in (i8, ui8, i16, i32, i64):
        raise NotApplicable("values, default and result are not of one integer type of 8 bits or more")
    moved = [v for v in (values, default, result) if v.type.quantized]
    differ = len(moved) < 3 or len({v.type.element for v in moved}) > 1
    sources = [b.value(values), b.value(default)]
    if differ and (b.real or storage == i16):
        ready = under(b, [values, default], result)
        if ready is None:
            raise NotApplicable(COPIED)
        sources = ready
    warning = COPIED if differ and not (b.real or storage == i16) else ""
    return Rewritten([_dense(op, b, *sources)], warning=warning)


def _dense(op: SparseToDense, b: RuleBuilder, values: Value, default: Value) -> Value:
    indices, shape, type = op.indices, op.shape, op.output.type.stripped()
    if not (indices.is_constant and shape.is_constant and values.type.is_static):
        wide = type.storage == i16
        operands = [b.cast(v, i32) if wide else v for v in (values, default)]
        made = type.with_element(i32) if wide else type
        whole = b.emit(SparseToDense, [b.value(indices), b.value(shape), *operands], made, **op.attributes)
        return b.cast(whole, type.storage)
    dims = [int(d) for d in shape.array.reshape(-1)]
    count = math.prod(d or 0 for d in values.type.shape or ())
    where = indices.array.reshape(-1, len(dims)).astype(np.int64)
    source = np.full(dims, count)
    source[tuple(where.T)] = np.arange(len(where)) if values.type.rank else 0  # the last of equal indices stays
    every = [b.reshape(values, [count]), b.reshape(default, [1])]
    table = b.concat(every, 0)
    return b.emit(Gather, [table, b.constant(source)], TensorType(tuple(dims), type.element), axis=0, batch_dims=0)
