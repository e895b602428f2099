"""A factor in float32 as operations in float32: the kernel's arithmetic itself, without a search for a line.

    Rounded    rint(clip(x, low, high) m [+ after])
    Fallen     relu(height - relu((x (-m) [- after] + 3 2^22) - (3 2^22 - high)))

`Rounded` has the clip before the product, so that a runtime cannot move the factor into the weights of a convolution.
In `Fallen` the sum with 3 2^22, whose last place is 1, rounds halves to even on either side of zero, as rint does; both
differences are of whole numbers. It needs each operation to be a kernel of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from tflq.numerics.requantize.float_forms import FloatForm, Prepare
from tflq.numerics.requantize.forms import Ops, X
from tflq.numerics.requantize.scaling import Factor, Float32, Scaling

_UNIT: Final = 3 << 22
_EXACT: Final = 1 << 24


class _InFloat32(FloatForm):
    """Forms of a factor in float32."""

    factor: Float32

    def prepare(self) -> Prepare:
        return Prepare(negate=False, add=np.asarray([self.factor.before], np.float32))


def _factor(s: Scaling[Factor]) -> Float32 | None:
    """The factor in float32 of a scaling with several results; None if it has another."""
    factor = s.factor
    return factor if isinstance(factor, Float32) and factor.rises and s.result.low < s.result.high else None


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
        ends = [np.clip(v, *s.accumulator.range) + factor.before for v in (low - 1, high)]
        offset = factor.before or s.zero_in  # else the ends are what the kernel converts them to
        if offset and max(int(np.abs(v).max()) for v in ends) >= _EXACT:
            return None
        return cls(factor.scale, ends[0].astype(np.float32), ends[1].astype(np.float32), factor)

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
    whose last place is 1, rounds as rint does."""

    m: np.ndarray
    height: np.ndarray
    high: np.ndarray
    factor: Float32

    @classmethod
    def of(cls, s: Scaling[Factor]) -> Self | None:
        """The form of a scaling by a factor in float32; None for other factors."""
        if (factor := _factor(s)) is None:
            return None
        low, high = s.levels
        ends = [np.asarray([v], np.float32) for v in (high - low, high + factor.zero_out)]
        return cls(factor.scale, ends[0], ends[1], factor)

    def offset(self, bottom: int) -> int:
        return bottom

    def apply(self, x: X, ops: Ops[X]) -> X:
        x, unit = ops.mul(x, ops.row(-self.m)), np.asarray([_UNIT], np.float32)
        if self.factor.after is not None:
            x = ops.add(x, ops.row(np.asarray([-self.factor.after], np.float32)))
        x = ops.sub(ops.add(x, ops.row(unit)), ops.row(unit - self.high), relu=True)
        return ops.sub(ops.row(self.height), x, relu=True)
