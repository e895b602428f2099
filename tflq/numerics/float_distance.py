"""Requantization in float32 in which nothing but a product rounds.

    u = relu(h - x)                  the convolution's own: weights with the other sign, h in the bias
    f(x) = floor(relu(q - u) * m)    SUB with RELU, MUL, FLOOR

h is where the last level has been reached, so the first rectifier ends the levels above, and the second one below.
q - u is the distance of x from where a line of slope m begins. It is exact: it is a multiple of the unit in the last
place of q, and not larger than q. So f is one product, rounded once, however a runtime rounds sums and puts constants
together: the sum has a rectifier before and after it. (A model with a quantized tensor has x m + c computed as
(x + c / m) m by OpenVINO.)

f is monotone in x for m >= 0, so it equals the requantization of `tflq.numerics.float_requantize` if f(T(n)) has
reached n and f(T(n) - 1) has not, and the same at the ends. A product reaches n from a real number on
(`float_lines.level_bounds`), so each threshold bounds q for a given m; of the numbers between the bounds, q is the one
in the middle. Where thousands of accumulators share a level, q is too coarse, and there may be none.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.light import NamedTuple
from tflq.numerics.float_basics import EXACT, float_steps, from_steps
from tflq.numerics.float_lines import Steps, blocks, exact_part, inside, level_bounds

_TRIED: Final = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8, -8)  # steps of m away from the real slope
_EARLY: Final = 3  # tries after which channels without a line may be too many
_LEFT: Final = 0.25  # the share of channels that is too many, if more than a few
_FEW: Final = 12
_FARTHEST: Final = EXACT << 4  # where x is not exact, but h - x may be
_FLAT: Final = np.float32(2.0**-40)  # m of a channel with one result: no accumulator changes it


class DistanceRequantization(NamedTuple):
    """f(x) = floor(relu(q - relu(h - x)) * m): float32 [C] each, h whole; results are levels from 0 on."""

    h: np.ndarray
    q: np.ndarray
    m: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """f of integers [..., C], operation by operation in float32."""
        u = np.maximum(self.h.astype(np.float64) - x, 0).astype(np.float32)
        total = np.maximum(self.q - u, np.float32(0))
        total *= self.m
        return np.floor(total, out=total)

    @property
    def live(self) -> np.ndarray:
        """Whether a channel's result depends on x, bool [C]."""
        return self.m > _FLAT


def distance_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, ...]:
    """`fit_distance` as arrays; empty without a proof."""
    return tuple(fit_distance(thresholds, slope, low, high) or ())


def fit_distance(
    thresholds: np.ndarray,
    slope: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    *,
    below: np.ndarray | None = None,
) -> DistanceRequantization | None:
    """The requantization with thresholds T(1) ... T(L) int64 [L, C] on accumulators in [low, high] int64 [C], with
    about `slope` float64 [C] levels per unit. `below`: the greatest accumulators below each threshold, if they are not
    one less. None without a proof."""
    top = np.clip(thresholds[-1], low, high)
    least = top + 1 - EXACT  # below it h - x is rounded, but on the first level anyway
    low, live = exact_part(thresholds, low, high, least)
    if ((low < least) | (np.abs(top) >= _FARTHEST))[live].any():
        return None
    flat = (((thresholds <= low).sum(0) + 0.5) / _FLAT).astype(np.float32)
    fit = DistanceRequantization(np.where(live, top, 0).astype(np.float32), flat, np.full(low.shape, _FLAT, np.float32))
    left = np.nonzero(live)[0]
    few = max(_LEFT * left.size, _FEW)
    for count, step in enumerate(_TRIED):
        if not left.size:
            return fit
        if count == _EARLY and left.size > few:
            return None
        proven = np.zeros(left.size, bool)
        for block in blocks(left.size):
            some = left[block]
            beneath = None if below is None else below.take(some, 1)
            steps = Steps.of(thresholds.take(some, 1), beneath, low[some], high[some], 0)
            proven[block] = _fill(fit, some, steps, slope[some], step)
        left = left[~proven]
    return fit if not left.size else None


def _fill(
    result: DistanceRequantization, channels: np.ndarray, steps: Steps, slope: np.ndarray, step: int
) -> np.ndarray:
    """Fills in q and m of the channels for which the m that is `step` float32 numbers from the slope is proven;
    answers which, bool [C]."""
    m = from_steps(np.maximum(float_steps(slope.astype(np.float32)) + step, 1))
    h = result.h[channels]
    bounds = level_bounds(steps.level[:, 0], np.ones(1, np.float32))[0, :-2, None] / m.astype(np.float64)
    at_least, under = bounds - steps.reached, bounds - steps.missed
    q = inside(np.fmax.reduce(at_least, 0) + h, np.fmin.reduce(under, 0) + h)
    fit = DistanceRequantization(h, q, m)
    proven = steps.met(fit(steps.reached), fit(steps.missed)) & (np.floor(q * m) <= steps.level[-1])
    result.q[channels[proven]], result.m[channels[proven]] = q[proven], m[proven]
    return np.asarray(proven)
