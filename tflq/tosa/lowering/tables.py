"""Tables. TABLE is of int8 to int8, and of int16 in steps of 128, interpolated; the others are GATHERs.

The interpolation is (base << 7) + (next - base) * (x & 127); TABLE takes no difference that int16 does not hold.

An 8-bit TABLE holds the entry of the least value first, for uint8 less 128 as for uint8.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.ext.tables import Table2D, Table16Bit
from tflq.dialects.tosa.indexing import Table
from tflq.ir.core import Value, constant
from tflq.ir.types import i8, i16, i32
from tflq.tosa.lowering.registry import Tosa, lowering

__all__: list[str] = []


@lowering(Table)
def table(op: Table, t: Tosa) -> Value:
    """TABLE; of int8 to another type, the entry is gathered."""
    x, entries = t.value(op.input), t.value(op.table)
    if x.type.storage == i16:
        slopes = np.diff(entries.array.astype(np.int32))
        if np.abs(slopes).max() > i16.maximum:
            bases = entries.array[:-1].astype(np.int32) << 7
            whole = bases[:, None] + slopes[:, None] * np.arange(128)
            return _looked_up(x, constant(whole.astype(np.int32).reshape(-1)), t)
        t.need("int16", "TABLE of int16")
        return t.emit(Table, [x, entries], x.type.with_element(i32))
    if entries.type.storage == i8:
        return t.emit(Table, [x, entries], x.type)
    return _looked_up(x, entries, t)


@lowering(Table16Bit)
def table_16bit(op: Table16Bit, t: Tosa) -> Value:
    """An entry for each int16."""
    return _looked_up(t.value(op.input), t.value(op.table), t)


def _looked_up(x: Value, entries: Value, t: Tosa) -> Value:
    """The entry at x less the least value of its type."""
    index = t.add(t.cast(x, i32), t.constant(np.asarray(-x.type.storage.minimum)))
    return t.lookup(entries, index)


@lowering(Table2D)
def table_2d(op: Table2D, t: Tosa) -> Value:
    """The entry at 256 (x - least) + (y - least)."""
    x, y = (t.cast(t.value(v), i32) for v in (op.input1, op.input2))
    offset = 256 * -i8.minimum - i8.minimum
    row = t.add(t.mul(x, t.constant(np.asarray(256))), t.constant(np.asarray(offset)))
    return t.lookup(t.value(op.table), t.add(row, y))
