"""RESCALE in float32 kernels, where that is proven equal (`tflq.numerics.float_requantize`).

    MUL, [RELU_N1_TO_1, MUL, ADD,] ADD with RELU6 or RELU_N1_TO_1, MUL, FLOOR        0.5 to 0.8 ns per element

    RELU of sums that fall, MUL, ADD with RELU, FLOOR       `tflq.numerics.float_lines`, where levels are few

Sums may be asked for with the other sign, or with a number added to each channel (`FloatRescale.falls`, `added`): a
convolution does that in its weights and bias. Every operation is a kernel of its own and rounds once, with any kernels
and any delegate that computes in float32. The result is the float twin of the stored integers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tflq.dialects.ext import RescaleF64
from tflq.dialects.tosa.elementwise import Clamp
from tflq.dialects.tosa.movement import Rescale
from tflq.ir.core import Value
from tflq.ir.types import i32
from tflq.light import dataclass
from tflq.numerics.float_falling import FallingRequantization, falling_arrays
from tflq.numerics.float_requantize import N1_TO_1, RELU6, FloatRequantization, of_arrays, requantization_arrays
from tflq.numerics.staircase import float_thresholds, rescale_thresholds
from tflq.select.lines_float import stepped, stepped_down
from tflq.select.lowering import Kernels, Twin, integers_of
from tflq.select.rescale import result_range


@dataclass(frozen=True, slots=True)
class FloatRescale:
    """A RESCALE, with the clamp that is part of it, in float32; the result is a whole number, `offset` less than the
    stored one."""

    op: Rescale | RescaleF64
    clamp: Clamp | None
    fit: FloatRequantization | FallingRequantization
    offset: int

    @property
    def falls(self) -> bool:
        """Whether accumulators are to have the other sign, and to be 0 where they are negative then."""
        return isinstance(self.fit, FallingRequantization)

    @property
    def added(self) -> np.ndarray:
        """The number to add to accumulators of the sign asked for, float32 [1 or C]."""
        if isinstance(self.fit, FallingRequantization):
            return self.fit.h
        return np.zeros(1, np.float32) if self.fit.a is None else -self.fit.a

    def emit(self, k: Kernels, x: Value) -> Value:
        """The result for accumulators as asked for, as integers, with a float twin; the ops count as selected."""
        fit = self.fit
        stepping = stepped_down(k, x, fit) if isinstance(fit, FallingRequantization) else stepped(k, x, fit)
        twin = Twin(stepping, self.offset)
        result = k.fuse(self.op, integers_of(k, twin, self.op.output.type.storage))
        if self.clamp is not None:
            result = k.fuse(self.clamp, result)
        k.twins[result] = twin
        return result


def float_rescale(op: Rescale | RescaleF64, k: Kernels, low: np.ndarray, high: np.ndarray) -> FloatRescale | None:
    """A RESCALE of accumulators that are in [low, high], int64 [C], in float32; None without a proof."""
    least, most, clamp = result_range(op, k)
    if op.output.type.storage.bits != 8 or not least < most or (isinstance(op, Rescale) and op.input_zp):
        return None
    if low.min() < i32.minimum or high.max() > i32.maximum:  # the kernel's accumulator wraps
        return None
    steps = _Steps.of(op, least, most)
    if steps is None:
        return None
    attempts = [(N1_TO_1, True)] if most - least == 255 else []
    if least == op.output_zp or not attempts:
        attempts.insert(0, (RELU6, False))
    ranges = [(low.min(keepdims=True), high.max(keepdims=True))] if steps.slope.size == 1 else []
    for bounds in (*ranges, (low, high)):
        thresholds, slope = (np.broadcast_to(v, (*v.shape[:-1], bounds[0].size)) for v in steps)
        falling = k.remembered(falling_arrays, thresholds, slope, *bounds)
        if falling:
            return FloatRescale(op, clamp, FallingRequantization(*falling), least)
        for kind, centred in attempts:
            found = k.remembered(requantization_arrays, thresholds, slope, *bounds, kind.activation, centred)
            if found:
                return FloatRescale(op, clamp, of_arrays(found, kind.activation), least + kind.middle)
    return None


class _Steps(NamedTuple):
    """The thresholds of a rescaling, int64 [L, C], and levels per unit, float64 [C]; C is 1 for all channels alike."""

    thresholds: np.ndarray
    slope: np.ndarray

    @classmethod
    def of(cls, op: Rescale | RescaleF64, least: int, most: int) -> _Steps | None:
        levels = np.arange(least - op.output_zp + 1, most - op.output_zp + 1)
        if isinstance(op, RescaleF64):
            scale = np.atleast_1d(np.asarray(op.scale, np.float64))
            return cls(float_thresholds(levels, scale), scale)
        multiplier, shift = op.multiplier.astype(np.int64), op.shift.astype(np.int64)
        if (multiplier < 0).any():
            return None
        twice = op.rounding_mode == "DOUBLE_ROUND" and op.scale32
        return cls(rescale_thresholds(levels, multiplier, shift, double_round=twice), np.ldexp(multiplier, -shift))
