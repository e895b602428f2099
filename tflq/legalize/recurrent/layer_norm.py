"""The layer norm of an integer LSTM's gate: int16 values of a row, less their mean, by their standard deviation.

    m = trunc(1024 sum(x) / n)
    v = (sum(x^2) floor(2^20 / n) - m^2) / 2^20, truncated; the kernel's guard where that is less than 1
    y = saturate(round(round((1024 x - m) / sqrt(v)) * weight + bias) / 1024) * scale * 2^12)

v is put together from 11-bit digits of the squares and 13-bit digits of m, so that nothing leaves int32.
Source: kernels/internal/reference/portable_tensor_utils.cc (PortableApplyLayerNorm).
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.arithmetic import IntDiv
from tflq.dialects.tosa.bits import BitwiseAnd
from tflq.ir.core import Value
from tflq.ir.types import i16, i32
from tflq.legalize.reference.normalization import inverse_square_root
from tflq.legalize.rule import RuleBuilder
from tflq.legalize.scaling import rounding_shift, scaled
from tflq.numerics.fixed_point import Multiplier, quantize_multiplier

__all__ = ["layer_norm"]


def layer_norm(b: RuleBuilder, x: Value, weights: np.ndarray, bias: np.ndarray, scale: float) -> Value:
    """The norm of i32 rows [batch, n] of int16 values, in i32."""
    n = int(weights.size)
    mean = _mean(b, x, n)
    variance = _variance(b, x, mean, n)
    guard = max(1, int(np.float32(10000) * np.float32(scale)))
    variance = b.select(b.greater(_constant(b, 1), variance), _constant(b, guard), variance)
    mantissa, shift = inverse_square_root(b, variance)
    centred = b.sub(b.mul(x, _constant(b, 1024)), mean)
    normal = rounding_shift(b, b.mul(centred, mantissa, shift=31), shift)
    weighted = b.add(b.mul(normal, b.constant(weights[None])), b.constant(bias[None]))
    mantissa_of_scale, left = quantize_multiplier(scale)
    result = scaled(b, rounding_shift(b, weighted, 10), Multiplier(mantissa_of_scale, left + 12), i16, 1 << 21)
    return b.cast(result, i32)


def _mean(b: RuleBuilder, x: Value, n: int) -> Value:
    """trunc(1024 sum / n), by the quotient and what it leaves."""
    total, count = b.reduce("sum", x, 1), _constant(b, n)
    quotient = _quotient(b, total, count)
    rest = b.sub(total, b.mul(quotient, count))
    thousandfold = _constant(b, 1024)
    return b.add(b.mul(quotient, thousandfold), _quotient(b, b.mul(rest, thousandfold), count))


def _variance(b: RuleBuilder, x: Value, mean: Value, n: int) -> Value:
    """floor((sum(x^2) t - m^2) / 2^20), t = floor(2^20 / n).

    The terms are p0 + p1 2^11 + p2 2^22 - q0 - q1 2^14 - q2 2^26; each is cut at 2^20, and the lower parts are summed.
    """
    square = b.mul(x, x)
    digits = [_low(b, square, 11), _low(b, _right(b, square, 11), 11), _right(b, square, 22)]
    share = _constant(b, (1 << 20) // n)
    p0, p1, p2 = (b.mul(b.reduce("sum", d, 1), share) for d in digits)
    size = b.maximum(mean, b.sub(_constant(b, 0), mean))
    low, high = _low(b, size, 13), _right(b, size, 13)
    q0, q1, q2 = b.mul(low, low), b.mul(low, high), b.mul(high, high)
    above = b.add(b.add(_right(b, p0, 20), _right(b, p1, 9)), _left(b, p2, 2))
    above = b.sub(above, b.add(b.add(_right(b, q0, 20), _right(b, q1, 6)), _left(b, q2, 6)))
    below = b.add(_low(b, p0, 20), _left(b, _low(b, p1, 9), 11))
    below = b.sub(below, b.add(_low(b, q0, 20), _left(b, _low(b, q1, 6), 14)))
    return b.add(above, _right(b, below, 20))


def _constant(b: RuleBuilder, value: int) -> Value:
    return b.constant(np.asarray(value))


def _quotient(b: RuleBuilder, x: Value, y: Value) -> Value:
    return b.emit(IntDiv, [x, y], x.type)


def _right(b: RuleBuilder, x: Value, bits: int) -> Value:
    return b.arithmetic_right_shift(x, _constant(b, bits))


def _left(b: RuleBuilder, x: Value, bits: int) -> Value:
    return b.logical_left_shift(x, _constant(b, bits))


def _low(b: RuleBuilder, x: Value, bits: int) -> Value:
    return b.emit(BitwiseAnd, [x, _constant(b, (1 << bits) - 1)])
