"""Comparisons. TOSA compares int32 and floats; truth values are equal if their exclusive or is false.

TFLite's comparisons of plain integers are of the integers as they are. Source: kernels/comparisons.cc.
"""

from __future__ import annotations

from tflq.dialects.tfl.comparison import NotEqual
from tflq.dialects.tosa.bits import LogicalNot, LogicalXor
from tflq.dialects.tosa.comparison import Greater
from tflq.ir.core import Op, Value
from tflq.ir.types import i1
from tflq.tosa.lowering.elementwise import ordered
from tflq.tosa.lowering.low_word import greater_wide, is_wide_sum
from tflq.tosa.lowering.registry import Tosa, lowering

__all__: list[str] = []

_NAMES = ("equal", "greater", "greater_equal")
_SWAPPED = {"tfl.less": "greater", "tfl.less_equal": "greater_equal"}


@lowering(*(f"{dialect}.{name}" for dialect in ("tosa", "tfl") for name in _NAMES), *_SWAPPED)
def compare(op: Op, t: Tosa) -> Value:
    x, y = op.operand(0), op.operand(1)
    if x.type.storage == i1 and op.name.endswith(".equal"):
        return t.unary(LogicalNot, t.binary(LogicalXor, t.value(x), t.value(y)))
    if isinstance(op, Greater) and (is_wide_sum(x) or is_wide_sum(y)):
        return greater_wide(x, y, t)
    left, right = ordered(x, t), ordered(y, t)
    if op.name in _SWAPPED:
        left, right = right, left
    name = _SWAPPED.get(op.name) or op.name.partition(".")[2]
    return {"equal": t.equal, "greater": t.greater, "greater_equal": t.greater_equal}[name](left, right)


@lowering(NotEqual)
def not_equal(op: NotEqual, t: Tosa) -> Value:
    x, y = op.lhs, op.rhs
    if x.type.storage == i1:
        return t.binary(LogicalXor, t.value(x), t.value(y))
    return t.unary(LogicalNot, t.equal(ordered(x, t), ordered(y, t)))
