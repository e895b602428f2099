"""POW in float: kernels/pow.cc, which is std::pow.

TOSA's POW takes a base from 0 up, not 0 with an exponent that is not positive, and finite numbers: a base of 0 or less
goes around it.

    x < 0     |x|^y for an even y, -|x|^y for an odd one, else not a number
    x = 0     0 for y > 0, 1 for y = 0, infinity below
    constant exponents 1, 2, 3, 4 and their negatives are products, 1/2 and -1/2 square roots
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.arithmetic import Pow as TflPow
from tflq.dialects.tosa.activation import Floor, Rsqrt
from tflq.dialects.tosa.arithmetic import Abs, Pow
from tflq.ir.core import Value
from tflq.ir.types import f32
from tflq.tosa.lowering.floats.operators import floating
from tflq.tosa.lowering.floats.quotient import reciprocal, scalar
from tflq.tosa.lowering.registry import Tosa

__all__ = ["positive_power"]

_LEAST, _GREATEST = (float(v) for v in (np.finfo(np.float32).tiny, np.finfo(np.float32).max))


def positive_power(t: Tosa, base: Value, exponent: Value) -> Value:
    """base^exponent for positive bases; for others, of the least positive normal number."""
    if not exponent.is_constant:
        exponent = t.clamp(exponent, -_GREATEST, _GREATEST)
    if base.is_constant:
        base = t.constant(np.clip(base.array, _LEAST, _GREATEST), f32)
    else:
        base = t.clamp(base, _LEAST, _GREATEST)
    return t.emit(Pow, [base, exponent])


@floating(TflPow)
def power(op: TflPow, t: Tosa, base: Value, exponent: Value) -> Value:
    y = float(exponent.array.flat[0]) if exponent.is_constant and exponent.array.size == 1 else None
    if y is not None and (simple := _simple(t, base, y)) is not None:
        return t.ranked(simple, len(op.result.type.shape or ()))
    size = t.constant(np.abs(base.array), f32) if base.is_constant else t.emit(Abs, [base])
    size = positive_power(t, size, exponent)
    zero, one = scalar(t, 0, exponent), scalar(t, 1, exponent)
    if not (base.is_constant and (base.array != 0).all()):
        below = t.select(t.equal(exponent, zero), one, scalar(t, np.inf, exponent))
        at_zero = t.select(t.greater(exponent, zero), zero, below)
        size = t.select(t.equal(base, scalar(t, 0, base)), at_zero, size)
    if base.is_constant and (base.array >= 0).all():
        return size
    half = t.mul(exponent, scalar(t, 0.5, exponent))
    even = t.equal(half, t.emit(Floor, [half]))
    whole = t.equal(exponent, t.emit(Floor, [exponent]))
    odd = t.select(whole, t.sub(scalar(t, 0, size), size), scalar(t, np.nan, size))
    return t.select(t.greater(scalar(t, 0, base), base), t.select(even, size, odd), size)


def _simple(t: Tosa, x: Value, exponent: float) -> Value | None:
    """x^exponent as products, or as a square root."""
    if exponent == -0.5:
        return t.emit(Rsqrt, [x])
    if exponent < 0 and (inverse := _simple(t, x, -exponent)) is not None:
        return reciprocal(t, inverse)
    if exponent == 0.5:
        return reciprocal(t, t.emit(Rsqrt, [x]))
    if exponent == 1:
        return x
    if exponent not in (2, 3, 4):
        return None
    square = t.mul(x, x)
    return square if exponent == 2 else t.mul(square, x if exponent == 3 else square)
