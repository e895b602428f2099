"""Quotients of floats beyond a product with the reciprocal, and rounding, by IEEE multiplication and addition only.

TOSA has neither division nor a fused multiply-add. The remainder a - q b is computed all the same without error: q b as
the sum of two float32 numbers (Dekker 1971), on Veltkamp's split of a number in two of 12 bits.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.activation import Floor, Reciprocal
from tflq.dialects.tosa.arithmetic import Abs
from tflq.ir.core import Value
from tflq.ir.types import f32
from tflq.tosa.lowering.context import Tosa

__all__ = ["close_quotient", "ratio", "reciprocal", "remainder", "rounded_half_away", "scalar"]

_SPLIT = 4097
_BELOW_HALF = float(np.nextafter(np.float32(0.5), np.float32(0)))
_LIMIT = 2.0**33


def scalar(t: Tosa, number: float, like: Value) -> Value:
    """A float constant that broadcasts to a tensor, of its type and rank."""
    return t.constant(np.full((1,) * len(like.type.shape or ()), number), like.type.storage)


def reciprocal(t: Tosa, x: Value) -> Value:
    """1 / x; of a constant, a constant."""
    if not x.is_constant:
        return t.emit(Reciprocal, [x])
    with np.errstate(divide="ignore", over="ignore"):
        return t.constant(x.type.storage.dtype.type(1) / x.array, x.type.storage)


def remainder(t: Tosa, a: Value, q: Value, b: Value) -> Value:
    """a - q b, rounded once: q b = p + e without error, and a - p has none if q is the quotient, give or take one."""
    p = t.mul(q, b)
    q_high, q_low = _halves(t, q)
    b_high, b_low = _halves(t, b)
    e = t.sub(t.mul(q_high, b_high), p)
    e = t.add(t.add(e, t.mul(q_high, b_low)), t.mul(q_low, b_high))
    e = t.add(e, t.mul(q_low, b_low))
    return t.sub(t.sub(a, p), e)


def _halves(t: Tosa, x: Value) -> tuple[Value, Value]:
    """x as the sum of two numbers of 12 bits at most, whose products are exact."""
    if x.is_constant:
        with np.errstate(over="ignore", invalid="ignore"):
            high = (x.array * np.float32(_SPLIT)) - (x.array * np.float32(_SPLIT) - x.array)
            return t.constant(high, f32), t.constant(x.array - high, f32)
    scaled = t.mul(x, scalar(t, _SPLIT, x))
    upper = t.sub(scaled, t.sub(scaled, x))
    return upper, t.sub(x, upper)


def ratio(t: Tosa, x: Value, scale: np.ndarray) -> Value:
    """x / scale to 2^-22, relatively, for positive float32 scales, however small or large."""
    normal = np.where(scale < 2.0**-125, 2.0**64, np.where(scale > 2.0**125, 2.0**-64, 1.0))
    if (normal != 1).any():
        x = t.mul(x, t.constant(normal, f32))
    return t.mul(x, t.constant(1 / (scale.astype(np.float64) * normal), f32))


def close_quotient(t: Tosa, x: Value, scale: np.ndarray) -> Value:
    """x / scale for positive float32 scales: float32's quotient, but where it is within 2^-24 units of a tie. What lies
    beyond int32 is only known to do so."""
    q = t.clamp(ratio(t, x, scale), -_LIMIT, _LIMIT)
    rest = remainder(t, x, q, t.constant(scale, f32))
    return t.add(q, ratio(t, rest, scale))


def rounded_half_away(t: Tosa, x: Value) -> Value:
    """x rounded to nearest, half away from zero: the floor of |x| and the number below 1/2, with x's sign."""
    size = t.emit(Floor, [t.add(t.emit(Abs, [x]), scalar(t, _BELOW_HALF, x))])
    zero = scalar(t, 0, x)
    return t.select(t.greater(zero, x), t.sub(zero, size), size)
