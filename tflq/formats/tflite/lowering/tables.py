"""Tables on builtins: GATHER from a constant, by an index in int32.

    8 bits             entry x - minimum; int8 is read as uint8 by BITCAST, with the table's halves exchanged
    two of 8 bits      ext.table_2d: entry 256 (x - minimum) + y - minimum
    16 bits            ext.table_16bit: entry x + 2^15
    int16              TOSA's 513 entries: base * 128 + (next - base) * low, base at (x >> 7) + 256, low = x & 127

`rescale_float.py` has those of 8 bits in float32 kernels.

Source: TOSA 1.0 specification, TABLE.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from tflq.dialects.effects import is_variable
from tflq.dialects.forms import ModuleForm
from tflq.dialects.quant import Table2D, Table16Bit
from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tosa.elementwise import Add
from tflq.dialects.tosa.movement import Cast, Table
from tflq.formats.tflite.lowering.lowering import Tflite, lowering
from tflq.formats.tflite.lowering.shifts import right_shift
from tflq.ir.module import Module
from tflq.ir.ops import Buffer, Value, constant
from tflq.ir.types import i8, i16, i32, ui8
from tflq.transforms.pass_manager import Pass, PassResult


@lowering(Table)
def table(op: Table, k: Tflite) -> Value:
    x, entries = k.value(op.input), op.table.array
    if x in k.twins and entries.dtype.itemsize == 1:
        from tflq.formats.tflite.lowering.rescale_float import float_table

        return float_table(op, k)
    if x.type.storage is i16:
        return _interpolated(k, x, entries)
    signed = x.type.storage is i8
    wide = _before_narrowing(op.input, k)
    if wide is not None:
        return k.gather(constant(entries), wide)
    return k.gather(constant(np.roll(entries, entries.size // 2) if signed else entries), _index(k, x))


def _index(k: Tflite, x: Value) -> Value:
    """An 8-bit x as an index in int32: its bits read as uint8."""
    if x.is_constant:
        return k.constant(x.array.view(np.uint8))
    return k.cast(k.bitcast(x, ui8) if x.type.storage is i8 else x, i32)


def _before_narrowing(x: Value, k: Tflite) -> Value | None:
    """The index in int32 of an 8-bit x that is made of int32 numbers in its range; None if it is made of others."""
    cast, storage = x.producer, x.type.storage
    if not isinstance(cast, Cast) or cast.input.type.storage != i32 or not k.is_inner(x):
        return None
    low, high = k.ranges.of(cast.input)
    if low < storage.minimum or high > storage.maximum:
        return None
    total, offset = cast.input.producer, -storage.minimum
    if isinstance(total, Add) and total.input2.is_constant and total.input2.array.size == 1 and k.is_inner(cast.input):
        return k.add(k.value(total.input1), total.input2.array.reshape(()) + offset)
    return k.add(k.value(cast.input), offset)


def _interpolated(k: Tflite, x: Value, entries: np.ndarray) -> Value:
    wide = k.cast(x, i32)
    above = right_shift(k, wide, k.constant(7))
    low = k.sub(wide, k.mul(above, 128))
    index = k.add(above, 256)
    values = entries.astype(np.int32)
    base, slope = constant(values[:-1] << 7), constant(np.diff(values))
    return k.add(k.gather(base, index), k.mul(k.gather(slope, index), low))


@lowering(Table2D)
def table_2d(op: Table2D, k: Tflite) -> Value:
    if k.mac == "float32":
        from tflq.formats.tflite.lowering.rescale_float import float_table_2d

        total = float_table_2d(op, k)
        if total is not None:
            return total
    x, y, entries = k.value(op.input1), k.value(op.input2), op.table.array.reshape(256, 256)
    for axis, value in enumerate((x, y)):
        if value.type.storage is i8:
            entries = np.roll(entries, 128, axis)
    rows = k.constant(_index(k, x).array * 256) if x.is_constant else k.mul(_index(k, x), 256)
    index = k.add(rows, _index(k, y))
    return k.gather(constant(np.ascontiguousarray(entries.reshape(-1))), index)


@lowering(Table16Bit)
def table_16bit(op: Table16Bit, k: Tflite) -> Value:
    index = k.add(k.cast(k.value(op.input), i32), 1 << 15)
    return k.gather(op.table, index)


# Equal tables become one: selection makes a constant for each operator, of up to 64 KiB. Only tables that GATHER reads
# are compared, since weights are hardly ever equal; CSE merges constants that share a buffer, and small ones by itself.

_LEAST: Final = 4096
"""Bytes up to which CSE compares constants by content."""


class ShareTables(Pass):
    """Equal tables that GATHER looks up share their bytes, in whichever function."""

    name: ClassVar[str] = "share-tables"
    takes: ClassVar[ModuleForm] = "kernels"
    runs_on: ClassVar[tuple[type, ...]] = (Gather,)

    def run(self, module: Module) -> PassResult:
        known: dict[int, list[Buffer]] = {}
        shared = False
        for op in (op for function in module.functions for op in function.ops_of(Gather)):
            if not op.input.is_constant or is_variable(op.input):
                continue
            buffer = op.input.buffer
            if buffer is None or buffer.external or not _LEAST < buffer.data.size <= 1 << 16:
                continue
            alike = known.setdefault(hash(buffer.data.tobytes()), [])
            first = next((b for b in alike if b is buffer or np.array_equal(b.data, buffer.data)), buffer)
            if first is buffer:
                alike.append(buffer)
            else:
                op.input.buffer, shared = first, True
        return PassResult(module, shared)
