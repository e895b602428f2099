"""shared-tables: of two tables at the same index, the one that has the other's entries shifted is a shift.

    gather(t, i), gather(t >> n, i)   →   gather(t, i), gather(t, i) >> n, rounded

SOFTMAX adds up exponentials with fewer bits than those that it scales. A device then has the memory of one table.
"""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar

import numpy as np

from tflq.dialects.tosa.elementwise import ArithmeticRightShift
from tflq.dialects.tosa.movement import Gather
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.rewriting import rewrite_ops
from tflq.ir.types import i32
from tflq.transforms.pass_manager import Pass, PassResult


class SharedTables(Pass):
    """Computes an entry of a table from that of another, if it is the same with fewer bits."""

    name: ClassVar[str] = "shared-tables"
    runs_on: ClassVar[tuple[type, ...]] = (Gather,)

    def run(self, module: Module) -> PassResult:
        return PassResult.of(module, _share)


def _share(function: Function) -> bool:
    by_index: dict[Value, dict[Value, None]] = defaultdict(dict)
    for op in function.ops:
        if isinstance(op, Gather) and _is_table(op):
            by_index[op.indices][op.values] = None

    def shifted(op: Op) -> list[Op] | None:
        if not isinstance(op, Gather) or not _is_table(op):
            return None
        for table in by_index[op.indices]:
            bits = _bits_between(table.array, op.values.array)
            if bits:
                entry = Value(op.result.type)
                less = constant(np.full((1,) * len(op.result.type.sizes), bits, np.int32))
                whole = Op(op.name, [table, op.indices], [entry], {}, op.location)
                return [
                    whole,
                    Op(ArithmeticRightShift.op_name, [entry, less], [op.result], {"round": True}, op.location),
                ]
        return None

    return rewrite_ops(function, shifted)


def _is_table(op: Gather) -> bool:
    return op.of_table and op.values.type.storage == i32


def _bits_between(table: np.ndarray, other: np.ndarray) -> int:
    """By how many bits the entries of a table are shifted to those of another; 0 if they are not."""
    if table.size != other.size or table is other:
        return 0
    wide, narrow = table.reshape(-1).astype(np.int64), other.reshape(-1).astype(np.int64)
    top = int(np.argmax(np.abs(wide)))
    quotient = wide[top] / narrow[top] if narrow[top] else 0.0
    bits = round(np.log2(quotient)) if quotient > 1 else 0
    return bits if 0 < bits < 32 and np.array_equal((wide + (1 << bits >> 1)) >> bits, narrow) else 0
