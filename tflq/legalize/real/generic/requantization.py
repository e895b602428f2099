"""A sum times a real number per channel: in the result's counts, rounded half away from zero and saturated.

    int8, uint8, int16      round_half_away(double(acc) * scale) + zp           ext.rescale_f64
    int32                   acc + zp at a scale of 1, else RESCALE rounded so   tosa.rescale

A sum of which more than 32 bits matter loses its last ones first, which leaves it within one count.
A scale so small that all results are 0, or so large that all but 0 are saturated, is replaced by a nearer one that has
the same results.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.ext.rescale import RescaleF64
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, UniformQuantizedType, i32, i64
from tflq.legalize.rule import NotApplicable, RuleBuilder
from tflq.numerics.activation import real_range
from tflq.numerics.fixed_point import quantize_multipliers

__all__ = ["limited_scales", "real_requantized", "result_range"]

_ALIKE = 1e-7
_MOST = 1 << 47
_WIDEST = 2.0**20
"""The ratio of scales up to which one product serves all channels without a look."""


def limited_scales(scales: np.ndarray, to: ScalarType, reach: int) -> np.ndarray:
    """Scales with the same results for sums within [-reach, reach], saturated to `to`."""
    return np.clip(scales, 0.25 / max(reach, 1), 2.0 ** (to.bits + 1))


def real_requantized(
    b: RuleBuilder,
    acc: Value,
    scales: np.ndarray,
    to: UniformQuantizedType,
    activation: str,
    bounds: tuple[int, int],
) -> Value:
    """`acc`, i32 or i64 within `bounds`, in the result's type. NotApplicable where no form computes it."""
    if np.isnan(scales).any():
        raise NotApplicable("the ratio of the scales is no number")
    clamp = result_range(to, activation)
    reach = max(-bounds[0], bounds[1])
    told_apart = ((1 << to.storage.bits) + 1) / limited_scales(scales, to.storage, reach)
    if (np.minimum(reach, told_apart) >= 2.0**31).any() or (to.storage == i32 and acc.type.storage == i64):
        if reach >= _MOST:
            raise NotApplicable("the sum can leave 48 bits")
        acc, scales, bounds = _coarse(b, acc, scales, bounds)
        reach = max(-bounds[0], bounds[1])
    if to.storage == i32:
        wide = _in_int32(b, acc, scales, to, reach, bounds)
        return b.clamp(wide, *clamp)
    scales = limited_scales(scales, to.storage, reach)
    if scales.max() > _WIDEST * scales.min() and not _has_product(scales, to, bounds):
        raise NotApplicable("the channels' scales are too far apart for one product in 64 bits")
    stored = acc.type.with_element(to.storage)
    result = b.emit(
        RescaleF64, [acc], stored, scale=scales, output_zp=to.zero_point, input_range=(bounds[0], bounds[1])
    )
    return b.clamp(result, *clamp)


def _coarse(
    b: RuleBuilder, acc: Value, scales: np.ndarray, bounds: tuple[int, int]
) -> tuple[Value, np.ndarray, tuple[int, int]]:
    """A 48-bit sum without the last bits that i32 does not hold, its scale and bounds."""
    spare = max(max(-bounds[0], bounds[1]).bit_length() - 30, 0)
    narrow = b.rescale(acc, (1 << 30, 1 - spare), i32, input_range=bounds)
    return narrow, scales * 2.0**spare, ((bounds[0] >> spare) - 1, (bounds[1] >> spare) + 1)


def result_range(to: UniformQuantizedType, activation: str) -> tuple[int, int]:
    """What the activation clamps stored values to; a bound that is far away is none."""
    return real_range(activation, to.storage.minimum, to.storage.maximum, to.scale, to.zero_point)


def _has_product(scales: np.ndarray, to: UniformQuantizedType, bounds: tuple[int, int]) -> bool:
    from tflq.numerics.long_product import fit_long_product

    lows, highs = to.storage.minimum - to.zero_point, to.storage.maximum - to.zero_point
    return fit_long_product(scales, lows, highs, *bounds) is not None


def _in_int32(
    b: RuleBuilder, acc: Value, scales: np.ndarray, to: UniformQuantizedType, reach: int, bounds: tuple[int, int]
) -> Value:
    if acc.type.storage != i32 or reach * float(scales.max()) + abs(to.zero_point) >= 2.0**31 - 1:
        raise NotApplicable("the sum or the result can leave 32 bits")
    if (np.abs(scales - 1) <= _ALIKE).all():
        return b.add(acc, b.constant(np.asarray(to.zero_point))) if to.zero_point else b.identity(acc)
    numbers = quantize_multipliers(scales)
    return b.rescale(acc, numbers, i32, output_zp=to.zero_point, rounding="half_away", input_range=bounds)
