"""TFLite's arithmetic on plain tensors: int32 and smaller integers, which wrap, and floats where TOSA's operator is it.

    DIV          INTDIV, which truncates as the kernel does
    FLOOR_DIV    q = a / b truncated, less one where the remainder is not 0 and has another sign than b
    FLOOR_MOD    the remainder, plus b in the same case

Sources: kernels/add.cc, sub.cc, mul.cc, div.cc, floor_div.cc, floor_mod.cc.
"""

from __future__ import annotations

import functools

import numpy as np

from tflq.dialects.tfl.arithmetic import Add as TflAdd
from tflq.dialects.tfl.arithmetic import AddN, Div, FloorDiv, FloorMod, SquaredDifference
from tflq.dialects.tfl.arithmetic import Maximum as TflMaximum
from tflq.dialects.tfl.arithmetic import Minimum as TflMinimum
from tflq.dialects.tfl.arithmetic import Mul as TflMul
from tflq.dialects.tfl.arithmetic import Sub as TflSub
from tflq.dialects.tosa.arithmetic import IntDiv, Maximum, Minimum
from tflq.dialects.tosa.bits import BitwiseXor, LogicalAnd, LogicalNot
from tflq.ir.core import Op, Value
from tflq.ir.types import i8, i32, ui8
from tflq.numerics.activation import integer_activation_range
from tflq.tosa.lowering.floats import arithmetic as float_arithmetic
from tflq.tosa.lowering.plain import ordered, plain, stored
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.rescale.integers import limited
from tflq.tosa.lowering.wide import in_int32

__all__: list[str] = []


def _need_float(op: Op, t: Tosa, x: Value) -> None:
    if x.type.storage.is_float:
        float_arithmetic.need_float(t, op)


def _activated(op: TflAdd | TflSub | TflMul | Div, t: Tosa, y: Value) -> Value:
    """With the fused activation, in the result's type."""
    activation = op.fused_activation_function
    if y.type.storage.is_float:
        return float_arithmetic.float_activation(t, y, activation)
    y = limited(y, t, *integer_activation_range(activation, i32.minimum, i32.maximum))
    return stored(y, op.result, t)


@lowering(TflAdd, TflSub, TflMul)
def kernel_arithmetic(op: TflAdd | TflSub | TflMul, t: Tosa) -> Value:
    _need_float(op, t, op.lhs)
    x, y = plain(op.lhs, t), plain(op.rhs, t)
    compute = t.add if isinstance(op, TflAdd) else t.sub if isinstance(op, TflSub) else t.mul
    return _activated(op, t, compute(x, y))


@lowering(AddN)
def add_n(op: AddN, t: Tosa) -> Value:
    """In the kernel's order: one after another. Source: kernels/add_n.cc."""
    _need_float(op, t, op.result)
    in_int32(op, t)
    first, *rest = (plain(v, t) for v in op.operands if v is not None)
    return functools.reduce(t.add, rest, first)


@lowering(TflMaximum, TflMinimum)
def kernel_extreme(op: TflMaximum | TflMinimum, t: Tosa) -> Value:
    _need_float(op, t, op.lhs)
    found = t.emit(Maximum if isinstance(op, TflMaximum) else Minimum, [ordered(op.lhs, t), ordered(op.rhs, t)])
    return t.cast(found, i8) if op.result.type.storage == ui8 else stored(found, op.result, t)


@lowering(SquaredDifference)
def squared_difference(op: SquaredDifference, t: Tosa) -> Value:
    _need_float(op, t, op.lhs)
    difference = t.sub(plain(op.lhs, t), plain(op.rhs, t))
    return stored(t.mul(difference, difference), op.result, t)


@lowering(Div)
def divide(op: Div, t: Tosa) -> Value:
    x, y = plain(op.lhs, t), plain(op.rhs, t)
    quotient = float_arithmetic.float_div(t, x, y) if x.type.storage.is_float else t.emit(IntDiv, [x, y])
    return _activated(op, t, quotient)


@lowering(FloorDiv, FloorMod)
def floor_division(op: FloorDiv | FloorMod, t: Tosa) -> Value:
    x, y = plain(op.lhs, t), plain(op.rhs, t)
    if x.type.storage.is_float:
        floor_div, floor_mod = float_arithmetic.float_floor_div, float_arithmetic.float_floor_mod
        return (floor_div if isinstance(op, FloorDiv) else floor_mod)(t, x, y)
    quotient = t.emit(IntDiv, [x, y])
    rest = t.sub(x, t.mul(quotient, y))
    zero = t.constant(np.asarray(0))
    # the remainder is 0 or has the dividend's sign; with the divisor's, their exclusive or is not negative
    other = t.greater(zero, t.emit(BitwiseXor, [rest, y]))
    off = t.emit(LogicalAnd, [other, t.emit(LogicalNot, [t.equal(rest, zero)])])
    if isinstance(op, FloorDiv):
        return stored(t.sub(quotient, t.cast(off, i32)), op.result, t)
    return stored(t.add(rest, t.select(off, y, zero)), op.result, t)
