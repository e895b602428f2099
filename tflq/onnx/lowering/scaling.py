"""What a requantization computes, whatever computes it: numbers, and what is known of them."""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.dialects.ext import RescaleF64
from tflq.dialects.tosa.elementwise import Clamp
from tflq.dialects.tosa.movement import Rescale
from tflq.ir.core import Value
from tflq.light import dataclass
from tflq.numerics.staircase import float_thresholds, rescale_thresholds
from tflq.onnx.lowering.context import Onnx

MOST: Final = 1 << 47
"""Sums are within it: those of 64 bits stand for TOSA's, of 48."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """(x - zero_in) * multiplier / 2^shift, rounded, or round_half_away(double(x) * scale) where there is a scale; plus
    zero_out, saturated to [least, most]. multiplier, shift: int64, scale: float64, [1] or one for each index of the
    last dim. low, high: bounds of x - zero_in, int64, of all channels or of each."""

    x: Value
    result: Value
    multiplier: np.ndarray
    shift: np.ndarray
    scale: np.ndarray | None
    double_round: bool
    zero_in: int
    zero_out: int
    low: np.ndarray
    high: np.ndarray
    least: int
    most: int

    @property
    def rises(self) -> bool:
        """Whether greater numbers give greater results."""
        factor = self.multiplier if self.scale is None else self.scale
        return bool((factor >= 0).all() if self.scale is None else (np.isfinite(factor) & (factor > 0)).all())

    @property
    def slope(self) -> np.ndarray:
        """Levels per unit, float64."""
        return np.ldexp(self.multiplier, -self.shift) if self.scale is None else self.scale

    @property
    def rounding(self) -> tuple[np.ndarray, np.ndarray]:
        """What is added to products, as Python's integers: half a level; and what rounding twice adds from 0 up, and
        takes off below."""
        second = np.where((self.shift > 31) & self.double_round, 1 << 30, 0).astype(object)
        return np.asarray([1 << int(s) >> 1 for s in self.shift], object), second

    @property
    def levels(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest level of each channel that there can be, before they are saturated, as Python's
        integers."""
        multiplier, shift = self.multiplier.astype(object), self.shift.astype(object)
        half, second = self.rounding
        low = (max(int(self.low.min()), -MOST) * multiplier + half - second) >> shift
        high = (min(int(self.high.max()), MOST) * multiplier + half + second) >> shift
        return np.minimum(low, high), np.maximum(low, high)

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest result, before it is saturated."""
        least, most = self.levels
        return int(min(least)) + self.zero_out, int(max(most)) + self.zero_out

    @property
    def fits_int32(self) -> bool:
        """Whether int32 holds the numbers, and the levels."""
        numbers = int(self.low.min()) + min(self.zero_in, 0), int(self.high.max()) + max(self.zero_in, 0)
        return all(-(1 << 31) < n < 1 << 31 for n in (*numbers, *self.ends, *(e - self.zero_out for e in self.ends)))

    def thresholds(self, levels: np.ndarray) -> np.ndarray:
        """The least x - zero_in of each level, which is the result less zero_out: int64 [levels, channels]."""
        if self.scale is not None:
            return float_thresholds(levels, self.scale)
        return rescale_thresholds(levels, self.multiplier, self.shift, double_round=self.double_round)

    def channel_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """low and high, for each channel that has constants or bounds of its own."""
        count = max(self.low.size, self.slope.size)
        low, high = (np.broadcast_to(v, (count,)) for v in (self.low, self.high))
        return low, high


def scaling_of(t: Onnx, op: Rescale | RescaleF64) -> Scaling:
    """What an op and the CLAMP that alone reads it compute."""
    storage = op.output.type.storage
    zero_in = op.input_zp if isinstance(op, Rescale) else 0
    low, high = (v - zero_in for v in t.channel_bounds(op.input))
    if op.input_range is not None:
        low, high = np.maximum(low, op.input_range[0]), np.minimum(high, op.input_range[1])
    clamp = t.only_user(op.output, Clamp)
    least, most = (storage.minimum, storage.maximum) if clamp is None else (clamp.min_val, clamp.max_val)
    multiplier, shift, double_round = np.zeros(1, np.int64), np.zeros(1, np.int64), False
    if isinstance(op, Rescale):
        multiplier, shift = op.multiplier.astype(np.int64), op.shift.astype(np.int64)
        shift = np.where(multiplier == 0, shift.max(initial=1, where=multiplier != 0), shift)  # the result is 0
        double_round = op.rounding_mode == "DOUBLE_ROUND" and op.scale32
    return Scaling(
        x=op.input,
        result=op.output,
        multiplier=multiplier,
        shift=shift,
        scale=np.atleast_1d(op.scale) if isinstance(op, RescaleF64) else None,
        double_round=double_round,
        zero_in=zero_in,
        zero_out=op.output_zp,
        low=np.minimum(low, high),
        high=high,
        least=max(least, storage.minimum),
        most=min(most, storage.maximum),
    )
