"""Tables with an entry for every int16: GATHER by x + 2^15."""

from __future__ import annotations

from tflq.dialects.ext.tables import Table16Bit
from tflq.ir.core import Value
from tflq.ir.types import i32
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


@lowering(Table16Bit)
def table_16bit(op: Table16Bit, k: Kernels) -> Value:
    index = k.add(k.cast(k.value(op.input), i32), k.constant(1 << 15))
    return k.gather(op.table, index)
