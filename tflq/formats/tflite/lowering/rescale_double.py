"""Rescalings by a float. ext.rescale_f32 is a division where that is proven, else an estimate and
a table of thresholds. ext.rescale_f64 is the requantization of FULLY_CONNECTED's reference kernels, in float64:

    saturate(round_half_away(double(x - input_zp) * scale) + output_zp)        scale: float64 [1 or C], positive

It becomes a division where that is proven, else a product of two limbs in int64, or, for sums of more than 31 bits
and scales far apart, a product in limbs of both (`numerics.requantize.products`). Source:
kernels/internal/reference/integer_ops/fully_connected.h.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from tflq.base.errors import Reason, UnsupportedError
from tflq.dialects.quant import RescaleF32, RescaleF64, RescaleFloat
from tflq.dialects.tfl.arithmetic import FloorMod
from tflq.formats.tflite.lowering.form_ops import KernelOps
from tflq.formats.tflite.lowering.lowering import Kernels, lowering
from tflq.formats.tflite.lowering.rescale import clamp_to, clamped, divide, filled, may_divide, scaling_of
from tflq.formats.tflite.lowering.shifts import right_shift
from tflq.ir.core import Value
from tflq.ir.types import i32, i64
from tflq.numerics.requantize.division import Division
from tflq.numerics.requantize.scaling import Factor, Float32, Float64, Range, Scaling

if TYPE_CHECKING:
    from tflq.numerics.requantize.products import WideProduct

F = TypeVar("F", bound=Factor)
_THRESHOLDS_A_UNIT: Final = 20
"""A unit of `Searches`: 2^20 thresholds of a product by doubles."""


@lowering(RescaleF64)
def rescale_f64(op: RescaleF64, k: Kernels) -> Value:
    def product(x: Value, s: Scaling[Float64]) -> Value:
        y, ends = _product(op, k, x, s.factor.scale, s.levels, s.accumulator.range)
        return clamp_to(k, y, s, *ends)

    return _rescaled(op, op.factor, k, product)


@lowering(RescaleF32)
def rescale_f32(op: RescaleF32, k: Kernels) -> Value:
    return _rescaled(op, op.factor, k, partial(_by_steps, op, k))


def _rescaled(op: RescaleFloat, factor: F, k: Kernels, product: Callable[[Value, Scaling[F]], Value]) -> Value:
    """One number, a division where that is proven, else `product`, in int32, zero point included."""
    s, clamp = scaling_of(op, factor, k)
    (low, high), (least, most) = s.result, s.accumulator.range
    x = k.value(op.input)
    if x.type.storage.bits < 32:
        x = k.cast(x, i32)
    y = filled(k, x, low) if low == high else None
    if y is None and x.type.storage == i32 and may_divide(s):
        stairs, ones = s.staircase(), np.ones(factor.slope.shape, np.int64)
        y = divide(k, x, stairs, Division.fit(stairs, least * ones, most * ones), least, most, s.zero_out)
    y = k.cast(product(x, s) if y is None else y, op.output.type.storage)
    return k.fuse(clamp, y) if clamp else y


_PLACES: Final = 48
"""Of the estimate's fraction: an operand that is clamped, times a multiplier, stays in int64."""
_LESS: Final = 1 << (_PLACES - 12)
"""By how much an estimate is lower than halves: more than float32 is off by, for levels of 8 bits."""


def _by_steps(op: RescaleF32, k: Kernels, x: Value, s: Scaling[Float32]) -> Value:
    """n + (x >= T(n + 1)), with T from a table. n is an estimate that is the level or one less: proven at all
    thresholds."""
    factor, (low, high) = s.factor, s.levels
    thresholds = factor.thresholds(np.arange(low + 1, high + 1))
    first, last = np.maximum(thresholds[0] - 1, i32.minimum), np.minimum(thresholds[-1], i32.maximum)
    multiplier = np.rint(np.ldexp(factor.slope, _PLACES)).astype(np.int64)
    half = (1 << (_PLACES - 1)) - _LESS
    steps = np.clip(thresholds, first, last)
    above, below = ((v * multiplier + half) >> _PLACES for v in (steps, np.maximum(steps - 1, first)))
    level = np.arange(low + 1, high + 1)[:, None]
    lowest = ((first * multiplier + half) >> _PLACES) - low - (thresholds <= first).sum(0)
    proven = ((above >= level - 1) | (thresholds > last)) & ((below < level) | (thresholds <= first))
    if (
        not proven.all()
        or lowest.min() < -1
        or lowest.max() > 0
        or max(-low, high) >= 1 << 12
        or float(factor.slope.max()) >= 1 << 12
    ):
        what = f"no integer form of the product in float32 by {float(factor.scale.max())!r} is proven"
        raise UnsupportedError(Reason.at(op.location, what, remedy="convert it for another kernel set"))
    least, most = s.accumulator.range
    x = k.cast(clamped(k, k.cast(x, i64), first, last, least, most), i32)
    product = k.add(k.mul(k.cast(x, i64), k.row(multiplier, i64)), half)
    estimate = KernelOps(k, i64).right_shift(product, _PLACES)
    estimate = k.minimum(k.maximum(estimate, low), high - 1)
    rows = thresholds.shape[0]
    index = k.add(estimate, k.row(np.arange(thresholds.shape[1]) * rows - low))
    table = k.constant(np.clip(thresholds, i32.minimum, i32.maximum).T.reshape(-1), i32)
    reached = k.cast(k.greater_equal(x, k.gather(table, index)), i32)
    y = k.add(estimate, reached)
    return k.add(y, s.zero_out) if s.zero_out else y


def _product(
    op: RescaleF64, k: Kernels, x: Value, scale: np.ndarray, levels: Range, bounds: tuple[int, int]
) -> tuple[Value, tuple[int, int]]:
    """The product in 64 bits, rounded, in int32, and its range: a step of x can pass several levels."""
    from tflq.numerics.requantize.products import fit_long_product, fit_wide_product

    beyond = int(scale.max()) + 1 if scale.max() > 1 else 0
    units = (levels[1] - levels[0]) * scale.size >> _THRESHOLDS_A_UNIT
    fit = k.searched(units, fit_long_product, scale, *levels, *bounds)
    if fit is not None:
        x = clamped(k, k.cast(x, i64), fit.first, fit.last, *bounds)
        return fit.apply(x, KernelOps(k, i64)), (levels[0] - beyond, levels[1] + beyond)
    wide = fit_wide_product(scale, *levels, *bounds)
    if wide is None:
        what = f"64 bits do not hold the product with a scale of {float(scale.max())!r}"
        raise UnsupportedError(
            Reason.at(op.location, what, value=float(scale.max()), remedy="quantize it with a smaller scale")
        )
    reach = max(-levels[0], levels[1]) + beyond + 2
    return _wide_product(k, k.cast(x, i64), wide, *bounds), (-reach, reach)


def _wide_product(k: Kernels, x: Value, fit: WideProduct, least: int, most: int) -> Value:
    """The limbs of both, the product's last place found in tables of its integer part; the result in int32."""
    from tflq.numerics.requantize.products import LIMB, PART

    x, ops = clamped(k, x, fit.first, fit.last, least, most), KernelOps(k, i64)
    sign = k.minimum(k.maximum(x, -1), 1)
    x = k.mul(x, sign)
    if fit.left.any():
        x = k.mul(x, k.row(np.int64(1) << fit.left, i64))
    lower = k.emit(FloorMod, [x, k.constant(1 << LIMB, i64)])

    def shifted(x: Value) -> Value:
        """floor(x / 2^LIMB) of an int64 of 60 bits at most."""
        return ops.high_word(k.mul(x, 1 << (32 - LIMB)))

    upper = shifted(k.sub(x, lower))
    high, low = (k.row(limb, i64) for limb in (fit.high, fit.low))
    above, between = k.mul(upper, high), k.add(k.mul(upper, low), k.mul(lower, high))
    whole = ops.right_shift(k.add(above, shifted(between)), fit.shift)
    entries = [k.constant(table, i64) for table in fit.halves]
    last = k.constant((1 << PART) - 1)
    half = k.add(
        k.gather(entries[0], k.minimum(whole, last)), k.gather(entries[1], right_shift(k, whole, k.constant(PART)))
    )
    between = k.add(between, shifted(k.add(k.mul(lower, low), half)))
    total = k.add(k.add(above, shifted(between)), 1 << (fit.shift - 1))
    return k.mul(ops.right_shift(total, fit.shift), k.cast(sign, i32))
