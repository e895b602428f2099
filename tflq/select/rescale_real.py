"""ext.rescale_f64: the FULLY_CONNECTED reference kernels' requantization, in float64.

    saturate(round_half_away(double(x - input_zp) * scale) + output_zp)        scale: float64 [1 or C], positive

as a division where that is proven, else as a product of two limbs in int64 (`numerics.long_product`). Source:
kernels/internal/reference/integer_ops/fully_connected.h.
"""

from __future__ import annotations

import numpy as np

from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Op, Value
from tflq.ir.types import i32, i64
from tflq.numerics.long_product import LongProduct, fit_long_product
from tflq.numerics.staircase import float_staircase
from tflq.select.highword import high_part, restore
from tflq.select.lowering import Kernels, lowering
from tflq.select.requantize import clamped, divide, filled, input_range, result_range, squeezed

__all__: list[str] = []


@lowering("ext.rescale_f64")
def rescale_f64(op: Op, k: Kernels) -> Value:
    scale = np.atleast_1d(np.asarray(op.attributes["scale"], np.float64))
    low, high, clamp = result_range(op, k)
    least, most = input_range(op)
    zero, output_zp = op.attributes.get("input_zp", 0), op.attributes.get("output_zp", 0)
    x = k.value(op.operand(0))
    if x.type.storage.bits < 32:
        x = k.cast(x, i32)
    if zero:
        x = k.sub(x, k.constant(zero, x.type.storage))
    y = filled(k, x, low) if low == high else None
    if y is None and x.type.storage == i32 and high - low <= 255 and low <= output_zp <= high:
        levels = np.arange(low - output_zp + 1, high - output_zp + 1)
        y = divide(k, x, float_staircase(levels, scale), least, most, output_zp)
    if y is None:
        fit = fit_long_product(scale, low - output_zp, high - output_zp, least, most)
        if fit is None:
            what = f"64 bits do not hold the product with a scale of {float(scale.max())!r}"
            raise UnsupportedError(Reason.at(op.location, what, value=float(scale.max())))
        y = _long_product(k, x, fit, least, most)
        beyond = int(scale.max()) + 1 if scale.max() > 1 else 0  # one step of x can pass several results
        bounds = np.asarray(low - output_zp), np.asarray(high - output_zp)
        y = clamped(k, y, *bounds, int(bounds[0]) - beyond, int(bounds[1]) + beyond, output_zp)
    y = k.cast(y, op.result.type.storage)
    return k.fuse(clamp, y) if clamp else y


def _long_product(k: Kernels, x: Value, fit: LongProduct, least: int, most: int) -> Value:
    """The two limbs; the result in int32."""
    x = clamped(k, k.cast(x, i64), fit.first, fit.last, least, most)
    below = k.mul(x, k.constant(squeezed(fit.low), i64))
    if fit.correction:
        below = k.add(below, k.mul(_sign(k, x), k.constant(fit.correction, i64)))
    below = k.cast(restore(k, high_part(k, below, i32), x.type.shape), i64)
    total = k.add(k.add(k.mul(x, k.constant(squeezed(fit.high), i64)), below), k.constant(1 << (fit.shift - 1), i64))
    if fit.shift < 32:
        total = k.mul(total, k.constant(1 << (32 - fit.shift), i64))
    word = high_part(k, total, i32)
    if fit.shift > 32:
        word = k.right_shift(word, k.constant(fit.shift - 32))
    return restore(k, word, x.type.shape)


def _sign(k: Kernels, x: Value) -> Value:
    """The sign of an int64 within 31 bits: SIGN has int32 only."""
    return k.cast(k.emit("tfl.sign", [k.cast(x, i32)], x.type.with_element(i32)), i64)
