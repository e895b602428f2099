"""Comparisons, choices and logic. TOSA compares int32 and floats; truth values are equal if their exclusive or is
false.

TFLite's comparisons of plain integers are of the integers as they are. Sources: kernels/comparisons.cc, select.cc,
logical.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tflq.dialects.declare import Operator
from tflq.dialects.tfl.comparison import Comparison as TflComparison
from tflq.dialects.tfl.comparison import Equal as TflEqual
from tflq.dialects.tfl.comparison import Greater as TflGreater
from tflq.dialects.tfl.comparison import GreaterEqual as TflGreaterEqual
from tflq.dialects.tfl.comparison import Less, LessEqual, NotEqual, SelectV2
from tflq.dialects.tfl.comparison import LogicalAnd as TflLogicalAnd
from tflq.dialects.tfl.comparison import LogicalNot as TflLogicalNot
from tflq.dialects.tfl.comparison import LogicalOr as TflLogicalOr
from tflq.dialects.tfl.comparison import Select as TflSelect
from tflq.dialects.tosa.bits import LogicalAnd, LogicalNot, LogicalOr, LogicalXor
from tflq.dialects.tosa.comparison import Comparison, Equal, Greater, GreaterEqual, Select
from tflq.errors import Refused
from tflq.ir.core import Op, Value
from tflq.ir.types import i1, i8, i16, i32
from tflq.tosa.lowering.plain import ordered
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.rescale.low_word import greater_wide, is_wide_sum
from tflq.tosa.lowering.wide import narrow

__all__: list[str] = []

_KERNELS: Final[Mapping[type[Op], tuple[type[Operator], bool]]] = {
    TflEqual: (Equal, False),
    TflGreater: (Greater, False),
    TflGreaterEqual: (GreaterEqual, False),
    Less: (Greater, True),
    LessEqual: (GreaterEqual, True),
}
"""TOSA's operator for each of TFLite's, and whether its operands change places."""


@lowering(Equal, Greater, GreaterEqual, *_KERNELS)
def compare(op: Comparison | TflComparison, t: Tosa) -> Value:
    x, y = op.operands
    assert x is not None
    assert y is not None
    kind, swapped = _KERNELS.get(type(op), (type(op), False))
    if x.type.storage == i1 and kind is Equal:
        return t.emit(LogicalNot, [t.emit(LogicalXor, [t.value(x), t.value(y)])])
    if isinstance(op, Greater) and (is_wide_sum(x) or is_wide_sum(y)):
        return greater_wide(x, y, t)
    left, right = ordered(x, t), ordered(y, t)
    return t.emit(kind, (right, left) if swapped else (left, right))


@lowering(NotEqual)
def not_equal(op: NotEqual, t: Tosa) -> Value:
    x, y = op.lhs, op.rhs
    if x.type.storage == i1:
        return t.emit(LogicalXor, [t.value(x), t.value(y)])
    return t.emit(LogicalNot, [t.equal(ordered(x, t), ordered(y, t))])


@lowering(TflLogicalAnd, TflLogicalOr)
def logical(op: TflLogicalAnd | TflLogicalOr, t: Tosa) -> Value:
    return t.emit(LogicalAnd if isinstance(op, TflLogicalAnd) else LogicalOr, [t.value(op.lhs), t.value(op.rhs)])


@lowering(TflLogicalNot)
def logical_not(op: TflLogicalNot, t: Tosa) -> Value:
    return t.emit(LogicalNot, [t.value(op.input)])


@lowering(Select)
def select(op: Select, t: Tosa) -> Value:
    return t.select(t.value(op.condition), narrow(op.on_true, t), narrow(op.on_false, t))


_SELECTED = (i1, i8, i16, i32)


@lowering(TflSelect, SelectV2)
def kernel_select(op: TflSelect | SelectV2, t: Tosa) -> Value:
    """SELECT's condition may be one of the first dim's; SELECT_V2 broadcasts."""
    condition, x, y = (t.value(v) for v in (op.condition, op.on_true, op.on_false))
    if x.type.storage not in _SELECTED and not x.type.storage.is_float:
        raise Refused(f"'{op.result.name}' is {x.type.storage}, which TOSA does not have")
    rank = op.result.type.rank or 0
    if isinstance(op, TflSelect) and condition.type.rank == 1 and rank > 1:
        condition = t.reshape(condition, (*(condition.type.shape or ()), *(1,) * (rank - 1)))
    chosen, shape = t.select(condition, x, y), op.result.type.shape or ()
    return chosen if chosen.type.shape == shape else t.reshape(chosen, shape)
