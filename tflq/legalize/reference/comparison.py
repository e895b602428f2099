"""EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL and WHERE.

8 bits, and int16 of EQUAL and NOT_EQUAL: ((x - zero_point) << 8) * scale of either operand, each rounded to int32, are
compared (`tflq.numerics.comparison`). With small scales neighbouring values are equal then. Where the operands share
parameters that keep all their values apart, or where parameters must hold, the stored integers are compared. So are
int16 in the orders, int32 and int64, whatever their parameters. WHERE takes the stored integers for truth values.
Sources: kernels/comparisons.cc, kernels/internal/reference/comparisons.h, kernels/where.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from tflq.dialects.tfl.comparison import (
    Comparison,
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
    Select,
    SelectV2,
    Where,
)
from tflq.dialects.tfl.runtime import version_info
from tflq.dialects.tosa.bits import LogicalNot
from tflq.ir.core import Value
from tflq.ir.types import UniformQuantizedType, i1, i8, i16, i32, i64, ui8
from tflq.legalize.reference.generic.movement import move
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import centred, kernel_name, per_layer, zero_point_of
from tflq.numerics.comparison import LEFT_SHIFT, compared, compared_one_by_one, comparison_multiplier, unsettled

__all__ = ["outcome"]

_RAW = "the kernel compares the stored integers, though the operands have different quantization parameters"
_PAIRS = 1 << 16
"""Of values that are tried."""
_FUNCTIONS: Final[Mapping[type[Comparison], Callable[..., np.ndarray]]] = {
    Equal: np.equal,
    NotEqual: np.not_equal,
    Less: np.less,
    LessEqual: np.less_equal,
    Greater: np.greater,
    GreaterEqual: np.greater_equal,
}
_SIGN = "at a scale above 1 the kernel divides by a negative power of two"


@rule(Equal, NotEqual, Greater, GreaterEqual, Less, LessEqual)
def compare(op: Comparison, b: RuleBuilder) -> Answer:
    """The operands in the kernel's arithmetic, or as they are stored."""
    first, second = op.lhs, op.rhs
    storage = first.type.storage
    if storage not in (i8, ui8, i16, i32, i64) or second.type.storage != storage:
        raise NotApplicable(f"{kernel_name(op)} has no kernel for {storage} and {second.type.storage}")
    if storage in (i32, i64) or (storage is i16 and not isinstance(op, (Equal, NotEqual))):
        return _raw(op, b, "" if first.type.element == second.type.element else _RAW)
    elements = per_layer(op, [first, second])
    if b.real:
        if elements[0] == elements[1]:
            return _raw(op, b)
        raise NotApplicable("the kernel rounds the operands before it compares them")
    try:
        if elements[0] == elements[1] and _distinct(elements[0]):
            return _raw(op, b)
        if not b.probing and any(unsettled(e.scale, e.storage.bits) for e in elements):
            undefined = "the kernel's result is undefined in C++"
            raise NotApplicable(undefined, unsettled="" if _agrees(op, elements) else _SIGN)
        ready = [_scaled(b, value, element) for value, element in zip((first, second), elements, strict=True)]
    except ValueError as error:
        raise NotApplicable(f"the kernel has no answer: {error}") from error
    if max(e.scale for e in elements) > 1:
        b.note_undefined(_SIGN)
    return Rewritten([outcome(op, b, *ready)])


def _agrees(op: Comparison, elements: Sequence[UniformQuantizedType]) -> bool:
    """Whether the kernels' vector and scalar code both give what the parameters say of any two values."""
    found = [_held(v) for v in (op.lhs, op.rhs)]
    if math.prod(v.size for v in found) > _PAIRS:
        return False
    x, y = (v - e.zero_point for v, e in zip(found, elements, strict=True))
    function = _FUNCTIONS[type(op)]
    numbers = [np.where(v == 0, 0.0, np.where(v == 0, 1, v) * e.scale) for v, e in zip((x, y), elements, strict=True)]
    real = function(numbers[0][:, None], numbers[1][None])
    for code in (compared, compared_one_by_one):
        first, second = (code(v, e.scale) for v, e in zip((x, y), elements, strict=True))
        if (function(first[:, None], second[None]) != real).any():
            return False
    return True


def _held(value: Value) -> np.ndarray:
    """The stored values that a tensor can have, int64."""
    storage = value.type.storage
    if value.is_constant:
        return np.unique(value.array).astype(np.int64)
    return np.arange(storage.minimum, storage.maximum + 1)


def _distinct(element: UniformQuantizedType) -> bool:
    """Whether all values of a type stay apart when scaled."""
    storage = element.storage
    values = np.arange(storage.minimum, storage.maximum + 1) - element.zero_point
    return bool((np.diff(compared(values, element.scale)) > 0).all())


def _scaled(b: RuleBuilder, operand: Value, element: UniformQuantizedType) -> Value:
    """What the kernel compares of an operand, as i32."""
    multiplier = comparison_multiplier(element.scale)
    x = centred(b, operand, element)
    if multiplier.shift > 0:
        positive = b.greater_equal(x, b.constant(np.asarray(0)))
        return b.select(positive, b.constant(np.asarray(1)), b.constant(np.asarray(-1)))
    return b.rescale(b.mul(x, b.constant(np.asarray(1 << LEFT_SHIFT))), multiplier)


def _raw(op: Comparison, b: RuleBuilder, warning: str = "") -> Rewritten:
    """The stored integers compared."""
    operands = [b.value(op.lhs), b.value(op.rhs)]
    wide = [x if x.type.storage is i64 else b.cast(x, i32) for x in operands]
    return Rewritten([outcome(op, b, *wide)], warning=warning)


def outcome(op: Comparison, b: RuleBuilder, x: Value, y: Value) -> Value:
    """TOSA has EQUAL, GREATER and GREATER_EQUAL."""
    match op:
        case Equal():
            return b.equal(x, y)
        case NotEqual():
            same = b.equal(x, y)
            return b.emit(LogicalNot, [same])
        case Greater():
            return b.greater(x, y)
        case GreaterEqual():
            return b.greater_equal(x, y)
        case Less():
            return b.greater(y, x)
        case _:  # LessEqual
            return b.greater_equal(y, x)


@rule(Where)
def where(op: Where, b: RuleBuilder) -> Answer:
    """result = the places of stored integers other than 0: of real numbers other than 0 if that is the zero point."""
    x, zero = op.condition, zero_point_of(op.condition)
    plain = b.value(x)
    if b.real and zero:
        wide = b.cast(plain, i32)
        plain = b.emit(NotEqual, [wide, b.constant(np.asarray(zero))], wide.type.with_element(i1))
    elif plain.type.storage.bits == 16:
        plain = b.cast(plain, i32)
    found = b.op(op.name, [plain], [op.result.type.stripped()], op.attributes, version_info(op)).results
    raw = "the kernel takes the stored integers and ignores scales and zero points"
    return Rewritten(found, warning=raw if zero != 0 and not b.real else "")


rule(Select, SelectV2)(move)
