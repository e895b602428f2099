"""Accumulators in the result's type, as the reference kernels scale them: `fixed` and `real`.

The accumulator (i32, or i64 where the kernel sums in 64 bits) is scaled by a real number per channel, moved by the
result's zero point, saturated and clamped to the fused activation. `fixed` scales as MultiplyByQuantizedMultiplier does
(tosa.rescale), `real` in float64 with one rounding half away from zero (ext.rescale_f64).

Where that can leave the kernel's types, the result is what the kernel gives, and a warning says so
(`tflq.numerics.wrapping`):

    i32, fixed    the left shift wraps (tosa.logical_left_shift); what the zero point takes out of int32 is the
                  other end
    i64, fixed    the low 32 bits of the scaled sum (ext.rescale_i64)
    real          beyond int32 the kernel's quotient is the least one, and the result that end, or the other one

It is decided by the bounds of each channel's sums.
"""

from __future__ import annotations

import numpy as np

from tflq.analysis.ranges import Range
from tflq.dialects.ext.rescale import RescaleF64, RescaleI64
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, UniformQuantizedType, i32, i64
from tflq.legalize.reference.generic.accumulate import Bounds
from tflq.legalize.rule import NotApplicable, Rewritten, RuleBuilder
from tflq.light import dataclass
from tflq.numerics.activation import activation_range
from tflq.numerics.fixed_point import multiply, quantize_multipliers
from tflq.numerics.wide_product import fit_wide_product
from tflq.numerics.wrapping import leaves_float, leaves_int32, leaves_wide, wide_multipliers

__all__ = ["Rescaled", "fixed", "real", "saturated"]

_MOST_LEFT = 29
"""Bits that RESCALE shifts an i32 to the left by; its own shift is 2 at least."""
_MOST_LEFT_WIDE = 13
_WIDEST = 1 << 47
_FAR_APART = 2.0**20
"""The ratio of scales up to which one product serves all channels without a look."""
_TOO_WIDE = "the result tells apart sums of more than 52 bits"
_NOT_ITS_OWN = "sums of more than 52 bits are not scaled as in the kernel: results can be up to {} counts off"
_WRAPS = "the scaled sum can exceed the 32 bits that the kernel has for it, where {}: results are up to {} counts off"


@dataclass(frozen=True, slots=True)
class Rescaled:
    """A result, and what is to be warned of."""

    value: Value
    warning: str = ""

    def rewritten(self, value: Value | None = None, *warnings: str) -> Rewritten:
        """The answer of a rule: the result, or what is made of it, with other warnings."""
        words, exception = (
            "; ".join(w for w in (self.warning, *warnings) if w),
            "range" if self.warning else "disregarded",
        )
        return Rewritten([value or self.value], warning=words, exception=exception)


def fixed(
    b: RuleBuilder,
    acc: Value,
    scales: np.ndarray,
    to: UniformQuantizedType,
    activation: str,
    bounds: Bounds,
    at_least: Bounds | None = None,
) -> Rescaled:
    """acc by the scales' multipliers, in the result's type. `at_least`: bounds of sums that there surely are, where
    `bounds` are not known to be near; only for these there is a warning."""
    try:
        clamp = _range(to, activation)
    except ValueError as error:
        raise NotApplicable(str(error)) from error
    mantissa, left = quantize_multipliers(scales)
    if clamp[0] >= clamp[1]:
        mantissa, left = np.zeros(1, np.int32), np.zeros(1, np.int32)  # one number, whatever the sum
    wide = acc.type.storage == i64
    bounds = bounds.within(acc.type.storage)
    form = _fixed_i64 if wide else _fixed_i32
    result = form(b, acc, mantissa, left, to, clamp, bounds)
    if result.warning and at_least is not None:
        leaves = leaves_wide if wide else leaves_int32
        return result if leaves(*at_least, mantissa, left).any() else Rescaled(result.value)
    return result


def _fixed_i32(
    b: RuleBuilder,
    acc: Value,
    mantissa: np.ndarray,
    left: np.ndarray,
    to: UniformQuantizedType,
    clamp: tuple[int, int],
    bounds: Bounds,
) -> Rescaled:
    low, high = bounds.range
    if left.max() <= 0 and max(-low, high) + abs(to.zero_point) <= i32.maximum:  # scaled by less than 1
        result = b.rescale(acc, (mantissa, left), to.storage, output_zp=to.zero_point, input_range=(low, high))
        return Rescaled(b.clamp(result, *clamp))
    lost = leaves_int32(*bounds, mantissa, left)
    seen: Bounds | None = bounds
    if lost.any() or left.max() > _MOST_LEFT:
        up = np.maximum(left, 0) & 31
        acc = b.logical_left_shift(acc, b.constant(_squeezed(up)))
        ends = Bounds(np.where(lost, i32.minimum, bounds.low << up), np.where(lost, i32.maximum, bounds.high << up))
        left, seen = np.minimum(left, 0), None
    else:
        ends = bounds
    over = _leaves(ends, mantissa, left, to.zero_point)
    if over.any():
        result = _moved(b, b.rescale(acc, (mantissa, left), i32), to, clamp)
    else:
        known = seen.range if seen else None
        result = b.rescale(acc, (mantissa, left), to.storage, output_zp=to.zero_point, input_range=known)
    warning = _WRAPS.format("its shift wraps, as on x86-64", clamp[1] - clamp[0]) if (lost | over).any() else ""
    return Rescaled(b.clamp(result, *clamp), warning)


def _leaves(ends: Bounds, mantissa: np.ndarray, left: np.ndarray, zero_point: int) -> np.ndarray:
    """Whether sums between these ends leave int32 once they are scaled and the zero point is added, per channel."""
    reach = max(-int(ends.low.min(initial=0)), int(ends.high.max(initial=0)))
    if left.max() <= 0 and reach + abs(zero_point) <= i32.maximum:
        return np.zeros(1, bool)  # scaled by less than 1
    low, high = (multiply(end.astype(np.int32), mantissa, left).astype(np.int64) for end in ends)
    return (low + zero_point < i32.minimum) | (high + zero_point > i32.maximum)


def _moved(b: RuleBuilder, scaled: Value, to: UniformQuantizedType, clamp: tuple[int, int]) -> Value:
    """scaled + zero point of an i32, clamped; where that leaves int32, and wraps, the other end."""
    zero = to.zero_point
    if zero > 0:
        limit, end = b.constant(i32.maximum - zero), clamp[0]
        wraps = b.greater(scaled, limit)
    else:
        limit, end = b.constant(i32.minimum - zero), clamp[1]
        wraps = b.greater(limit, scaled)
    inside = b.clamp(scaled, clamp[0] - zero, clamp[1] - zero)
    return b.cast(b.select(wraps, b.constant(end), b.add(inside, b.constant(zero))), to.storage)


def _fixed_i64(
    b: RuleBuilder,
    acc: Value,
    mantissa: np.ndarray,
    left: np.ndarray,
    to: UniformQuantizedType,
    clamp: tuple[int, int],
    bounds: Bounds,
) -> Rescaled:
    """Only of int16, which has no zero point."""
    lost = leaves_wide(*bounds, mantissa, left)
    low, high = bounds.range
    if not lost.any() and left.max() <= _MOST_LEFT_WIDE and low >= -_WIDEST and high < _WIDEST:
        result = b.rescale(acc, (mantissa, left), to.storage, input_range=bounds.range)
        return Rescaled(b.clamp(result, *clamp))
    multiplier, shift = wide_multipliers(mantissa, left)
    word = b.emit(
        RescaleI64,
        [acc],
        acc.type.with_element(i32),
        multiplier=multiplier.astype(np.int32),
        shift=shift.astype(np.int8),
        input_range=(low, high),
    )
    warning = _WRAPS.format("it keeps the low ones", clamp[1] - clamp[0]) if lost.any() else ""
    return Rescaled(b.cast(b.clamp(word, *clamp), to.storage), warning)


def real(
    b: RuleBuilder,
    acc: Value,
    scales: np.ndarray,
    to: UniformQuantizedType,
    activation: str,
    bounds: Bounds,
) -> Rescaled:
    """round_half_away(double(acc) * scale) in int32, in the result's type."""
    bounds = bounds.within(acc.type.storage)
    result = saturated(b, acc, scales, to, activation, bounds.range)
    low, high = _range(to, activation)
    below, edge = to.zero_point < 0, leaves_float(scales, to.zero_point)
    lost = (bounds.low <= -edge) if below else (bounds.high >= edge)
    if low >= high or not lost.any():
        return Rescaled(result)
    end = b.constant(high if below else low, to.storage)
    warning = _WRAPS.format("it gives the least number, as on x86-64", high - low)
    return Rescaled(b.select(_beyond(b, acc, edge, below), end, result), warning)


def saturated(
    b: RuleBuilder,
    acc: Value,
    scales: np.ndarray,
    to: UniformQuantizedType,
    activation: str,
    bounds: Range | None,
) -> Value:
    """round_half_away(double(acc) * scale), in the result's type, for acc within `bounds`, if they are known."""
    try:
        clamp = _range(to, activation)
    except ValueError as error:
        raise NotApplicable(str(error)) from error
    reach = max(-bounds[0], bounds[1], 1) if bounds else -acc.type.storage.minimum
    scales = _alike(scales, to.storage, reach)
    told_apart = (max(abs(bound - to.zero_point) for bound in clamp) + 1) / scales
    rounded_alike = np.floor(reach * scales + 0.5) == np.floor(float(i32.maximum) * scales + 0.5)
    wide = (np.where(rounded_alike, 0, np.minimum(reach, told_apart)) >= 2.0**31).any()
    if (wide or scales.max() > _FAR_APART * scales.min()) and not _has_product(scales, to, bounds, acc):
        raise NotApplicable(_TOO_WIDE, _NOT_ITS_OWN.format(clamp[1] - clamp[0]))
    stored = acc.type.with_element(to.storage)
    noted = {"input_range": bounds} if bounds else {}
    result = b.emit(RescaleF64, [acc], stored, scale=scales, output_zp=to.zero_point, **noted)
    return b.clamp(result, *clamp)


def _has_product(scales: np.ndarray, to: UniformQuantizedType, bounds: Range | None, acc: Value) -> bool:
    """Whether there is an exact product by these scales in 64 bits."""
    lows, highs = to.storage.minimum - to.zero_point, to.storage.maximum - to.zero_point
    ends = bounds or (acc.type.storage.minimum, acc.type.storage.maximum)
    return fit_wide_product(scales, lows, highs, *ends) is not None


def _alike(scales: np.ndarray, to: ScalarType, reach: int) -> np.ndarray:
    """Positive and finite scales with the same results for sums within [-reach, reach], saturated to `to`."""
    most = 2.0**to.bits
    return np.clip(np.nan_to_num(np.asarray(scales, np.float64), nan=most, posinf=most), 0.25 / reach, most)


def _beyond(b: RuleBuilder, acc: Value, edge: np.ndarray, below: bool) -> Value:
    """Whether sums reach an edge per channel, on the side of negative ones if `below`."""
    storage = acc.type.storage
    limit = b.constant(_squeezed(np.minimum(edge - 1, storage.maximum) * (-1 if below else 1)), storage)
    return b.greater(limit, acc) if below else b.greater(acc, limit)


def _squeezed(values: np.ndarray) -> np.ndarray:
    """A scalar if all are the same."""
    return values[0] if (values == values[0]).all() else values


def _range(to: UniformQuantizedType, activation: str) -> tuple[int, int]:
    return activation_range(activation, to.storage.minimum, to.storage.maximum, to.scale, to.zero_point)
