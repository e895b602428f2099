"""Functions of one tensor of 8 or 16 bits as tables of the real function, one for each index of a quantized axis.

One set of parameters: TABLE, or GATHER of 65536 entries. More: GATHER at stored - least + span * index, from the tables
one after another. Linear functions of int16 are scaled instead where the tables would be large.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np

from tflq.dialects.tfl.indexing import Gather
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, TensorType, i32
from tflq.legalize.real.generic.grid import Grid, centred_by, entry_of, finished
from tflq.legalize.rule import NotApplicable, RuleBuilder
from tflq.numerics.real_tables import real_table
from tflq.numerics.tables import FloatFunction

__all__ = ["check_size", "entries_by", "looked_up_by", "requantized_by", "restored_by"]

_ENTRIES = 1 << 20
"""Tables of more entries than these together are not made."""


def looked_up_by(b: RuleBuilder, operand: Value, source: Grid, target: Grid, function: FloatFunction) -> Value:
    """The real function of a tensor, rounded half away from zero."""
    grids = (source.scales, source.zeros, target.scales, target.zeros)
    check_size(source, *grids)
    in_scales, in_zeros, out_scales, out_zeros = (g[..., None] for g in grids)
    dtypes = source.storage.dtype, target.storage.dtype
    table = real_table(function, dtypes[0], in_scales, in_zeros, out_scales, out_zeros, dtypes[1])
    return entries_by(b, b.value(operand), table, target.storage)


def check_size(source: Grid, *grids: np.ndarray) -> None:
    """NotApplicable if a table for each set of parameters would be too large."""
    count = math.prod(np.broadcast_shapes(*(g.shape for g in grids)))
    entries = count << source.storage.bits
    if entries > _ENTRIES:
        raise NotApplicable(f"the tables of {count} sets of parameters would have {entries} entries")


def entries_by(b: RuleBuilder, plain: Value, table: np.ndarray, storage: ScalarType) -> Value:
    """The entry for each stored value of a table [..., 256 or 65536], whose first dims broadcast to the tensor."""
    cells, span = table.shape[:-1], table.shape[-1]
    count, entries = math.prod(cells), table.reshape(-1)
    if count == 1:
        return b.table(plain, entries)
    starts = np.arange(count).reshape(cells) * span - plain.type.storage.minimum
    index = b.add(b.cast(plain, i32), entry_of(b, starts, plain.type.rank or 0))
    type = TensorType(index.type.shape, storage)
    return b.emit(Gather, [b.constant(entries, storage), index], type, axis=0, batch_dims=0)


def requantized_by(b: RuleBuilder, operand: Value, source: Grid, target: Grid) -> Value:
    """The nearest stored values of what a tensor stands for."""
    return restored_by(b, b.value(operand), source, target)


def restored_by(b: RuleBuilder, plain: Value, source: Grid, target: Grid) -> Value:
    """The nearest stored values of what plain integers stand for."""
    if source.same(target):
        return plain
    if source.storage.bits == 8:
        with suppress(NotApplicable):
            return looked_up_by(b, plain, source, target, lambda x: x)
    x = centred_by(b, plain, source)
    return finished(b, x, source.scales / target.scales, target, (source.low, source.high))
