"""TFLite's arithmetic on plain tensors: int32 and smaller integers, which wrap, and floats where TOSA's operator is it.

    DIV          INTDIV, which truncates as the kernel does
    FLOOR_DIV    q = a / b truncated, less one where the remainder is not 0 and has another sign than b
    FLOOR_MOD    the remainder, plus b in the same case
    CUMSUM       log2(n) shifted additions
    RIGHT_SHIFT  arithmetic, by 0 to bits - 1 places: the kernel clamps the amount

Sources: kernels/add.cc, sub.cc, mul.cc, div.cc, floor_div.cc, floor_mod.cc, cumsum.cc, right_shift.cc, select.cc.
"""

from __future__ import annotations

import functools

import numpy as np

from tflq.dialects.tfl.arithmetic import (
    Add,
    AddN,
    Div,
    FloorDiv,
    FloorMod,
    Maximum,
    Minimum,
    Mul,
    SquaredDifference,
    Sub,
)
from tflq.dialects.tfl.bits import BitwiseXor, RightShift
from tflq.dialects.tfl.comparison import LogicalAnd, LogicalNot, LogicalOr, Select, SelectV2
from tflq.dialects.tfl.reduction import Cumsum
from tflq.dialects.tfl.unary import Abs, Neg, Sign
from tflq.dialects.tosa.arithmetic import Abs as TosaAbs
from tflq.dialects.tosa.arithmetic import IntDiv, Negate
from tflq.dialects.tosa.bits import BitwiseXor as TosaBitwiseXor
from tflq.dialects.tosa.bits import LogicalAnd as TosaLogicalAnd
from tflq.dialects.tosa.bits import LogicalNot as TosaLogicalNot
from tflq.ir.core import Op, Value
from tflq.ir.types import i1, i8, i16, i32, ui8
from tflq.numerics.activation import integer_activation_range
from tflq.tosa.lowering.elementwise import ordered, plain, stored
from tflq.tosa.lowering.floats import arithmetic as float_arithmetic
from tflq.tosa.lowering.registry import Refused, Tosa, lowering
from tflq.tosa.lowering.requantize import limited
from tflq.tosa.lowering.wide import in_int32

__all__: list[str] = []

_SELECTED = (i1, i8, i16, i32)


def _is_float(op: Op) -> bool:
    return op.operand(0).type.storage.is_float


def _activated(op: Op, t: Tosa, y: Value) -> Value:
    """With the fused activation, in the result's type."""
    activation = op.attributes.get("fused_activation_function", "NONE")
    if _is_float(op):
        return float_arithmetic.float_activation(t, y, activation)
    y = limited(y, t, *integer_activation_range(activation, i32.minimum, i32.maximum))
    return stored(y, op.result, t)


def _need_float(op: Op, t: Tosa) -> None:
    if _is_float(op):
        float_arithmetic.need_float(t, op.name.removeprefix("tfl.").upper())


@lowering(Add, Sub, Mul)
def arithmetic(op: Add | Sub | Mul, t: Tosa) -> Value:
    _need_float(op, t)
    x, y = plain(op.lhs, t), plain(op.rhs, t)
    return _activated(op, t, {"tfl.add": t.add, "tfl.sub": t.sub, "tfl.mul": t.mul}[op.name](x, y))


@lowering(AddN)
def add_n(op: AddN, t: Tosa) -> Value:
    """In the kernel's order: one after another. Source: kernels/add_n.cc."""
    _need_float(op, t)
    in_int32(op, t)
    first, *rest = (plain(v, t) for v in op.operands if v is not None)
    return functools.reduce(t.add, rest, first)


@lowering(Maximum, Minimum)
def extreme(op: Maximum | Minimum, t: Tosa) -> Value:
    _need_float(op, t)
    found = t.binary(op.name.removeprefix("tfl."), ordered(op.lhs, t), ordered(op.rhs, t))
    return t.cast(found, i8) if op.result.type.storage == ui8 else stored(found, op.result, t)


@lowering(SquaredDifference)
def squared_difference(op: SquaredDifference, t: Tosa) -> Value:
    _need_float(op, t)
    difference = t.sub(plain(op.lhs, t), plain(op.rhs, t))
    return stored(t.mul(difference, difference), op.result, t)


@lowering(Abs)
def absolute(op: Abs, t: Tosa) -> Value:
    _need_float(op, t)
    return stored(t.unary(TosaAbs, plain(op.input, t)), op.result, t)


@lowering(Neg)
def negate(op: Neg, t: Tosa) -> Value:
    _need_float(op, t)
    x = plain(op.input, t)
    if _is_float(op):
        return t.unary(Negate, x, input1_zp=0, output_zp=0)
    return stored(t.sub(t.constant(np.asarray(0)), x), op.result, t)


@lowering(Sign)
def sign(op: Sign, t: Tosa) -> Value:
    x = plain(op.input, t)
    if _is_float(op):
        return float_arithmetic.float_sign(t, x)
    return stored(limited(x, t, -1, 1), op.result, t)


@lowering(Div)
def divide(op: Div, t: Tosa) -> Value:
    x, y = plain(op.lhs, t), plain(op.rhs, t)
    quotient = float_arithmetic.float_div(t, x, y) if _is_float(op) else t.binary(IntDiv, x, y)
    return _activated(op, t, quotient)


@lowering(FloorDiv, FloorMod)
def floor_division(op: FloorDiv | FloorMod, t: Tosa) -> Value:
    x, y = plain(op.lhs, t), plain(op.rhs, t)
    if _is_float(op):
        floats = {"tfl.floor_div": float_arithmetic.float_floor_div, "tfl.floor_mod": float_arithmetic.float_floor_mod}
        return floats[op.name](t, x, y)
    quotient = t.binary(IntDiv, x, y)
    rest = t.sub(x, t.mul(quotient, y))
    zero = t.constant(np.asarray(0))
    # the remainder is 0 or has the dividend's sign; with the divisor's, their exclusive or is not negative
    other = t.greater(zero, t.binary(TosaBitwiseXor, rest, y))
    off = t.binary(TosaLogicalAnd, other, t.unary(TosaLogicalNot, t.equal(rest, zero)))
    if isinstance(op, FloorDiv):
        return stored(t.sub(quotient, t.cast(off, i32)), op.result, t)
    return stored(t.add(rest, t.select(off, y, zero)), op.result, t)


@lowering(LogicalAnd, LogicalOr, LogicalNot)
def logical(op: LogicalAnd | LogicalOr | LogicalNot, t: Tosa) -> Value:
    name, values = op.name.removeprefix("tfl."), t.values(op.operands)
    return t.unary(name, *values) if len(values) == 1 else t.binary(name, *values)


@lowering(BitwiseXor)
def exclusive_or(op: BitwiseXor, t: Tosa) -> Value:
    """Of uint8s less 128 the sign bits cancel, and the result's has to be set again."""
    storage = op.result.type.storage
    if storage.bits > 32 or (not storage.signed and storage != ui8):
        raise Refused(f"TOSA has no {storage}")
    found = t.binary(TosaBitwiseXor, *t.values(op.operands))
    return t.binary(TosaBitwiseXor, found, t.constant(np.asarray(-128), i8)) if storage == ui8 else found


@lowering(RightShift)
def right_shift(op: RightShift, t: Tosa) -> Value:
    amount = limited(plain(op.rhs, t), t, 0, op.result.type.storage.bits - 1)
    return stored(t.arithmetic_right_shift(plain(op.lhs, t), amount), op.result, t)


@lowering(Select, SelectV2)
def select(op: Select | SelectV2, t: Tosa) -> Value:
    """SELECT's condition may be one of the first dim's; SELECT_V2 broadcasts."""
    condition, x, y = t.values(op.operands)
    if x.type.storage not in _SELECTED and not x.type.storage.is_float:
        raise Refused(f"'{op.result.name}' is {x.type.storage}, which TOSA has not")
    rank = op.result.type.rank or 0
    if isinstance(op, Select) and condition.type.rank == 1 and rank > 1:
        condition = t.reshape(condition, (*(condition.type.shape or ()), *(1,) * (rank - 1)))
    return t.select(condition, x, y)


@lowering(Cumsum)
def cumulative_sum(op: Cumsum, t: Tosa) -> Value:
    x, axis = op.input, op.axis
    if x.type.storage != i32 and not x.type.storage.is_float:
        raise Refused(f"'{x.name}' is {x.type.storage}, which TOSA does not add")
    _need_float(op, t)
    if not axis.is_constant or x.type.shape is None:
        raise Refused("the axis or the rank is not known")
    along = int(axis.array.reshape(())) % len(x.type.shape)
    size = x.type.shape[along]
    if size is None:
        raise Refused(f"the size of '{x.name}' along the axis is not known")
    back = bool(op.reverse)
    total = t.value(x)
    if op.exclusive:
        total = _moved(total, along, 1, back, t)
    step = 1
    while step < size:
        total = t.add(total, _moved(total, along, step, back, t))
        step *= 2
    return total


def _moved(x: Value, axis: int, step: int, back: bool, t: Tosa) -> Value:
    """x moved along an axis by some places, zeros moved in: towards its start, or its end."""
    shape = x.type.shape or ()
    padding = [((0, step) if back else (step, 0)) if a == axis else (0, 0) for a in range(len(shape))]
    start = [step if back and a == axis else 0 for a in range(len(shape))]
    return t.slice(t.pad(x, padding), start, shape)
