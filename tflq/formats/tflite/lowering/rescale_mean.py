"""ext.rescale_mean: the multiplier of a mean over a number of elements that is known when the model runs.

SHAPE and GATHER read the sizes that may change, when an interpreter allocates; what follows is on a few numbers.

    f      how many of 2, 4, 8 ... the count reaches
    M      floor(multiplier 2^f / count), byte by byte from the top: each is how many of 1, 2 ... 255, times its place
           and the count, the rest of the dividend reaches
    e      f - shift if that is not negative, else the sums are multiplied by 2^(shift - f) first, within int32
    result two high words: of 2 x M + 2^31, then of (y - [y < 0 and e > 0]) 2^(32 - e) + 2^31

What depends only on f is an entry of a table. Source: QuantizedMeanOrSum, kernels/internal/reference/reduce.h.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.quant import RescaleMean
from tflq.dialects.tfl.pooling import Sum
from tflq.dialects.tfl.shape import Shape
from tflq.formats.tflite.lowering.lowering import Tflite, lowering
from tflq.formats.tflite.lowering.rescale import clamped
from tflq.formats.tflite.lowering.shifts import high_part, restore
from tflq.ir.ops import Value
from tflq.ir.types import TensorType, i32, i64

_BYTES = (24, 16, 8, 0)
"""Places of the bytes of a multiplier, the highest first."""


@lowering(RescaleMean)
def rescale_mean(op: RescaleMean, k: Tflite) -> Value:
    """saturate(sums * M / 2^31 / 2^e + output_zp)."""
    to = op.output.type.storage
    x, values = k.value(op.sums), k.value(op.values)
    folded = np.arange(min(31, 32 + op.shift))
    count = _count(k, values, op.axes)
    f = _logarithm(k, count, folded.size)
    multiplier = _quotient(k, _entry(k, op.multiplier << folded, f), count)

    down = folded - op.shift
    if op.shift > 0:
        x = k.mul(x, k.gather(k.constant(np.left_shift(1, np.maximum(-down, 0))), f))
    down = np.maximum(down, 0)
    y = k.add(k.mul(k.cast(x, i64), k.add(multiplier, multiplier)), 1 << 31)
    y = k.cast(restore(k, high_part(k, y, i32), x.type.shape), i64)
    negative = k.mul(k.cast(k.greater(0, y), i64), _entry(k, down > 0, f))
    y = k.mul(k.sub(y, negative), _entry(k, np.left_shift(np.int64(1), 32 - down), f))
    y = restore(k, high_part(k, k.add(y, 1 << 31), i32), x.type.shape)
    low, high = (np.asarray(v - op.output_zp) for v in (to.minimum, to.maximum))
    return k.cast(clamped(k, y, low, high, -1 << 30, 1 << 30, op.output_zp), to)


def _count(k: Tflite, values: Value, axes: tuple[int, ...]) -> Value:
    """The number of elements along the axes. The first dim counts as one that may change."""
    dims = values.type.dims
    shape = k.emit(Shape, [values], TensorType((len(dims),), i32), out_type="INT32")
    count = None
    for axis in axes:
        if dims[axis] is None or axis == 0:
            size = k.gather(shape, k.constant(axis))
            count = size if count is None else k.mul(count, size)
    rest = int(np.prod([dims[axis] or 1 for axis in axes if axis], dtype=np.int64))
    if count is None:
        return k.constant(rest)
    return count if rest == 1 else k.mul(count, np.asarray(rest))


def _logarithm(k: Tflite, count: Value, entries: int) -> Value:
    """floor(log2(count)), at most entries - 1."""
    if entries == 1:
        return k.constant(0)
    return _reached(k, k.cast(count, i64), k.constant(np.left_shift(np.int64(1), np.arange(1, entries)), i64))


def _quotient(k: Tflite, dividend: Value, divisor: Value) -> Value:
    """floor(dividend / divisor), of at most 31 bits: int64."""
    divisor, quotient = k.cast(divisor, i64), None
    for place in _BYTES:
        steps = k.mul(divisor, np.arange(1, 128 if place == 24 else 256, dtype=np.int64) << place)
        digit = k.mul(k.cast(_reached(k, dividend, steps), i64), 1 << place)
        quotient = digit if quotient is None else k.add(quotient, digit)
        if place:
            dividend = k.sub(dividend, k.mul(digit, divisor))
    assert quotient is not None
    return quotient


def _reached(k: Tflite, x: Value, steps: Value) -> Value:
    """Number of the steps, in a row, that x reaches."""
    return k.reduce(Sum, k.cast(k.greater_equal(x, steps), i32), [0], keep_dims=False)


def _entry(k: Tflite, table: np.ndarray, index: Value) -> Value:
    return k.gather(k.constant(table, i64), index)
