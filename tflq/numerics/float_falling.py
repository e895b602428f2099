"""Requantization in float32 of sums that fall, with three kernels after the convolution.

    u = relu(h - x)                       the convolution's own: weights with the other sign, h in the bias
    f(x) = floor(relu(c - u * m))         MUL, ADD with RELU, FLOOR

h is where the last level has been reached, so the first rectifier ends the levels above, the second one below: neither
a clamp nor the product that undoes its scale is needed. f is monotone in x for m >= 0, so it equals the requantization
of `tflq.numerics.float_requantize` if f(T(n)) has reached n and f(T(n) - 1) has not, and the same at the ends.

m is what it is, there is no gain to choose; h is any whole number before the line reaches a further level. So some are
tried, and c in the middle of what they leave. Where thousands of accumulators share a level that is not enough.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.light import NamedTuple
from tflq.numerics.exact_sums import EXACT
from tflq.numerics.float_thresholds import float_steps, from_steps

__all__ = ["FallingRequantization", "falling_arrays", "fit_falling"]

_TRIES: Final = 96
_STEPS: Final = (0, 1, -1)  # of m away from the real slope
_FURTHER: Final = 7  # how far h is from the one before
_FEW: Final = 12
_HOPELESS: Final = 0.8  # where this share of more than a few channels is left after a few tries, there are too many
_ROOM: Final = 0.9  # how much of a level h may use up


class FallingRequantization(NamedTuple):
    """f(x) = floor(relu(c - relu(h - x) * m)): float32 [C] each; results are levels from 0 on."""

    h: np.ndarray
    m: np.ndarray
    c: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """f of integers [..., C], operation by operation in float32."""
        u = np.maximum(self.h.astype(np.float64) - x, 0).astype(np.float32)
        return np.floor(np.maximum(u * -self.m + self.c, np.float32(0)))


def falling_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, ...]:
    """`fit_falling` as arrays; nothing without a proof."""
    return tuple(fit_falling(thresholds, slope, low, high) or ())


def fit_falling(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray
) -> FallingRequantization | None:
    """The requantization with thresholds T(1) ... T(L) int64 [L, C] on accumulators in [low, high] int64 [C], with
    about `slope` float64 [C] levels per unit. None without a proof."""
    top = np.clip(thresholds[-1], low, high)
    span = np.clip(_ROOM / np.maximum(slope, 1 / EXACT), 1, _TRIES * _FURTHER).astype(np.int64)
    least = top + span - EXACT  # what is below it is rounded, and on the first level anyway
    low = np.where(thresholds[0] > least, np.maximum(low, least), low)
    live = ((thresholds > low) & (thresholds <= high)).any(0)
    if (low < least)[live].any() or (np.abs(top) + span >= EXACT)[live].any():
        return None
    h, m = np.zeros(low.shape, np.float32), np.zeros(low.shape, np.float32)
    c = ((thresholds <= low).sum(0) + 0.5).astype(np.float32)
    level = np.arange(1, thresholds.shape[0] + 1)[:, None]
    reached = np.where(thresholds <= high, np.maximum(thresholds, low), np.nan)
    missed = np.where(thresholds > low, np.minimum(thresholds - 1, high), np.nan)
    left = np.nonzero(live)[0]
    if not _is_line(level, reached[:, left], missed[:, left], slope[left]):
        return None
    for i in range(_TRIES):
        if not left.size:
            return FallingRequantization(h, m, c)
        if i == _FEW and left.size > max(_HOPELESS * live.sum(), _FEW):
            return None
        at = top[left] + i // len(_STEPS) * _FURTHER % span[left]
        steps = float_steps(slope[left].astype(np.float32)) + _STEPS[i % len(_STEPS)]
        tried = _line(level, reached[:, left], missed[:, left], at, from_steps(np.maximum(steps, 0)))
        done = _is_proven(tried, level, reached[:, left], missed[:, left])
        h[left[done]], m[left[done]], c[left[done]] = (v[done] for v in tried)
        left = left[~done]
    return None


def _is_line(level: np.ndarray, reached: np.ndarray, missed: np.ndarray, slope: np.ndarray) -> bool:
    """Whether a line of that slope meets the thresholds of each channel; none does that jump at zero."""
    least, below = np.fmax.reduce(level - reached * slope, 0), np.fmin.reduce(level - missed * slope, 0)
    return not (least >= below).any()


def _line(
    level: np.ndarray, reached: np.ndarray, missed: np.ndarray, h: np.ndarray, m: np.ndarray
) -> FallingRequantization:
    """The line of a slope m that is as far as can be from the thresholds, [L, C], and from the level after the last."""
    slope = m.astype(np.float64)
    least = np.fmax.reduce(level + (h - reached) * slope, 0)
    below = np.fmin(np.fmin.reduce(level + (h - missed) * slope, 0), level[-1, 0] + 1)
    return FallingRequantization(h.astype(np.float32), m, ((least + below) / 2).astype(np.float32))


def _is_proven(fit: FallingRequantization, level: np.ndarray, reached: np.ndarray, missed: np.ndarray) -> np.ndarray:
    """Whether f meets every threshold and ends at the last level, bool [C]."""
    with np.errstate(invalid="ignore"):
        late, early = fit(reached) < level, fit(missed) >= level
    return np.asarray(~(late | early).any(0) & (np.floor(fit.c) <= level[-1, 0]))
