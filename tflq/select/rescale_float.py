"""RESCALE in float32 kernels, where that is proven equal (`tflq.numerics.float_requantize`).

    MUL, [RELU_N1_TO_1, MUL, ADD,] ADD with RELU6 or RELU_N1_TO_1, MUL, FLOOR        0.5 to 0.8 ns per element

    RELU of sums that fall, MUL, ADD with RELU, FLOOR       `tflq.numerics.float_falling`, where levels are few
    RELU of sums that fall, SUB with RELU, MUL, FLOOR       `tflq.numerics.float_falling`, where constants may move

Sums may be asked for with the other sign, or with a number added to each channel (`lines_float.falls`, `added`): a
convolution does that in its weights and bias. Every operation is a kernel of its own and rounds once, with any kernels
and any delegate that computes in float32. The result is the float twin of the stored integers.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.quant import RescaleF64
from tflq.dialects.tosa.elementwise import Clamp
from tflq.dialects.tosa.movement import Rescale
from tflq.ir.core import Value
from tflq.ir.types import i32
from tflq.light import NamedTuple, dataclass
from tflq.numerics.float_falling import (
    DistanceRequantization,
    FallingRequantization,
    SplitRequantization,
    distance_arrays,
    falling_arrays,
    of_split_arrays,
    split_arrays,
)
from tflq.numerics.float_requantize import N1_TO_1, RELU6, of_arrays, requantization_arrays
from tflq.numerics.staircase import float_thresholds, rescale_thresholds
from tflq.select.lines_float import Line, added, falls, on_whole, stepped
from tflq.select.lowering import Kernels, Twin, integers_of
from tflq.select.rescale import result_range


@dataclass(frozen=True, slots=True)
class FloatRescale:
    """A RESCALE, with the clamp that is part of it, in float32; the result is a whole number, `offset` less than the
    stored one."""

    op: Rescale | RescaleF64
    clamp: Clamp | None
    fit: Line
    offset: int

    @property
    def falls(self) -> bool:
        """Whether accumulators are to have the other sign, and to be 0 where they are negative then."""
        return falls(self.fit)

    @property
    def added(self) -> np.ndarray:
        """The number to add to accumulators of the sign asked for, float32 [1 or C]."""
        return added(self.fit)

    @property
    def live(self) -> np.ndarray:
        """Whether a channel's result depends on its accumulators, bool [1 or C]."""
        return self.fit.live if isinstance(self.fit, DistanceRequantization) else self.fit.m > 0

    def emit(self, k: Kernels, x: Value) -> Value:
        """The result for accumulators as asked for, as integers, with a float twin; the ops count as selected."""
        twin = Twin(stepped(k, x, self.fit), self.offset)
        result = k.fuse(self.op, integers_of(k, twin, self.op.output.type.storage))
        return self._clamped(k, result, twin)

    def of_whole(self, k: Kernels, x: Value) -> Value:
        """The same where only the RESCALE is being selected, for accumulators as they are."""
        twin = Twin(on_whole(k, x, self.fit), self.offset)
        return self._clamped(k, integers_of(k, twin, self.op.output.type.storage), twin)

    def _clamped(self, k: Kernels, result: Value, twin: Twin) -> Value:
        if self.clamp is not None:
            result = k.fuse(self.clamp, result)
        k.twins[result] = twin
        return result


def float_rescale(op: Rescale | RescaleF64, k: Kernels, low: np.ndarray, high: np.ndarray) -> FloatRescale | None:
    """A RESCALE of accumulators that are in [low, high], int64 [1 or C], in float32; None without a proof."""
    least, most, clamp = result_range(op, k)
    if op.output.type.storage.bits != 8 or not least < most:
        return None
    if low.min() < i32.minimum or high.max() > i32.maximum:  # the kernel's accumulator wraps
        return None
    steps = _Steps.of(op, least, most)
    if steps is None:
        return None
    attempts = [(N1_TO_1, True)] if most - least == 255 else []
    if least == op.output_zp or not attempts:
        attempts.insert(0, (RELU6, False))
    low, high, _ = np.broadcast_arrays(low, high, steps.slope)
    ranges = [(low.min(keepdims=True), high.max(keepdims=True))] if steps.slope.size == 1 < low.size else []
    for bounds in (*ranges, (low, high)):
        thresholds, slope = (np.broadcast_to(v, (*v.shape[:-1], bounds[0].size)) for v in steps)
        if k.sums == "any":
            line = movable_line(k, thresholds, slope, *bounds, least - op.output_zp)
            if line is not None:
                return FloatRescale(op, clamp, line[0], line[1] + op.output_zp)
            continue
        falling = k.remembered(falling_arrays, thresholds, slope, *bounds)
        if falling:
            return FloatRescale(op, clamp, FallingRequantization(*falling), least)
        for kind, centred in attempts:
            found = k.remembered(requantization_arrays, thresholds, slope, *bounds, kind.activation, centred)
            if found:
                return FloatRescale(op, clamp, of_arrays(found, kind.activation), least + kind.middle)
    return None


def movable_line(
    k: Kernels, thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray, bottom: int
) -> tuple[DistanceRequantization | SplitRequantization, int] | None:
    """A line that holds wherever constants are put, and by how much its results are less than levels, of which those
    from `bottom` + 1 on have thresholds; None without a proof."""
    distance = k.remembered(distance_arrays, thresholds, slope, low, high)
    if distance:
        return DistanceRequantization(*distance), bottom
    parts = k.remembered(split_arrays, thresholds, slope, low, high, bottom)
    return (of_split_arrays(parts), 0) if parts else None


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
