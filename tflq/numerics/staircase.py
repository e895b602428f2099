"""Requantization as a staircase.

A requantization f is monotone and has few results, so it is known by its thresholds T(n), the smallest x with f(x) >=
n. Any formula with the same thresholds is the same function on every input (`tflq.numerics.division_fit`). Of TOSA's
RESCALE (`tflq.numerics.fixed_point`)

    T(n) = ceil(((2n - 1) 2^(s-1) - r) / M)    r = 2^30 for n >= 1, -2^30 for n <= 0 if it rounds twice (s > 31), else 0
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tflq.light import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["NEVER", "Staircase", "float_staircase", "float_thresholds", "rescale_staircase", "rescale_thresholds"]

NEVER = 1 << 48
"""A threshold that no accumulator reaches; -NEVER is one that all have passed."""


def rescale_thresholds(
    levels: np.ndarray, mantissa: npt.ArrayLike, shift: npt.ArrayLike, *, double_round: bool = True
) -> np.ndarray:
    """T(n) of a RESCALE by non-negative multipliers int[C], for levels n int64 [L] or [L, C]: int64 [L, C], within
    ±NEVER."""
    m, s = np.atleast_1d(np.asarray(mantissa, np.int64)), np.atleast_1d(np.asarray(shift, np.int64))
    odd = 2 * _of_channels(levels).astype(np.int64) - 1
    far = np.abs(odd) > (np.int64(1) << 62) >> (s - 1)
    target = np.where(far, 0, odd) << (s - 1)
    if double_round:
        target = target - np.where(s > 31, np.where(odd > 0, 1 << 30, -(1 << 30)), 0)
    limit = np.where(odd > 0, NEVER, -NEVER)
    exact = -((-target) // np.maximum(m, 1))
    return np.where(far | (m == 0), limit, np.clip(exact, -NEVER, NEVER))


def float_thresholds(levels: np.ndarray, scale: npt.ArrayLike) -> np.ndarray:
    """T(n) of round_half_away(double(x) * scale) for positive scales float64[C] and levels n [L] or [L, C]: int64
    [L, C], within ±NEVER."""
    d = np.atleast_1d(np.asarray(scale, np.float64))
    # half away: at or above n - 1/2 for n >= 1; strictly above it for n <= 0
    border = _of_channels(levels) - 0.5
    positive = border > 0
    guess = np.clip(np.ceil(border / d), -NEVER, NEVER)

    def reached(x: np.ndarray) -> np.ndarray:
        product = x * d
        return np.where(positive, product >= border, product > border)

    first = np.full(guess.shape, NEVER, np.float64)
    for step in (1, 0, -1):
        first = np.where(reached(guess + step), guess + step, first)
    return np.clip(first, -NEVER, NEVER).astype(np.int64)


def _of_channels(levels: np.ndarray) -> np.ndarray:
    """Levels as [L, 1] or [L, C]."""
    return levels[:, None] if levels.ndim == 1 else levels


@dataclass(frozen=True)
class Staircase:
    """A requantization of C channels: the levels that each climbs to, where, and where as reals.

    The levels of channel c are bottom[c] to bottom[c] + count - 1 (int64 [C]). `first` is X(1) and `step` the distance
    from X(m) to X(m + 1), float64 [C]; below zero it climbs at -X(m). `formula` gives the thresholds of `numbers` ([C]
    each).
    """

    bottom: np.ndarray
    count: int
    first: np.ndarray
    step: np.ndarray
    formula: Callable[..., np.ndarray]
    numbers: tuple[np.ndarray, ...]

    @property
    def top(self) -> np.ndarray:
        """The highest level of each channel."""
        return self.bottom + (self.count - 1)

    @property
    def last(self) -> np.ndarray:
        """How often each channel climbs at most on one side of zero: int64 [C]."""
        return np.maximum(np.maximum(self.top, 1 - self.bottom), 1)

    @property
    def levels(self) -> np.ndarray:
        """All levels: int64 [L, C]."""
        return self.bottom + np.arange(self.count)[:, None]

    def of(self, channels: np.ndarray | slice) -> Staircase:
        """The staircase of some of the channels."""
        numbers = tuple([v[channels] for v in self.numbers])
        return Staircase(
            self.bottom[channels], self.count, self.first[channels], self.step[channels], self.formula, numbers
        )

    def thresholds(self, levels: np.ndarray) -> np.ndarray:
        """T(n) for levels n int64 [L] or [L, C]: int64 [L, C]."""
        return self.formula(levels, *self.numbers)


def rescale_staircase(
    bottom: npt.ArrayLike, count: int, mantissa: npt.ArrayLike, shift: npt.ArrayLike, *, double_round: bool = True
) -> Staircase:
    """The staircase of a RESCALE by non-negative multipliers int[C]; a zero one never climbs."""
    m, s = np.atleast_1d(np.asarray(mantissa, np.int64)), np.atleast_1d(np.asarray(shift, np.int64))
    with np.errstate(divide="ignore"):
        step = np.ldexp(1.0, s) / m
        first = (np.ldexp(0.5, s) - np.where(double_round & (s > 31), 2.0**30, 0.0)) / m
    formula = partial(rescale_thresholds, double_round=double_round)
    bottom, m, s = (np.broadcast_to(v, step.shape) for v in (bottom, m, s))
    return Staircase(bottom, count, first, step, formula, (m, s))


def float_staircase(bottom: npt.ArrayLike, count: int, scale: npt.ArrayLike) -> Staircase:
    """The staircase of round_half_away(double(x) * scale), positive scales float64[C]."""
    d = np.atleast_1d(np.asarray(scale, np.float64))
    return Staircase(np.broadcast_to(bottom, d.shape), count, 0.5 / d, 1.0 / d, float_thresholds, (d,))
