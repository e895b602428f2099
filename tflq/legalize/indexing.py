"""Elements looked up or placed by index: the kernels ignore scales, and copy stored integers.

EMBEDDING_LOOKUP is GATHER of rows, ONE_HOT a choice by comparison with 0, 1, 2 ..., MATRIX_DIAG and MATRIX_SET_DIAG a
choice by a mask, BUCKETIZE a table; HASHTABLE_LOOKUP keeps its kernel. Sources: kernels/embedding_lookup.cc
(EvalSimple), hashtable_lookup.cc, one_hot.cc, matrix_diag.cc, matrix_set_diag.cc, bucketize.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tflq.base import sized
from tflq.dialects.tfl.indexing import (
    Bucketize,
    DynamicUpdateSlice,
    EmbeddingLookup,
    Gather,
    GatherND,
    HashtableLookup,
    MatrixDiag,
    MatrixSetDiag,
    OneHot,
    ScatterND,
    SparseToDense,
    Unique,
)
from tflq.dialects.tosa.elementwise import Select
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedType, i1, i8, i16, i32, i64, parameters, ui8
from tflq.legalize.grid import grids_of, requantized_by
from tflq.legalize.movement import COPIED, emit_unchanged, move, parameters_differ, refused, seen_by_kernel, under
from tflq.legalize.probing import centred, gather_along, per_layer, zero_point_of
from tflq.legalize.rescaled import scaled_sum
from tflq.legalize.rule import FOLLOWS_PARAMETERS, Answer, NotApplicable, Rewritten, RuleBuilder, rule

_ZEROS = "the kernel stores the integer 0 for zeros, though the zero point is not 0"
_OTHER_STORAGE = "no kernel copies {} to {}"


@rule(EmbeddingLookup)
def embedding_lookup(op: EmbeddingLookup, b: RuleBuilder) -> Answer:
    """result = rows of the table, as they are stored."""
    ids, table, result = op.ids, op.values, op.result
    if not isinstance(table.type.element, UniformQuantizedType) and parameters_differ(op):
        raise NotApplicable("no kernel copies rows from several scales to others")
    if table.type.storage != result.type.storage or table.type.storage not in (i8, ui8, i16):
        raise NotApplicable(f"no kernel copies rows of {table.type.storage} to {result.type.storage}")
    rows = gather_along(b, b.value(table), b.value(ids))
    if b.real and parameters_differ(op):
        return requantized_by(b, rows, *grids_of(table, result))
    return Rewritten([rows], warning=COPIED if parameters_differ(op) else "")


@rule(HashtableLookup)
def hashtable_lookup(op: HashtableLookup, b: RuleBuilder) -> Answer:
    """result = rows of the values, as they are stored; stored zeros where the key is not found."""
    values, result = op.values, op.result
    if values.type.storage != result.type.storage:
        raise NotApplicable(f"no kernel copies rows of {values.type.storage} to {result.type.storage}")
    rows, hits = emit_unchanged(op, b, [b.value(v) for v in op.operands if v])
    zeros = parameters(result.type)[1].any() if result.type.quantized else False
    some_hit, all_hit = _hits(op.lookup, op.keys)
    differ = some_hit and parameters_differ(op)
    warning = COPIED if differ else _ZEROS if zeros and not all_hit else ""
    return Rewritten([rows, hits], warning=warning)


def _hits(ids: Value, keys: Value) -> tuple[bool, bool]:
    """Whether some ids may be among the keys, and whether all are. The kernel's search needs keys in order."""
    if not (ids.is_constant and keys.is_constant) or (np.diff(keys.array.astype(np.int64)) <= 0).any():
        return True, False
    hits = np.isin(ids.array, keys.array)
    return bool(hits.any()), bool(hits.all())


@rule(OneHot)
def one_hot(op: OneHot, b: RuleBuilder) -> Answer:
    """result = the stored on value where the index is the place along the axis, else the off value."""
    indices, depth, on, off = op.indices, op.depth, op.on, op.off
    if not depth.is_constant or indices.type.shape is None or on.type.storage != off.type.storage:
        raise NotApplicable(
            "the depth is not constant, the rank of the indices not known, or the values differ in type"
        )
    if not Select.T.admits(on.type.storage):
        raise NotApplicable(f"no integer form chooses between elements of {on.type.storage}")
    shape, axis = list(indices.type.shape), op.axis % (len(indices.type.shape) + 1)
    if shape.count(None) > 1:
        raise NotApplicable("more than one dim of the indices is not known")
    index = b.reshape(b.cast(b.value(indices), i32), [*shape[:axis], 1, *shape[axis:]])
    places = sized.arange(int(depth.array.reshape(()))).reshape(-1, *[1] * (len(shape) - axis))
    differ = parameters_differ(op)
    moved = differ and (b.real or refused(op))
    values = _under(b, [on, off], op.result) if moved else [b.value(on), b.value(off)]
    chosen = b.select(b.equal(index, places), *(b.reshape(v, []) for v in values))
    return Rewritten([chosen], warning=COPIED if differ and not moved else "")


def _under(b: RuleBuilder, operands: Sequence[Value], result: Value) -> list[Value]:
    """Operands under the result's parameters; NotApplicable where that is not possible."""
    moved = under(b, operands, result)
    if moved is None:
        raise NotApplicable(COPIED)
    return moved


@rule(MatrixDiag)
def matrix_diag(op: MatrixDiag, b: RuleBuilder) -> Answer:
    """result = the operand's last dim on a diagonal, and stored zeros."""
    x, shape = op.input, list(op.input.type.dims)
    if x.type.storage != op.result.type.storage:
        raise NotApplicable(_OTHER_STORAGE.format(x.type.storage, op.result.type.storage))
    if not shape or shape[-1] is None or shape.count(None) > 1:
        raise NotApplicable(f"the shape of '{x.name}' is not known")
    mask = b.constant(sized.eye(shape[-1], dtype=bool), i1)
    fill = zero_point_of(x) or 0 if b.real else 0
    zero = b.constant(fill, x.type.storage)
    chosen = b.select(mask, b.reshape(b.value(x), [*shape, 1]), zero)
    if b.real and parameters_differ(op):
        if not isinstance(x.type.element, UniformQuantizedType):
            raise NotApplicable(COPIED)
        return requantized_by(b, chosen, *grids_of(x, op.result))
    raw = not b.real and zero_point_of(x) != 0 and shape[-1] != 1
    return Rewritten([chosen], warning=_ZEROS if raw else "")


@rule(MatrixSetDiag)
def matrix_set_diag(op: MatrixSetDiag, b: RuleBuilder) -> Answer:
    """result = the operand with another diagonal."""
    x, diagonal = op.input, op.diagonal
    if not x.type.storage == diagonal.type.storage == op.result.type.storage:
        raise NotApplicable(_OTHER_STORAGE.format(diagonal.type.storage, op.result.type.storage))
    shape, inner = list(x.type.dims), list(diagonal.type.dims)
    if len(shape) < 2 or None in shape[-2:] or inner.count(None) > 1:
        differ = f"{COPIED}; {FOLLOWS_PARAMETERS}" if parameters_differ(op) else ""
        raise NotApplicable(f"the shape of '{x.name}' is not known", differ)
    rows, columns = shape[-2] or 0, shape[-1] or 0
    place = [*inner[:-1], rows, 1] if rows <= columns else [*inner[:-1], 1, columns]
    mask = b.constant(sized.eye(rows, columns, dtype=bool), i1)
    ready = under(b, [diagonal, x], op.result) if b.real and parameters_differ(op) else None
    plain = [b.value(diagonal), b.value(x)] if ready is None else ready
    chosen = b.select(mask, b.reshape(plain[0], place), plain[1])
    return Rewritten([chosen], warning=COPIED if ready is None and parameters_differ(op) else "")


@rule(Bucketize)
def bucketize(op: Bucketize, b: RuleBuilder) -> Answer:
    """result = how many boundaries are not greater: a table of all stored values."""
    (source,) = per_layer(op, [op.input])
    if source.storage not in (i8, ui8, i16):
        raise NotApplicable(f"BUCKETIZE has no table for {source.storage}")
    values = np.arange(source.storage.minimum, source.storage.maximum + 1) - source.zero_point
    real = values.astype(np.float32) * np.float32(source.scale)
    boundaries = np.asarray(op.boundaries, np.float32)
    buckets = np.searchsorted(boundaries, real, side="right").astype(np.int32)
    return Rewritten([b.table(b.value(op.input), buckets)], note="no kernel takes it; the real function")


rule(Gather, GatherND, DynamicUpdateSlice, Unique)(move)


# SCATTER_ND and SPARSE_TO_DENSE.
#
# SCATTER_ND adds updates to stored zeros, in the type they are stored in, whatever scales and zero points are: with 8
# bits in int32, which wraps when it is narrowed. No kernel takes int16: there, and where parameters must hold, the
# distances from the zero point are added, scaled and saturated. SPARSE_TO_DENSE writes one value after another over the
# default value: with known indices each element is picked from them all. Sources: kernels/scatter_nd.cc,
# internal/reference/reference_ops.h (ScatterNd), sparse_to_dense.cc, internal/reference/sparse_to_dense.h.


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
    source, output = per_layer(op, [updates, result])
    if storage == i32:
        raise NotApplicable(COPIED)
    total = _scattered(op, b, centred(b, updates, source))
    return scaled_sum(b, total, source, output, sum_bounds(source, meeting))


def _scattered(op: Op, b: RuleBuilder, updates: Value) -> Value:
    indices, shape = (b.cast(b.value(op.operand(i)), i32) for i in (0, 2))
    return b.emit(ScatterND, [indices, updates, shape], op.result.type.with_element(i32))


def _most(indices: Value) -> int | None:
    """The largest number of updates that can meet in one place; None if that is not known."""
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
    low, high = source.ends
    return min(terms * low, 0), max(terms * high, 0)


@rule(SparseToDense)
def sparse_to_dense(op: SparseToDense, b: RuleBuilder) -> Answer:
    """result = the values at their places, and the default value elsewhere."""
    values, default, result = op.values, op.default, op.result
    storage = result.type.storage
    if {values.type.storage, default.type.storage} != {storage} or storage not in (i8, ui8, i16, i32, i64):
        raise NotApplicable("values, default and result are not of one integer type of 8 bits or more")
    moved = [v for v in (values, default, result) if v.type.quantized]
    differ = len(moved) < 3 or len({v.type.element for v in moved}) > 1
    requantized = differ and (b.real or storage == i16)
    sources = _under(b, [values, default], result) if requantized else [b.value(values), b.value(default)]
    return Rewritten([_dense(op, b, *sources)], warning=COPIED if differ and not requantized else "")


def _dense(op: SparseToDense, b: RuleBuilder, values: Value, default: Value) -> Value:
    indices, shape, type = op.indices, op.shape, op.output.type.stripped()
    if not (indices.is_constant and shape.is_constant and values.type.is_static):
        kind = i32 if type.storage == i16 else type.storage
        operands = [b.value(indices), b.value(shape), b.cast(values, kind), b.cast(default, kind)]
        return b.cast(b.emit(SparseToDense, operands, type.with_element(kind), **op.attributes), type.storage)
    dims = [int(d) for d in shape.array.reshape(-1)]
    count = math.prod(values.type.sizes)
    where = indices.array.reshape(-1, len(dims)).astype(np.int64)
    if ((where < 0) | (where >= dims)).any():
        raise NotApplicable(f"'{indices.name}' has an index outside of the result")
    source = sized.full(dims, count)
    source[tuple(where.T)] = np.arange(len(where)) if values.type.rank else 0  # the last of equal indices stays
    table = b.concat([b.reshape(values, [count]), b.reshape(default, [1])], 0)
    return gather_along(b, table, source)
