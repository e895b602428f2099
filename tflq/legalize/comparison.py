"""Comparisons, WHERE, and operators that take the bits of stored integers.

EQUAL and its kin on 8 bits, EQUAL and NOT_EQUAL on int16 compare ((x - zero_point) << 8) * scale of both operands, each
rounded to int32 (`tflq.numerics.elementwise`). So with small scales neighbouring values are equal. Where the operands
share parameters that keep all their values apart, or where parameters must hold, the stored integers are compared. They
are also compared on int16 by LESS and its kin, on int32 and int64, whatever their parameters. WHERE takes the stored
integers as truth values.
Sources: kernels/comparisons.cc, kernels/internal/reference/comparisons.h, kernels/where.cc, bitwise_xor.cc,
right_shift.cc, bitcast.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from tflq.dialects.tfl.casts import Bitcast
from tflq.dialects.tfl.comparison import (
    BitwiseXor,
    Comparison,
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
    RightShift,
    Select,
    SelectV2,
    Where,
)
from tflq.dialects.tfl.shape import BroadcastArgs, Fill, Rank, Shape
from tflq.dialects.tosa.elementwise import LogicalNot
from tflq.ir.ops import Value
from tflq.ir.types import UniformQuantizedType, i1, i8, i16, i32, i64, ui8
from tflq.legalize.grid import centred_by, entry_of, grid_of
from tflq.legalize.movement import emit_unchanged, move
from tflq.legalize.probing import centred, kernel_name, per_layer, zero_point_of
from tflq.legalize.rule import Answer, NotApplicable, Refusing, Rewritten, RuleBuilder, rule
from tflq.numerics.elementwise import LEFT_SHIFT, compared, compared_one_by_one, unsettled
from tflq.numerics.signless import comparing_factors

_RAW = "the kernel compares the stored integers, though the operands have different quantization parameters"
_PAIRS = 1 << 16
"""The most pairs of values that are tried."""
_FUNCTIONS: Final[Mapping[type[Comparison], Callable[..., np.ndarray]]] = {
    Equal: np.equal,
    NotEqual: np.not_equal,
    Less: np.less,
    LessEqual: np.less_equal,
    Greater: np.greater,
    GreaterEqual: np.greater_equal,
}
_SIGN = "at a scale above 1 the kernel divides by a negative power of two"
_REACH = 1 << 15
_NOTE = "no kernel computes it; the real values, compared exactly"


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
    with Refusing("the kernel has no answer: "):
        if elements[0] == elements[1] and _distinct(elements[0]):
            return _raw(op, b)
        if not b.probing and any(unsettled(e.scale, e.storage.bits) for e in elements):
            undefined = "the kernel's result is undefined in C++"
            raise NotApplicable(undefined, unsettled="" if _agrees(op, elements) else _SIGN)
        ready = [_scaled(b, value, element) for value, element in zip((first, second), elements, strict=True)]
    if max(e.scale for e in elements) > 1:
        b.note_undefined(_SIGN)
    return Rewritten([outcome(op, b, *ready)])


def _agrees(op: Comparison, elements: Sequence[UniformQuantizedType]) -> bool:
    """Whether the kernels' vector and scalar code both give what the parameters say, for any two values."""
    values = [_stored_values(v) for v in (op.lhs, op.rhs)]
    if math.prod(v.size for v in values) > _PAIRS:
        return False
    x, y = (v - e.zero_point for v, e in zip(values, elements, strict=True))
    function = _FUNCTIONS[type(op)]
    numbers = [np.where(v == 0, 0.0, np.where(v == 0, 1, v) * e.scale) for v, e in zip((x, y), elements, strict=True)]
    real = function(numbers[0][:, None], numbers[1][None])
    for code in (compared, compared_one_by_one):
        first, second = (code(v, e.scale) for v, e in zip((x, y), elements, strict=True))
        if (function(first[:, None], second[None]) != real).any():
            return False
    return True


def _stored_values(value: Value) -> np.ndarray:
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
    """An operand scaled as the kernel compares it, as i32."""
    multiplier = b.kernel_set.comparison(element)
    x = centred(b, operand, element)
    if multiplier.shift > 0:
        positive = b.greater_equal(x, 0)
        return b.select(positive, 1, -1)
    return b.rescale(b.mul(x, 1 << LEFT_SHIFT), multiplier)


def _raw(op: Comparison, b: RuleBuilder, warning: str = "") -> Rewritten:
    """The stored integers compared."""
    operands = [b.value(op.lhs), b.value(op.rhs)]
    wide = [x if x.type.storage is i64 else b.cast(x, i32) for x in operands]
    return Rewritten([outcome(op, b, *wide)], warning=warning)


def outcome(op: Comparison, b: RuleBuilder, x: Value, y: Value) -> Value:
    """A comparison of i32, by TOSA's EQUAL, GREATER and GREATER_EQUAL."""
    match op:
        case Equal():
            return b.equal(x, y)
        case NotEqual():
            return b.emit(LogicalNot, [b.equal(x, y)])
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
        plain = b.emit(NotEqual, b.alike(wide, zero), wide.type.with_element(i1))
    elif plain.type.storage.bits == 16:
        plain = b.cast(plain, i32)
    places = emit_unchanged(op, b, [plain])
    raw = "the kernel takes the stored integers and ignores scales and zero points"
    return Rewritten(places, warning=raw if zero != 0 and not b.real else "")


rule(Select, SelectV2, Shape, Rank, Fill)(move)


@rule(BitwiseXor, RightShift, BroadcastArgs)
def stored(op: BitwiseXor | RightShift | BroadcastArgs, b: RuleBuilder) -> Answer:
    """result = the kernel's, of the stored integers, whatever they stand for."""
    operands = [None if v is None else b.value(v) for v in op.operands]
    kind = op.lhs.type.storage
    types = [v.type.with_element(kind if v.type.quantized else v.type.element) for v in op.results]
    pairs = zip(emit_unchanged(op, b, operands, types), op.results, strict=True)
    results = [b.cast(new, old.type.storage) for new, old in pairs]
    return Rewritten(results, note=f"{kernel_name(op)} takes the stored integers, whatever they stand for")


@rule(Bitcast)
def bitcast(op: Bitcast, b: RuleBuilder) -> Answer:
    """result = the same bits. Integers of one width are cast; between 8 and 16 bits, parts are shifted."""
    x, result = b.value(op.input), op.result.type.stripped()
    note = "BITCAST takes the stored integers, whatever they stand for"
    widths = x.type.storage.bits, result.storage.bits
    rank, open_dims = x.type.rank, x.type.dims.count(None)
    if widths[0] == widths[1] and x.type.storage.is_integer and result.storage.is_integer:
        return Rewritten([b.cast(x, result.storage)], note=note)
    if rank is not None and not open_dims and widths == (16, 8):
        low = b.cast(x, i32)
        high = b.arithmetic_right_shift(low, 8)
        shape = [*x.type.dims, 1]
        parts = [b.reshape(b.cast(part, result.storage), shape) for part in (low, high)]
        return Rewritten([b.concat(parts, len(shape) - 1)], note=note)
    if rank and not open_dims and widths == (8, 16):
        wide, start, size = b.cast(x, i32), [0] * (rank - 1), list(x.type.dims)[:-1]
        low, high = (b.slice(wide, (*start, place), (*size, 1)) for place in (0, 1))
        low = b.bitwise_and(low, 255)
        whole = b.add(b.mul(high, 256), low)
        return Rewritten([b.reshape(b.cast(whole, result.storage), size)], note=note)
    return Rewritten(emit_unchanged(op, b, [x]), note=note)


@rule(Equal, NotEqual, Greater, GreaterEqual, Less, LessEqual, order=2)
def compare_real(op: Comparison, b: RuleBuilder) -> Answer:
    """The real values, where no kernel compares them: scales per axis, mixed storage types, parameters that must hold.

    x s1 and y s2, x and y less their zero points, compare as x A and y B do, with small integers A and B
    (`numerics.signless`): exactly, in int32.
    """
    operands = op.lhs, op.rhs
    rank = max(v.type.rank or 0 for v in operands)
    grids = [grid_of(v, rank) for v in operands]
    reach = max(g.reach for g in grids)
    if reach > _REACH:
        raise NotApplicable(f"{kernel_name(op)} on int16 with zero points leaves 32 bits")
    first, second = np.broadcast_arrays(grids[0].scales, grids[1].scales)
    scaled = []
    for operand, grid, factor in zip(operands, grids, comparing_factors(first, second, reach), strict=True):
        x = centred_by(b, operand, grid)
        scaled.append(x if (factor == 1).all() else b.mul(x, entry_of(b, factor, x.type.rank or 0)))
    return Rewritten([outcome(op, b, *scaled)], note=_NOTE)
