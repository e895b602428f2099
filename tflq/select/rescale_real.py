"""ext.rescale_f64 is the FULLY_CONNECTED reference kernels' requantization, in float64:

    saturate(round_half_away(double(x - input_zp) * scale) + output_zp)        scale: float64 [1 or C], positive

It becomes a division where that is proven, else a product of two limbs in int64, or, for sums of more than 31 bits and
scales far apart, a product in limbs of both (`numerics.division_fit`). Source:
kernels/internal/reference/integer_ops/fully_connected.h.
"""

from __future__ import annotations

import numpy as np

from tflq.analysis.known import Range
from tflq.dialects.quant import RescaleF64
from tflq.dialects.tfl.arithmetic import FloorMod, Sign
from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Value
from tflq.ir.types import i32, i64
from tflq.numerics.division_fit import (
    LIMB,
    PART,
    LongProduct,
    WideProduct,
    fit_division,
    fit_long_product,
    fit_wide_product,
)
from tflq.numerics.staircase import float_staircase
from tflq.select.lowering import Kernels, lowering
from tflq.select.rescale import clamped, divide, filled, input_range, result_range
from tflq.select.shifts import high_part, restore, right_shift


@lowering(RescaleF64)
def rescale_f64(op: RescaleF64, k: Kernels) -> Value:
    scale = np.atleast_1d(np.asarray(op.scale, np.float64))
    low, high, clamp = result_range(op, k)
    least, most = input_range(op, k)
    output_zp = op.output_zp
    x = k.value(op.input)
    if x.type.storage.bits < 32:
        x = k.cast(x, i32)
    y = filled(k, x, low) if low == high else None
    if y is None and x.type.storage == i32 and high - low <= 255 and low <= output_zp <= high:
        stairs, ones = float_staircase(low - output_zp + 1, high - low, scale), np.ones(scale.shape, np.int64)
        y = divide(k, x, stairs, fit_division(stairs, least * ones, most * ones), least, most, output_zp)
    if y is None:
        lows, highs = low - output_zp, high - output_zp
        y, (below, above) = _product(op, k, x, scale, (lows, highs), (least, most))
        y = clamped(k, y, np.asarray(lows), np.asarray(highs), below, above, output_zp)
    y = k.cast(y, op.output.type.storage)
    return k.fuse(clamp, y) if clamp else y


def _product(
    op: RescaleF64, k: Kernels, x: Value, scale: np.ndarray, levels: Range, bounds: Range
) -> tuple[Value, Range]:
    """The product in 64 bits, rounded, in int32, and its range: a step of x can pass several levels."""
    beyond = int(scale.max()) + 1 if scale.max() > 1 else 0
    fit = fit_long_product(scale, *levels, *bounds)
    if fit is not None:
        return _long_product(k, x, fit, *bounds), (levels[0] - beyond, levels[1] + beyond)
    wide = fit_wide_product(scale, *levels, *bounds)
    if wide is None:
        what = f"64 bits do not hold the product with a scale of {float(scale.max())!r}"
        raise UnsupportedError(
            Reason.at(op.location, what, value=float(scale.max()), remedy="quantize it with a smaller scale")
        )
    reach = max(-levels[0], levels[1]) + beyond + 2
    return _wide_product(k, k.cast(x, i64), wide, *bounds), (-reach, reach)


def _long_product(k: Kernels, x: Value, fit: LongProduct, least: int, most: int) -> Value:
    """The two limbs; the result in int32."""
    x = clamped(k, k.cast(x, i64), fit.first, fit.last, least, most)
    below = k.mul(x, k.row(fit.low, i64))
    if fit.correction:
        sign = k.cast(k.emit(Sign, [k.cast(x, i32)], x.type.with_element(i32)), i64)  # SIGN has int32 only
        below = k.add(below, k.mul(sign, k.constant(fit.correction, i64)))
    below = k.cast(restore(k, high_part(k, below, i32), x.type.shape), i64)
    total = k.add(k.add(k.mul(x, k.row(fit.high, i64)), below), k.constant(1 << (fit.shift - 1), i64))
    return _quotient(k, total, fit.shift)


def _wide_product(k: Kernels, x: Value, fit: WideProduct, least: int, most: int) -> Value:
    """The limbs of both, the product's last place found in tables of its integer part; the result in int32."""
    x = clamped(k, x, fit.first, fit.last, least, most)
    sign = k.minimum(k.maximum(x, k.constant(-1, i64)), k.constant(1, i64))
    x = k.mul(x, sign)
    if fit.left.any():
        x = k.mul(x, k.row(np.int64(1) << fit.left, i64))
    lower = k.emit(FloorMod, [x, k.constant(1 << LIMB, i64)])
    upper = _shifted_limb(k, k.sub(x, lower))
    high, low = (k.row(limb, i64) for limb in (fit.high, fit.low))
    above, between = k.mul(upper, high), k.add(k.mul(upper, low), k.mul(lower, high))
    whole = _quotient(k, k.add(above, _shifted_limb(k, between)), fit.shift)
    entries = [k.constant(table, i64) for table in fit.halves]
    last = k.constant((1 << PART) - 1)
    half = k.add(
        k.gather(entries[0], k.minimum(whole, last)), k.gather(entries[1], right_shift(k, whole, k.constant(PART)))
    )
    between = k.add(between, _shifted_limb(k, k.add(k.mul(lower, low), half)))
    total = k.add(k.add(above, _shifted_limb(k, between)), k.constant(1 << (fit.shift - 1), i64))
    return k.mul(_quotient(k, total, fit.shift), k.cast(sign, i32))


def _shifted_limb(k: Kernels, x: Value) -> Value:
    """floor(x / 2^LIMB) of an int64 of 60 bits at most."""
    word = high_part(k, k.mul(x, k.constant(1 << (32 - LIMB), i64)), i32)
    return k.cast(restore(k, word, x.type.shape), i64)


def _quotient(k: Kernels, total: Value, shift: int) -> Value:
    """floor(total / 2^shift), in int32."""
    shape = total.type.shape
    if shift < 32:
        total = k.mul(total, k.constant(1 << (32 - shift), i64))
    word = high_part(k, total, i32)
    if shift > 32:
        word = k.right_shift(word, k.constant(shift - 32))
    return restore(k, word, shape)
