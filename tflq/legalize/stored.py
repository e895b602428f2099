"""Operators whose kernels know no scales: stored integers are looked up, chosen, shifted, or taken for truth values.

EMBEDDING_LOOKUP is GATHER of rows, ONE_HOT a choice by comparison with 0, 1, 2 ..., MATRIX_DIAG and MATRIX_SET_DIAG one
by a mask, DENSIFY a constant; the others keep their kernel.
Sources: kernels/embedding_lookup.cc (EvalSimple), one_hot.cc, matrix_diag.cc, matrix_set_diag.cc, densify.cc, where.cc,
bitcast.cc, bitwise_xor.cc, right_shift.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.ir.core import Op, Value
from tflq.ir.types import UniformQuantizedType, i1, i8, i16, i32, ui8
from tflq.legalize.moved_parameters import parameters_differ
from tflq.legalize.movement import COPIED, version_of
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import kernel_name

__all__: list[str] = []


@rule("tfl.embedding_lookup")
def embedding_lookup(op: Op, b: RuleBuilder) -> Answer:
    """result = rows of the table, as they are stored."""
    ids, table, result = op.operand(0), op.operand(1), op.result
    if table.type.storage != result.type.storage or table.type.storage not in (i8, ui8, i16):
        return NotApplicable(f"no kernel copies rows of {table.type.storage} to {result.type.storage}")
    rows = b.emit("tfl.gather", [b.value(table), b.value(ids)], result.type.stripped(), axis=0, batch_dims=0)
    return Rewritten([rows], warning=COPIED if parameters_differ(op) else "")


@rule("tfl.one_hot")
def one_hot(op: Op, b: RuleBuilder) -> Answer:
    """result = the stored on value where the index is the place along the axis, else the off value."""
    indices, depth, on, off = (op.operand(i) for i in range(4))
    if not depth.is_constant or indices.type.shape is None or on.type.storage != off.type.storage:
        return NotApplicable(
            "the depth is not constant, the rank of the indices not known, or the values differ in type"
        )
    shape, axis = list(indices.type.shape), op.attributes["axis"] % (len(indices.type.shape) + 1)
    if shape.count(None) > 1:
        return NotApplicable("more than one dim of the indices is not known")
    index = b.reshape(b.cast(b.value(indices), i32), [*shape[:axis], 1, *shape[axis:]])
    places = np.arange(int(depth.array.reshape(()))).reshape(-1, *[1] * (len(shape) - axis))
    scalars = [b.reshape(b.value(v), []) for v in (on, off)]
    chosen = b.select(b.equal(index, b.constant(places)), *scalars)
    return Rewritten([chosen], warning=COPIED if parameters_differ(op) else "")


@rule("tfl.matrix_diag")
def matrix_diag(op: Op, b: RuleBuilder) -> Answer:
    """result = the operand's last dim on a diagonal, and stored zeros."""
    x, shape = op.operand(0), list(op.operand(0).type.shape or ())
    if x.type.storage != op.result.type.storage:
        return NotApplicable(_OTHER_STORAGE.format(x.type.storage, op.result.type.storage))
    if not shape or shape[-1] is None or shape.count(None) > 1:
        return NotApplicable(f"the shape of '{x.name}' is not known")
    mask = b.constant(np.eye(shape[-1], dtype=bool), i1)
    zero = b.constant(np.zeros((), x.type.storage.dtype), x.type.storage)
    chosen = b.select(mask, b.reshape(b.value(x), [*shape, 1]), zero)
    return Rewritten([chosen], warning="" if _zero_point(x) == 0 else "zeros are stored, whatever the zero point")


@rule("tfl.matrix_set_diag")
def matrix_set_diag(op: Op, b: RuleBuilder) -> Answer:
    """result = the operand with another diagonal."""
    x, diagonal = op.operand(0), op.operand(1)
    if not x.type.storage == diagonal.type.storage == op.result.type.storage:
        return NotApplicable(_OTHER_STORAGE.format(diagonal.type.storage, op.result.type.storage))
    shape, inner = list(x.type.shape or ()), list(diagonal.type.shape or ())
    if len(shape) < 2 or None in shape[-2:] or inner.count(None) > 1:
        return NotApplicable(f"the shape of '{x.name}' is not known")
    rows, columns = shape[-2] or 0, shape[-1] or 0
    place = [*inner[:-1], rows, 1] if rows <= columns else [*inner[:-1], 1, columns]
    mask = b.constant(np.eye(rows, columns, dtype=bool), i1)
    chosen = b.select(mask, b.reshape(b.value(diagonal), place), b.value(x))
    return Rewritten([chosen], warning=COPIED if parameters_differ(op) else "")


_OTHER_STORAGE = "no kernel copies {} to {}"


@rule("tfl.densify")
def densify(op: Op, b: RuleBuilder) -> Answer:
    """result = the dense array of a sparse constant, zeros as they are stored."""
    x = op.operand(0)
    if not x.is_constant or x.type.storage != op.result.type.storage:
        return NotApplicable(f"'{x.name}' is not a constant of the result's type, which is what the kernel takes")
    return Rewritten([b.identity(b.value(x))], warning=COPIED if parameters_differ(op) else "")


def _zero_point(value: Value) -> int | None:
    element = value.type.element
    return element.zero_point if isinstance(element, UniformQuantizedType) else None


@rule("tfl.bitcast", "tfl.bitwise_xor", "tfl.right_shift", "tfl.where")
def stored(op: Op, b: RuleBuilder) -> Answer:
    """result = the kernel's, of the stored integers."""
    operands = [None if v is None else b.value(v) for v in op.operands]
    made = b.op(op.name, operands, [v.type.stripped() for v in op.results], op.attributes, version_of(op))
    return Rewritten(made.results, warning=f"{kernel_name(op)} takes the stored integers, whatever they stand for")
