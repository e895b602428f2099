"""A factor in float32 as operations in float32: the kernel's arithmetic itself, without a search for a line.

    Rounded    rint(clip(x, low, high) m [+ after])
    Fallen     relu(height - relu((x (-m) [- after] + 3 2^22) - (3 2^22 - high)))
               height - relu((relu(x) (-m) + 3 2^22) - (3 2^22 - height)), where levels begin at zero

`Rounded` has the clip before the product, so that a runtime cannot move the factor into the weights of a convolution.
In `Fallen` the sum with 3 2^22, whose last place is 1, rounds halves to even on either side of zero, as rint does; both
differences are of whole numbers. It needs each operation to be a kernel of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from tflq.numerics.requantize.climb import climbs_of
from tflq.numerics.requantize.float_forms import FloatForm, Prepare
from tflq.numerics.requantize.forms import Ops, X
from tflq.numerics.requantize.scaling import Factor, Float32, Scaling

_UNIT: Final = 3 << 22
_EXACT: Final = 1 << 24
_BESIDE: Final = (0, 1, -1, 2, -2)
"""Numbers by which sums are moved, from where the first level begins at a half."""


class _InFloat32(FloatForm):
    """Forms of a factor in float32."""

    factor: Float32

    def prepare(self) -> Prepare:
        return Prepare(negate=False, add=np.asarray([self.factor.before], np.float32), relu=False)


def _factor(s: Scaling[Factor]) -> Float32 | None:
    """The factor in float32 of a scaling with several results; None if it has another."""
    factor = s.factor
    return factor if isinstance(factor, Float32) and factor.rises and s.result.low < s.result.high else None


def _ends(s: Scaling[Factor], factor: Float32) -> np.ndarray:
    """The least and the greatest level of each channel, float32 [2, C]; those of all sums where a number is added."""
    if factor.after is not None:
        return np.asarray(s.levels, np.float32)[:, None]
    return np.clip(factor.apply(np.stack(s.accumulator)), *s.levels).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Rounded(_InFloat32):
    """rint(clip(x, low, high) m [+ after]): the kernel's own product and sum, and the clip ends where levels do."""

    m: np.ndarray
    low: np.ndarray
    high: np.ndarray
    factor: Float32

    @classmethod
    def of(cls, s: Scaling[Factor]) -> Self | None:
        """The form of a scaling by a factor in float32, clipped to the integers around the outer thresholds. None for
        other factors, or where float32 does not hold these integers and a number is added to them."""
        if (factor := _factor(s)) is None:
            return None
        low, high = factor.thresholds(np.asarray([s.levels.low + 1, s.levels.high]))
        least, most = _ends(s, factor)
        ends = [
            np.where(least < most, np.clip(v, *s.accumulator.range) + factor.before, least) for v in (low - 1, high)
        ]
        offset = factor.before or s.zero_in  # else the ends are what the kernel converts them to
        if offset and max(int(np.abs(v).max()) for v in ends) >= _EXACT:
            return None
        m = np.where(least < most, factor.scale, np.float32(1))
        return cls(m, ends[0].astype(np.float32), ends[1].astype(np.float32), factor)

    @property
    def live(self) -> np.ndarray:
        return self.low < self.high

    def offset(self, bottom: int) -> int:  # noqa: ARG002
        return -self.factor.zero_out

    def apply(self, x: X, ops: Ops[X]) -> X:
        x = ops.mul(ops.clip(x, self.low, self.high), ops.row(self.m))
        if self.factor.after is not None:
            x = ops.add(x, ops.row(np.asarray([self.factor.after], np.float32)))
        return ops.rint(x)


@dataclass(frozen=True, eq=False)
class Fallen(_InFloat32):
    """relu(height - relu((x (-m) [- after] + unit) - (unit - high))): the kernel's own product and sum, and `unit`,
    whose last place is 1, rounds as rint does. The outer rectifier is a convolution's where levels begin at zero."""

    m: np.ndarray
    height: np.ndarray
    high: np.ndarray
    factor: Float32
    add: np.ndarray
    from_zero: bool = False

    @classmethod
    def of(cls, s: Scaling[Factor]) -> Self | None:
        """The form of a scaling by a factor in float32; None for other factors."""
        if (factor := _factor(s)) is None:
            return None
        low, high = s.levels
        numbers = (high - low, high + factor.zero_out, factor.before)
        height, most, add = (np.asarray([v], np.float32) for v in numbers)
        return cls(factor.scale, height, most, factor, add)

    @classmethod
    def of_convolution(cls, s: Scaling[Factor]) -> Self | None:
        """The form of sums that a convolution prepares. A channel with one level has that as a constant, so that its
        sums need not be exact. From sums that float32 does not hold a number is taken, where that is proven."""
        fit = cls.of(s)
        if fit is None or fit.add.any() or fit.factor.after is not None:
            return fit
        least, most = _ends(s, fit.factor)
        live, (low, high) = least < most, s.accumulator
        far = live & (np.maximum(-low, high) >= _EXACT) & (high - low < _EXACT)
        fit = replace(fit, from_zero=s.levels.low == 0)
        if not live.all():
            ends = np.where(live, fit.high, fit.high - least)
            fit = replace(fit, m=np.where(live, fit.m, np.float32(0)), high=ends)
        return fit._moved(s, least, np.nonzero(far)[0]) if far.any() else fit

    def _moved(self, s: Scaling[Factor], least: np.ndarray, channels: np.ndarray) -> Self:
        """The form that takes numbers from the sums of some channels and counts from their least levels."""
        *_, each = climbs_of(s)
        climb = each.of_channels(channels)._replace(bottom=0)
        first = climb.thresholds[least[channels].astype(np.int64) - s.levels.low, np.arange(channels.size)]
        m, high, add = (
            np.broadcast_to(v, least.shape).copy() for v in (self.m, self.high, self.add.astype(np.float64))
        )
        steps = climb.steps
        for beside in _BESIDE:
            numbers = np.rint(0.5 / climb.slope) - first + beside
            near = replace(self, m=m[channels], high=(high - least)[channels], add=numbers)
            proven = steps.meets_thresholds(near(steps.reached), near(steps.missed))
            at = channels[proven]
            high[at], add[at] = near.high[proven], near.add[proven]
        return replace(self, high=high, add=add)

    def prepare(self) -> Prepare:
        return Prepare(negate=False, add=self.add, relu=self.from_zero)

    def offset(self, bottom: int) -> int:
        return bottom

    def apply(self, x: X, ops: Ops[X]) -> X:
        x, unit = ops.mul(x, ops.row(-self.m)), np.asarray([_UNIT], np.float32)
        if self.factor.after is not None:
            x = ops.add(x, ops.row(np.asarray([-self.factor.after], np.float32)))
        x = ops.sub(ops.add(x, ops.row(unit)), ops.row(unit - self.high), relu=True)
        return ops.sub(ops.row(self.height), x, relu=not self.from_zero)
