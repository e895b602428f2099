"""Tables with an entry for every int16: GATHER by x + 2^15."""

from __future__ import annotations

from tflq.ir.core import Op, Value
from tflq.ir.types import i32
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


@lowering("ext.table_16bit")
def table_16bit(op: Op, k: Kernels) -> Value:
    index = k.add(k.cast(k.value(op.operand(0)), i32), k.constant(1 << 15))
    return k.gather(op.operand(1), index)
