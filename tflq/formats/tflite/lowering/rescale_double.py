"""Rescalings by a float. ext.rescale_f32 is a division where that is proven, else an estimate and
a table of thresholds. ext.rescale_f64 is the requantization of FULLY_CONNECTED's reference kernels, in float64:

    saturate(round_half_away(double(x - input_zp) * scale) + output_zp)        scale: float64 [1 or C], positive

It takes the first of `FORMS_64` that is proven: products of limbs are in `numerics.requantize.products`. Source:
kernels/internal/reference/integer_ops/fully_connected.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tflq.base.errors import Reason, UnsupportedError
from tflq.dialects.quant import RescaleF32, RescaleF64, RescaleFloat
from tflq.dialects.tfl.arithmetic import FloorMod
from tflq.formats.tflite.lowering.form_ops import KernelOps
from tflq.formats.tflite.lowering.lowering import Tflite, lowering
from tflq.formats.tflite.lowering.rescale import clamp_to, clamped, divide, filled, may_divide, scaling_of
from tflq.formats.tflite.lowering.shifts import right_shift
from tflq.ir.ops import Value
from tflq.ir.types import i32, i64
from tflq.numerics.requantize.division import Division
from tflq.numerics.requantize.scaling import Factor, Float32, Float64, Scaling

if TYPE_CHECKING:
    from tflq.numerics.requantize.products import WideProduct

_THRESHOLDS_A_UNIT: Final = 20
"""A unit of `Searches`: 2^20 thresholds of a product by doubles."""


@lowering(RescaleF64)
def rescale_f64(op: RescaleF64, k: Tflite) -> Value:
    return _rescaled(op, op.factor, k, FORMS_64)


@lowering(RescaleF32)
def rescale_f32(op: RescaleF32, k: Tflite) -> Value:
    return _rescaled(op, op.factor, k, FORMS_32)


def _rescaled(op: RescaleFloat, factor: Factor, k: Tflite, forms: tuple[By, ...]) -> Value:
    """The result of the first form that is proven, with the clamp that follows it, if one does."""
    s, clamp = scaling_of(op, factor, k)
    x = k.value(op.input)
    if x.type.storage.bits < 32:
        x = k.cast(x, i32)
    y = next(y for form in forms if (y := form(op, k, x, s)) is not None)
    y = k.cast(y, op.output.type.storage)
    return k.fuse(clamp, y) if clamp else y


def _constant(_: RescaleFloat, k: Tflite, x: Value, s: Scaling[Any]) -> Value | None:
    """One result, whatever x is."""
    return filled(k, x, s.result.low) if s.result.low == s.result.high else None


def _by_division(_: RescaleFloat, k: Tflite, x: Value, s: Scaling[Any]) -> Value | None:
    """The division form, or None where it has no proof."""
    if x.type.storage != i32 or not may_divide(s):
        return None
    (least, most), stairs, ones = s.accumulator.range, s.staircase(), np.ones(s.factor.slope.shape, np.int64)
    return divide(k, x, stairs, Division.fit(stairs, least * ones, most * ones), least, most, s.zero_out)


_PLACES: Final = 48
"""Of the estimate's fraction: an operand that is clamped, times a multiplier, stays in int64."""
_LESS: Final = 1 << (_PLACES - 12)
"""By how much an estimate is lower than halves: more than float32 is off by, for levels of 8 bits."""


def _by_steps(op: RescaleFloat, k: Tflite, x: Value, s: Scaling[Float32]) -> Value:
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


def _by_long_product(_: RescaleFloat, k: Tflite, x: Value, s: Scaling[Float64]) -> Value | None:
    """The product in 64 bits, rounded, and clamped: a step of x can pass several levels."""
    from tflq.numerics.requantize.products import LongProduct

    scale, levels, bounds = s.factor.scale, s.levels, s.accumulator.range
    units = (levels.high - levels.low) * scale.size >> _THRESHOLDS_A_UNIT
    fit = k.searched(units, LongProduct.fit, scale, *levels, *bounds)
    if fit is None:
        return None
    x, beyond = clamped(k, k.cast(x, i64), fit.first, fit.last, *bounds), _beyond(scale)
    return clamp_to(k, fit.apply(x, KernelOps(k, i64)), s, levels.low - beyond, levels.high + beyond)


def _by_wide_product(op: RescaleFloat, k: Tflite, x: Value, s: Scaling[Float64]) -> Value:
    """The product of limbs of both, clamped. UnsupportedError where 64 bits do not hold it."""
    from tflq.numerics.requantize.products import WideProduct

    scale, levels, bounds = s.factor.scale, s.levels, s.accumulator.range
    fit = WideProduct.fit(scale, *levels, *bounds)
    if fit is None:
        what = f"64 bits do not hold the product with a scale of {float(scale.max())!r}"
        raise UnsupportedError(
            Reason.at(op.location, what, value=float(scale.max()), remedy="quantize it with a smaller scale")
        )
    reach = max(-levels.low, levels.high) + _beyond(scale) + 2
    return clamp_to(k, _wide_product(k, k.cast(x, i64), fit, *bounds), s, -reach, reach)


def _beyond(scale: np.ndarray) -> int:
    """The levels that a product may be beyond those of the result, once x is clamped."""
    return int(scale.max()) + 1 if scale.max() > 1 else 0


def _wide_product(k: Tflite, x: Value, fit: WideProduct, least: int, most: int) -> Value:
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


By: TypeAlias = Callable[[RescaleFloat, Tflite, Value, Scaling[Any]], Value | None]

FORMS_64: Final[tuple[By, ...]] = (_constant, _by_division, _by_long_product, _by_wide_product)
"""The forms of a rescaling in float64, the best one first: its result, zero point included, or None. The last raises
an error where it does not apply."""

FORMS_32: Final[tuple[By, ...]] = (_constant, _by_division, _by_steps)
"""The forms of a rescaling in float32, in the same way."""
