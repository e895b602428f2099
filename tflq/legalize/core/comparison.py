"""Comparison and choice."""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.dialects.arith.comparison import COMPARE_FLOAT, COMPARE_INTEGER, CmpF, CmpI, Select
from tflq.dialects.declare import Operator
from tflq.dialects.math.classes import IsFinite, IsInf, IsNaN
from tflq.dialects.tfl import comparison as tfl
from tflq.dialects.tfl.arithmetic import Add
from tflq.dialects.tfl.unary import Abs
from tflq.dialects.tosa.bits import LogicalNot, LogicalOr
from tflq.ir.core import Op, Value
from tflq.ir.types import f32, i1, i32, i64
from tflq.legalize.core.emitter import CoreEmitter
from tflq.legalize.core.registry import form

__all__: list[str] = []

_ORDERED: Final[dict[str, type[Operator]]] = {
    "eq": tfl.Equal,
    "gt": tfl.Greater,
    "ge": tfl.GreaterEqual,
    "lt": tfl.Less,
    "le": tfl.LessEqual,
}
"""Which hold of NaN never."""
_OPPOSITE: Final = {"gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}


def _not(b: CoreEmitter, x: Value) -> Value:
    return b.emit(LogicalNot, [x])


@form(CmpI)
def _integers(op: CmpI, b: CoreEmitter, x: Value, y: Value) -> Value:
    storage, word = x.type.storage, COMPARE_INTEGER[op.predicate]
    if storage == i64:
        if word[0] == "u":
            turned = b.constant(np.int64(-(1 << 63)), i64)
            x, y = (b.emit(Add, [v, turned], fused_activation_function="NONE") for v in (x, y))
        if word == "ne":
            return _not(b, b.emit(tfl.Equal, [x, y], i1))
        return b.emit(_ORDERED[word[-2:]], [x, y], i1)
    if word[0] == "u" and storage == i32:
        x, y = (b.add(v, b.constant(-(1 << 31))) for v in (x, y))
    elif word[0] == "u":
        x, y = b.unsigned(x), b.unsigned(y)
    else:
        x, y = b.signed(x), b.signed(y)
    match word[-2:]:
        case "eq":
            return b.equal(x, y)
        case "ne":
            return _not(b, b.equal(x, y))
        case "gt":
            return b.greater(x, y)
        case "ge":
            return b.greater_equal(x, y)
        case "lt":
            return b.greater(y, x)
        case _:
            return b.greater_equal(y, x)


@form(CmpF)
def _floats(op: CmpF, b: CoreEmitter, x: Value, y: Value) -> Value:
    word = COMPARE_FLOAT[op.predicate]
    if word in ("true", "false"):
        same = b.emit(tfl.Equal, [x, y], i1)
        always = b.emit(LogicalOr, [same, _not(b, same)])
        return always if word == "true" else _not(b, always)
    if word in ("ord", "uno"):
        number = [_not(b, b.emit(tfl.Equal, [v, v], i1)) for v in (x, y)]
        unordered = b.emit(LogicalOr, number)
        return unordered if word == "uno" else _not(b, unordered)
    ordered, test = word[0] == "o", word[1:]
    if test == "ne" or (test == "eq" and not ordered):
        apart = b.emit(LogicalOr, [b.emit(tfl.Less, [x, y], i1), b.emit(tfl.Greater, [x, y], i1)])
        if word == "one":
            return apart
        return _not(b, apart) if word == "ueq" else _not(b, b.emit(tfl.Equal, [x, y], i1))
    if ordered:
        return b.emit(_ORDERED[test], [x, y], i1)
    return _not(b, b.emit(_ORDERED[_OPPOSITE[test]], [x, y], i1))


@form(Select)
def _select(op: Select, b: CoreEmitter, condition: Value, x: Value, y: Value) -> Value:
    storage = x.type.storage
    if storage == f32:
        reaches = [b.reach(v) for v in (x, y)]
        known = [reach for reach in reaches if reach is not None]
        return b.within(b.emit(tfl.SelectV2, [condition, x, y]), max(known) if len(known) == 2 else None)
    if storage == i64:
        return b.emit(tfl.SelectV2, [condition, x, y])
    if storage == i1:
        return b.narrowed(b.select(condition, b.cast(x, i32), b.cast(y, i32)), i1)
    return b.cast(b.select(condition, b.cast(x, i32), b.cast(y, i32)), storage)


@form(IsNaN)
def _is_nan(op: IsNaN, b: CoreEmitter, x: Value) -> Value:
    return _not(b, b.emit(tfl.Equal, [x, x], i1))


@form(IsInf)
def _is_infinite(op: IsInf, b: CoreEmitter, x: Value) -> Value:
    return b.emit(tfl.Equal, [b.emit(Abs, [x]), b.constant(np.inf, f32)], i1)


@form(IsFinite)
def _is_finite(op: Op, b: CoreEmitter, x: Value) -> Value:
    return b.emit(tfl.Less, [b.emit(Abs, [x]), b.constant(np.inf, f32)], i1)
