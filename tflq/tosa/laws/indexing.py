"""Laws of GATHER, SCATTER and TABLE (TOSA 1.0, sections 2.9 and 2.4)."""

from __future__ import annotations

import numpy as np

from tflq.dialects.inference import text
from tflq.dialects.tosa.indexing import Gather, Scatter, Table
from tflq.ir.core import Value
from tflq.tosa.laws.registry import Context, Violations, bounds, dims, law, of_rank, result_is

__all__: list[str] = []

_ENTRIES = {"i8": 256, "i16": 513}


@law(Table)
def table(op: Table, _: Context) -> Violations:
    yield from result_is(op)
    yield from of_rank(op, None, 1)
    entries, found = _ENTRIES.get(op.input.type.storage.name), dims(op.table)
    if not op.table.is_constant:
        yield "the table is not a constant"
    if entries is not None and found != (entries,):
        yield f"a table of {text(found)}, where {op.input.type.storage} needs {entries} entries"


def _indices(value: Value, rows: int | None) -> Violations:
    """Constant indices among the rows."""
    if value.is_constant and value.array.size and rows is not None:
        yield from bounds("an index", [int(value.array.min()), int(value.array.max())], 0, rows - 1)


@law(Gather)
def gather(op: Gather, _: Context) -> Violations:
    if wrong := list(of_rank(op, 3, 2)):
        yield from wrong
        return
    yield from _indices(op.indices, dims(op.values)[1])
    yield from result_is(op)


@law(Scatter)
def scatter(op: Scatter, _: Context) -> Violations:
    if wrong := list(of_rank(op, 3, 2, 3)):
        yield from wrong
        return
    values, indices = dims(op.values_in), dims(op.indices)
    if values[1] is not None and indices[1] is not None and indices[1] > values[1]:
        yield f"{indices[1]} indices into {values[1]} rows"
    yield from _indices(op.indices, values[1])
    if op.indices.is_constant and (np.diff(np.sort(op.indices.array, axis=1), axis=1) == 0).any():
        yield "an index twice"
    yield from result_is(op)
