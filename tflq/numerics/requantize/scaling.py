"""A requantization, and the factors by which kernels multiply and round.

    stored = clamp(factor(x - zero_in) + zero_out)

A factor is all that differs between kernels:

    QuantizedMultiplier    MultiplyByQuantizedMultiplier: the multiplier of a real scale, and two roundings
    Float64                round_half_away(double(x) scale): FULLY_CONNECTED of 8 bits
    Float32                rint(float(x) scale) in float32: operators that the XNNPACK delegate takes
    FixedPoint             TOSA's RESCALE: x M / 2^s, rounded once or twice
    Shortened              x / 2^s in int16, times a multiplier of 16 bits: the delegate's uint8 on Cortex-A53

Sources: kernels/internal/common.cc, TOSA 1.0 specification, RESCALE;
kernels/internal/reference/integer_ops/fully_connected.h.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

import numpy as np

from tflq.numerics.fixed_point import (
    half_away,
    multiply,
    quantize_multipliers,
    rescale,
    rescale_i64,
    wide_multipliers,
)
from tflq.numerics.requantize.staircase import NEVER, float_thresholds, rescale_thresholds

_EXACT: Final = 1 << 24
"""Integers below it in magnitude are clamped as they are, by a scale of 1."""

FAR: Final = 2.0**61
"""With numbers of this size and more added, bounds may leave int64."""
_INT64: Final = -(1 << 63), (1 << 63) - 1


class Bounds(NamedTuple):
    """Least and greatest integers of each channel, or of all: int64 [1 or C] each."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, low: int, high: int) -> Bounds:
        """Bounds of all channels."""
        return cls(np.asarray([low], np.int64), np.asarray([high], np.int64))

    @property
    def range(self) -> Range:
        """The least and the greatest integer of all channels; 0 if there are none."""
        if self.low.size == self.high.size == 1:
            return Range(self.low.item(), self.high.item())
        return Range(int(self.low.min()), int(self.high.max())) if self.low.size else Range(0, 0)

    def widened(self, low: int, high: int) -> Bounds:
        """With any integer from low to high added: all of int64, if that could leave it."""
        if max(-low, high) >= FAR:
            return Bounds.of(*_INT64)
        return Bounds(self.low + low, self.high + high)

    def within(self, low: int, high: int) -> tuple[Bounds, Range]:
        """Bounds of what a type from low to high holds of sums, which wrap, and their range."""
        known = self.range
        if low <= known.low and known.high <= high:
            return self, known
        fits = (self.low >= low) & (self.high <= high)
        bounds = Bounds(np.where(fits, self.low, low), np.where(fits, self.high, high))
        return bounds, bounds.range


class Range(NamedTuple):
    """The least and the greatest of some integers."""

    low: int
    high: int

    @property
    def reach(self) -> int:
        """The greatest magnitude."""
        return max(-self.low, self.high)


class Factor:
    """A real factor per channel and its rounding, as a kernel has it."""

    __slots__ = ()

    @property
    def slope(self) -> np.ndarray:
        """Levels per unit, float64 [1 or C]."""
        raise NotImplementedError

    @property
    def rises(self) -> bool:
        """Whether greater integers have greater results, or equal ones."""
        raise NotImplementedError

    @property
    def is_line(self) -> bool:
        """Whether thresholds are those of a line of reals, `steps`, rounded up."""
        return True

    @property
    def key(self) -> Hashable:
        """A key that is equal for equal factors of a class."""
        raise NotImplementedError

    @property
    def steps(self) -> tuple[np.ndarray, np.ndarray]:
        """Where a staircase begins to climb, and the distance between its steps, as reals: float64 [1 or C]."""
        raise NotImplementedError

    def thresholds(self, levels: np.ndarray) -> np.ndarray:
        """The least x that reaches each level: int64 [L, C] for levels int64 [L] or [L, C]."""
        raise NotImplementedError

    def apply(self, x: np.ndarray) -> np.ndarray:
        """The kernel's own result for integers [..., C]: whole numbers, int64 or float64."""
        raise NotImplementedError

    def of_channels(self, channels: np.ndarray | slice) -> Self:
        """The factor of some channels."""
        raise NotImplementedError


class FixedPoint(Factor):
    """x multiplier / 2^shift: int64 [1 or C] each. double_round: rounded twice where shifts are above 31."""

    __slots__ = ("double_round", "multiplier", "shift")

    def __init__(self, multiplier: np.ndarray, shift: np.ndarray, double_round: bool = True) -> None:
        self.multiplier: Final = multiplier
        self.shift: Final = shift
        self.double_round: Final = double_round

    @property
    def numbers(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Multiplier, shift, and whether it rounds twice."""
        return self.multiplier, self.shift, self.double_round

    @property
    def slope(self) -> np.ndarray:
        return np.asarray(np.ldexp(self.multiplier, -self.shift))

    @property
    def rises(self) -> bool:
        return bool((self.multiplier >= 0).all())

    @property
    def key(self) -> Hashable:
        return self.multiplier.tobytes(), self.shift.tobytes(), self.double_round

    @property
    def steps(self) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(divide="ignore"):
            whole = np.ldexp(1.0, self.shift)
            step = whole / self.multiplier
            second = np.where(self.double_round & (self.shift > 31), 2.0**30, 0.0)
            return (whole * 0.5 - second) / self.multiplier, step

    def thresholds(self, levels: np.ndarray) -> np.ndarray:
        return rescale_thresholds(levels, self.multiplier, self.shift, double_round=self.double_round)

    def apply(self, x: np.ndarray) -> np.ndarray:
        return rescale(x, self.multiplier, self.shift, double_round=self.double_round)

    def of_channels(self, channels: np.ndarray | slice) -> FixedPoint:
        return FixedPoint(self.multiplier[channels], self.shift[channels], self.double_round)


class QuantizedMultiplier(FixedPoint):
    """x times real scales, float64 [1 or C], as MultiplyByQuantizedMultiplier computes it: with a multiplier of 31
    bits, rounded twice; of int64 with one of 15 bits, rounded once. Where its shifts are RESCALE's, it is that."""

    __slots__ = ("multipliers", "scale")

    def __init__(self, scale: np.ndarray) -> None:
        mantissa, left = quantize_multipliers(scale)
        super().__init__(mantissa.astype(np.int64), 31 - left.astype(np.int64))
        self.scale: Final = scale
        self.multipliers: Final = mantissa, left  # int32 [1 or C] each; left shifts

    def apply(self, x: np.ndarray) -> np.ndarray:
        if x.dtype == np.int64:
            return rescale_i64(x, *wide_multipliers(*self.multipliers)).astype(np.int64)
        return multiply(x, *self.multipliers).astype(np.int64)


class Float64(Factor):
    """round_half_away(double(x) scale): float64 [1 or C], positive."""

    __slots__ = ("scale",)

    def __init__(self, scale: np.ndarray) -> None:
        self.scale: Final = scale

    @property
    def slope(self) -> np.ndarray:
        return self.scale

    @property
    def rises(self) -> bool:
        return bool((np.isfinite(self.scale) & (self.scale > 0)).all())

    @property
    def key(self) -> Hashable:
        return self.scale.tobytes()

    @property
    def steps(self) -> tuple[np.ndarray, np.ndarray]:
        return 0.5 / self.scale, 1.0 / self.scale

    def thresholds(self, levels: np.ndarray) -> np.ndarray:
        return float_thresholds(levels, self.scale)

    def apply(self, x: np.ndarray) -> np.ndarray:
        return half_away(x.astype(np.float64) * self.scale)

    def of_channels(self, channels: np.ndarray | slice) -> Float64:
        return Float64(self.scale[channels])


class Float32(Factor):
    """rint(float(x + before) scale + after) - zero_out: float32 [1 or C], positive; each step is rounded to float32,
    halves to even. `after` is None where nothing is added; else it holds the zero point `zero_out`."""

    __slots__ = ("after", "before", "scale", "zero_out")

    def __init__(self, scale: np.ndarray, before: int = 0, after: np.float32 | None = None, zero_out: int = 0) -> None:
        self.scale: Final = scale
        self.before: Final = before
        self.after: Final = after
        self.zero_out: Final = zero_out

    @property
    def slope(self) -> np.ndarray:
        return self.scale.astype(np.float64)

    @property
    def rises(self) -> bool:
        return bool((np.isfinite(self.scale) & (self.scale > 0)).all())

    @property
    def is_line(self) -> bool:
        return False

    @property
    def key(self) -> Hashable:
        return self.scale.tobytes(), self.before, None if self.after is None else float(self.after), self.zero_out

    @property
    def steps(self) -> tuple[np.ndarray, np.ndarray]:
        return 0.5 / self.slope, 1.0 / self.slope

    def thresholds(self, levels: np.ndarray) -> np.ndarray:
        """By bisection about the border in real numbers: float32 sums and products are off by 2^-22 of it at most."""
        rows = levels[:, None] if levels.ndim == 1 else levels
        moved = 0.0 if self.after is None else float(self.after) - self.zero_out
        border = (rows - 0.5 - moved) / self.slope - self.before
        reach = 2 + (np.abs(border) + abs(self.before) + np.abs(rows / self.slope)) * 2.0**-21
        low = np.clip(np.floor(border - reach), -NEVER, NEVER).astype(np.int64)
        high = np.clip(np.ceil(border + reach), -NEVER, NEVER).astype(np.int64)
        for _ in range(int(high.max() - low.min()).bit_length() if low.size else 0):
            if not (low < high).any():
                break
            middle = (low + high) >> 1
            reached = self.apply(middle) >= rows
            low, high = np.where(reached, low, np.minimum(middle + 1, high)), np.where(reached, middle, high)
        return low

    def apply(self, x: np.ndarray) -> np.ndarray:
        product = (x + self.before).astype(np.float32) * self.scale
        if self.after is None:
            return np.rint(product).astype(np.float64)
        return np.rint(product + self.after).astype(np.float64) - self.zero_out

    def of_channels(self, channels: np.ndarray | slice) -> Float32:
        return Float32(self.scale[channels], self.before, self.after, self.zero_out)


class Shortened(Factor):
    """A sum shifted right (or left, by fewer than 0 bits) into int16, then times multiplier / 2^15; both round half up.
    right, multiplier: one number each, the latter of 15 bits."""

    __slots__ = ("multiplier", "right")

    def __init__(self, multiplier: int, right: int) -> None:
        self.multiplier: Final = multiplier
        self.right: Final = right

    @property
    def slope(self) -> np.ndarray:
        return np.ldexp(np.asarray([self.multiplier], np.float64), -15 - self.right)

    @property
    def rises(self) -> bool:
        return True

    @property
    def is_line(self) -> bool:
        return False

    @property
    def key(self) -> Hashable:
        return self.multiplier, self.right

    def apply(self, x: np.ndarray) -> np.ndarray:
        x = x.astype(np.int64)
        x = (
            (x + (1 << (self.right - 1))) >> self.right
            if self.right > 0
            else np.clip(x, -1 << 16, 1 << 16) << -self.right
        )
        return (np.clip(x, -1 << 15, (1 << 15) - 1) * self.multiplier + (1 << 14)) >> 15


F = TypeVar("F", bound=Factor, covariant=True)


class Scaling(Generic[F]):
    """stored = clamp(factor(x - zero_in) + zero_out, result), for x - zero_in within `accumulator`."""

    __slots__ = ("accumulator", "factor", "result", "zero_in", "zero_out")

    def __init__(self, factor: F, zero_in: int, zero_out: int, accumulator: Bounds, result: Range) -> None:
        self.factor: Final = factor
        self.zero_in: Final = zero_in
        self.zero_out: Final = zero_out
        self.accumulator: Final = accumulator
        self.result: Final = result

    def replace(self, **changes: Any) -> Scaling[F]:
        """A copy with other values of some fields."""
        return Scaling(**{name: getattr(self, name) for name in self.__slots__} | changes)

    @property
    def levels(self) -> Range:
        """The least and the greatest result of the factor that is not clamped."""
        return Range(self.result.low - self.zero_out, self.result.high - self.zero_out)

    @property
    def is_one(self) -> bool:
        """Whether it is a scale of 1 on integers that are small enough to be clamped as they are."""
        if not isinstance(self.factor, FixedPoint) or self.accumulator.range.reach >= _EXACT:
            return False
        multiplier, shift = self.factor.multiplier, self.factor.shift
        if multiplier.size and multiplier.item(0) != 1 << shift.item(0):  # as of most
            return False
        return bool((multiplier == 1 << shift).all())

    @property
    def key(self) -> Hashable:
        """A key that is equal for equal requantizations of x - zero_in."""
        low, high = self.accumulator
        return self.factor.key, low.tobytes(), high.tobytes(), self.zero_out, self.result

    def staircase(self) -> Staircase:
        """The staircase between the ends of the result."""
        low, high = self.levels
        return Staircase.of(self.factor, low + 1, high - low)

    def thresholds(self) -> np.ndarray:
        """T(n) of all levels above the lowest: int64 [L, C]."""
        low, high = self.levels
        return self.factor.thresholds(np.arange(low + 1, high + 1))


class Staircase:
    """A requantization of C channels: the levels that each climbs to, where, and where as reals.

    The levels of channel c are bottom[c] to bottom[c] + height - 1 (int64 [C]). `first` is X(1) and `step` the distance
    from X(m) to X(m + 1), float64 [C]; below zero it climbs at -X(m).
    """

    __slots__ = ("bottom", "factor", "first", "height", "step")

    def __init__(self, factor: Factor, bottom: np.ndarray, height: int, first: np.ndarray, step: np.ndarray) -> None:
        self.factor: Final = factor
        self.bottom: Final = bottom
        self.height: Final = height
        self.first: Final = first
        self.step: Final = step

    @classmethod
    def of(
        cls, factor: Factor, bottom: np.ndarray | int, height: int, steps: tuple[np.ndarray, np.ndarray] | None = None
    ) -> Staircase:
        """The staircase of a factor [C] that rises; one of 0 never climbs. steps: those of the factor, if known."""
        first, step = steps or factor.steps
        return cls(factor, np.broadcast_to(bottom, step.shape), height, first, step)

    @property
    def top(self) -> np.ndarray:
        """The highest level of each channel."""
        return self.bottom + (self.height - 1)

    @property
    def last(self) -> np.ndarray:
        """The highest number of climbs of each channel on one side of zero: int64 [C]."""
        return np.maximum(np.maximum(self.top, 1 - self.bottom), 1)

    @property
    def levels(self) -> np.ndarray:
        """All levels: int64 [L, C]."""
        return self.bottom + np.arange(self.height)[:, None]

    def of_channels(self, channels: np.ndarray | slice) -> Staircase:
        """The staircase of some of the channels."""
        first, step = self.first[channels], self.step[channels]
        return Staircase(self.factor.of_channels(channels), self.bottom[channels], self.height, first, step)

    def thresholds(self, levels: np.ndarray) -> np.ndarray:
        """T(n) for levels n int64 [L] or [L, C]: int64 [L, C]."""
        return self.factor.thresholds(levels)
