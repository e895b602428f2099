"""Operators of one operand: absolute values, signs, roots and functions of floats.

    sqrt      1 / RSQRT, right for 0 and infinity
    round     half to even, from the distance to the floor: what CAST does with ties is the device's

Sources: kernels/elementwise.cc, neg.cc, sign.cc, exp.cc, floor.cc, ceil.cc, round.h, zeros_like.cc.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.tfl.unary import Abs as TflAbs
from tflq.dialects.tfl.unary import Ceil as TflCeil
from tflq.dialects.tfl.unary import Cos as TflCos
from tflq.dialects.tfl.unary import Exp as TflExp
from tflq.dialects.tfl.unary import Floor as TflFloor
from tflq.dialects.tfl.unary import Log as TflLog
from tflq.dialects.tfl.unary import Neg, Round, Sign, Sqrt, Square, ZerosLike
from tflq.dialects.tfl.unary import Rsqrt as TflRsqrt
from tflq.dialects.tfl.unary import Sin as TflSin
from tflq.dialects.tosa.activation import Ceil, Cos, Exp, Floor, Log, Rsqrt, Sin
from tflq.dialects.tosa.arithmetic import Abs, Negate
from tflq.ir.core import Op, Value
from tflq.ir.types import i1
from tflq.tosa.lowering.floats import arithmetic as float_arithmetic
from tflq.tosa.lowering.floats.operators import floating
from tflq.tosa.lowering.floats.quotient import reciprocal, scalar
from tflq.tosa.lowering.known import dims_of
from tflq.tosa.lowering.plain import plain, stored
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.rescale.integers import limited
from tflq.tosa.lowering.shaping import kept_storage
from tflq.tosa.lowering.wide import narrow

__all__: list[str] = []


@lowering(TflAbs)
def absolute(op: TflAbs, t: Tosa) -> Value:
    if op.input.type.storage.is_float:
        float_arithmetic.need_float(t, op)
    return stored(t.emit(Abs, [plain(op.input, t)]), op.result, t)


@lowering(Neg)
def negate(op: Neg, t: Tosa) -> Value:
    x = plain(op.input, t)
    if x.type.storage.is_float:
        float_arithmetic.need_float(t, op)
        return t.emit(Negate, [x], input1_zp=0, output_zp=0)
    return stored(t.sub(t.constant(np.asarray(0)), x), op.result, t)


@lowering(Sign)
def sign(op: Sign, t: Tosa) -> Value:
    x = plain(op.input, t)
    if x.type.storage.is_float:
        return float_arithmetic.float_sign(t, x)
    return stored(limited(x, t, -1, 1), op.result, t)


_SAME: Final[dict[type[Operator], type[Operator]]] = {
    TflCeil: Ceil,
    TflCos: Cos,
    TflExp: Exp,
    TflFloor: Floor,
    TflLog: Log,
    TflRsqrt: Rsqrt,
    TflSin: Sin,
}
"""TOSA's operator for each of TFLite's that it has."""


@floating(*_SAME)
def same(op: Operator, t: Tosa, x: Value) -> Value:
    """TOSA's operator of the same name."""
    return t.emit(_SAME[type(op)], [x])


@floating(Square)
def square(op: Op, t: Tosa, x: Value) -> Value:
    return t.mul(x, x)


@floating(Sqrt)
def sqrt(op: Op, t: Tosa, x: Value) -> Value:
    return reciprocal(t, t.emit(Rsqrt, [x]))


@floating(Round)
def round_half_to_even(op: Op, t: Tosa, x: Value) -> Value:
    whole = t.emit(Floor, [x])
    above = t.sub(x, whole)
    zero, half, one, two = (scalar(t, v, x) for v in (0, 0.5, 1, 2))
    odd = t.sub(whole, t.mul(t.emit(Floor, [t.mul(whole, half)]), two))
    nearest = t.select(t.greater(above, half), one, zero)
    return t.add(whole, t.select(t.equal(above, half), odd, nearest))


@lowering(ZerosLike)
def zeros_like(op: ZerosLike, t: Tosa) -> Value:
    """A constant; of an open dim, zeros as long as the operand: all of it covered by a choice that is never made."""
    x = op.input
    shape, storage, zero = dims_of(x), kept_storage(t, op.result), t.zero_point(op.result)
    if None not in shape:
        return t.constant(np.full([d or 0 for d in shape], zero), storage)
    one = (1,) * len(shape)
    never = t.constant(np.zeros(one), i1)
    return t.select(never, narrow(x, t), t.constant(np.full(one, zero), storage))
