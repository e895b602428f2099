"""Elements looked up or placed by index: the kernels know no scales, and copy stored integers.

EMBEDDING_LOOKUP is GATHER of rows, ONE_HOT a choice by comparison with 0, 1, 2 ..., MATRIX_DIAG and MATRIX_SET_DIAG one
by a mask, BUCKETIZE a table; HASHTABLE_LOOKUP keeps its kernel. Sources: kernels/embedding_lookup.cc (EvalSimple),
hashtable_lookup.cc, one_hot.cc, matrix_diag.cc, matrix_set_diag.cc, bucketize.cc.
"""

from __future__ import annotations

import numpy as np

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
    Unique,
)
from tflq.dialects.tfl.runtime import version_info
from tflq.ir.core import Value
from tflq.ir.parameters import parameters
from tflq.ir.types import UniformQuantizedType, i1, i8, i16, i32, ui8
from tflq.legalize.real.generic.grid import grids_of
from tflq.legalize.real.generic.lookup import restored_by
from tflq.legalize.reference.generic.moved_parameters import parameters_differ, refused
from tflq.legalize.reference.generic.movement import COPIED, move, under
from tflq.legalize.rule import AS_STATED, Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import per_layer, zero_point_of

__all__: list[str] = []

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
    rows = b.emit(Gather, [b.value(table), b.value(ids)], result.type.stripped(), axis=0, batch_dims=0)
    if b.real and parameters_differ(op):
        return _under(b, rows, table, result)
    return Rewritten([rows], warning=COPIED if parameters_differ(op) else "")


def _under(b: RuleBuilder, plain: Value, source: Value, result: Value) -> Answer:
    """What is stored as in `source`, stored as in `result`."""
    return Rewritten([restored_by(b, plain, *grids_of(source, result))])


@rule(HashtableLookup)
def hashtable_lookup(op: HashtableLookup, b: RuleBuilder) -> Answer:
    """result = rows of the values, as they are stored; stored zeros where the key is not found."""
    values, result = op.values, op.result
    if values.type.storage != result.type.storage:
        raise NotApplicable(f"no kernel copies rows of {values.type.storage} to {result.type.storage}")
    types = [v.type.stripped() for v in op.results]
    rows, hits = b.op(op.name, [b.value(v) for v in op.operands if v], types, op.attributes, version_info(op)).results
    zeros = parameters(result.type)[1].any() if result.type.quantized else False
    some, all_found = _found(op.lookup, op.keys)
    differ = some and parameters_differ(op)
    warning = COPIED if differ else _ZEROS if zeros and not all_found else ""
    return Rewritten([rows, hits], warning=warning)


def _found(ids: Value, keys: Value) -> tuple[bool, bool]:
    """Whether some, and whether all of the ids may be among the keys. The kernel's search needs them in order."""
    if not (ids.is_constant and keys.is_constant) or (np.diff(keys.array.astype(np.int64)) <= 0).any():
        return True, False
    found = np.isin(ids.array, keys.array)
    return bool(found.any()), bool(found.all())


@rule(OneHot)
def one_hot(op: OneHot, b: RuleBuilder) -> Answer:
    """result = the stored on value where the index is the place along the axis, else the off value."""
    indices, depth, on, off = op.indices, op.depth, op.on, op.off
    if not depth.is_constant or indices.type.shape is None or on.type.storage != off.type.storage:
        raise NotApplicable(
            "the depth is not constant, the rank of the indices not known, or the values differ in type"
        )
    shape, axis = list(indices.type.shape), op.axis % (len(indices.type.shape) + 1)
    if shape.count(None) > 1:
        raise NotApplicable("more than one dim of the indices is not known")
    index = b.reshape(b.cast(b.value(indices), i32), [*shape[:axis], 1, *shape[axis:]])
    places = np.arange(int(depth.array.reshape(()))).reshape(-1, *[1] * (len(shape) - axis))
    differ = parameters_differ(op)
    plain = [b.value(on), b.value(off)]
    if differ and (b.real or refused(op)):
        ready = under(b, [on, off], op.result)
        if ready is None:
            raise NotApplicable(COPIED)
        plain = ready
    chosen = b.select(b.equal(index, b.constant(places)), *(b.reshape(v, []) for v in plain))
    return Rewritten([chosen], warning=COPIED if differ and not (b.real or refused(op)) else "")


@rule(MatrixDiag)
def matrix_diag(op: MatrixDiag, b: RuleBuilder) -> Answer:
    """result = the operand's last dim on a diagonal, and stored zeros."""
    x, shape = op.input, list(op.input.type.shape or ())
    if x.type.storage != op.result.type.storage:
        raise NotApplicable(_OTHER_STORAGE.format(x.type.storage, op.result.type.storage))
    if not shape or shape[-1] is None or shape.count(None) > 1:
        raise NotApplicable(f"the shape of '{x.name}' is not known")
    mask = b.constant(np.eye(shape[-1], dtype=bool), i1)
    fill = zero_point_of(x) or 0 if b.real else 0
    zero = b.constant(np.asarray(fill), x.type.storage)
    chosen = b.select(mask, b.reshape(b.value(x), [*shape, 1]), zero)
    if b.real and parameters_differ(op):
        one = isinstance(x.type.element, UniformQuantizedType)
        if not one:
            raise NotApplicable(COPIED)
        return _under(b, chosen, x, op.result)
    raw = not b.real and zero_point_of(x) != 0 and shape[-1] != 1
    return Rewritten([chosen], warning=_ZEROS if raw else "")


@rule(MatrixSetDiag)
def matrix_set_diag(op: MatrixSetDiag, b: RuleBuilder) -> Answer:
    """result = the operand with another diagonal."""
    x, diagonal = op.input, op.diagonal
    if not x.type.storage == diagonal.type.storage == op.result.type.storage:
        raise NotApplicable(_OTHER_STORAGE.format(diagonal.type.storage, op.result.type.storage))
    shape, inner = list(x.type.shape or ()), list(diagonal.type.shape or ())
    if len(shape) < 2 or None in shape[-2:] or inner.count(None) > 1:
        differ = f"{COPIED}; {AS_STATED}" if parameters_differ(op) else ""
        raise NotApplicable(f"the shape of '{x.name}' is not known", differ)
    rows, columns = shape[-2] or 0, shape[-1] or 0
    place = [*inner[:-1], rows, 1] if rows <= columns else [*inner[:-1], 1, columns]
    mask = b.constant(np.eye(rows, columns, dtype=bool), i1)
    ready = under(b, [diagonal, x], op.result) if b.real and parameters_differ(op) else None
    plain = [b.value(diagonal), b.value(x)] if ready is None else ready
    chosen = b.select(mask, b.reshape(plain[0], place), plain[1])
    return Rewritten([chosen], warning=COPIED if ready is None and parameters_differ(op) else "")


@rule(Bucketize)
def bucketize(op: Bucketize, b: RuleBuilder) -> Answer:
    """result = how many boundaries are not greater: a table of all stored values."""
    x = op.input
    elements = per_layer(op, [x])
    source = elements[0]
    if source.storage not in (i8, ui8, i16):
        raise NotApplicable(f"BUCKETIZE has no table for {source.storage}")
    values = np.arange(source.storage.minimum, source.storage.maximum + 1) - source.zero_point
    real = values.astype(np.float32) * np.float32(source.scale)
    boundaries = np.asarray(op.boundaries, np.float32)
    buckets = np.searchsorted(boundaries, real, side="right").astype(np.int32)
    return Rewritten([b.table(b.value(x), buckets)], note="no kernel takes it; the real function")


rule(Gather, GatherND, DynamicUpdateSlice, Unique)(move)
