"""Requantization in float32 by one product of a distance: nothing but that product rounds.

    u = relu(h - x)                  the convolution's own: weights with the other sign, h in the bias
    f(x) = floor(relu(q - u) * m)    SUB with RELU, MUL, FLOOR

h is where the last level has been reached, so the first rectifier ends the levels above, and the second one below.
q - u is the distance of x from where a line of slope m begins. It is exact: it is a multiple of the unit in the last
place of q, and not larger than q. So f is one product, rounded once, however a runtime rounds sums and puts
constants together: the sum has a rectifier before and after it. (A model with a quantized tensor has x m + c
computed as (x + c / m) m by OpenVINO.)

f is monotone in x for m >= 0, so it equals a requantization if f(T(n)) has
reached n and f(T(n) - 1) has not, and the same at the ends. A product reaches n from a real number on
(`float_basics.level_bounds`), so each threshold bounds q for a given m; of the numbers between the bounds, q is the
one in the middle. Where thousands of accumulators share a level, q is too coarse, and there may be none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tflq.numerics.float_basics import EXACT, FARTHEST, float_steps, from_steps, whole_bounds
from tflq.numerics.requantize.climb import Climb, Steps, blocks
from tflq.numerics.requantize.float_forms import FloatForm, Prepare
from tflq.numerics.requantize.forms import Ops, X
from tflq.numerics.requantize.lines import inside

# The steps bound the search, not the proof: of 266 requantizations in eleven networks 157 have such a line, and 163 one
# of MUL and ADD.
_SLOPES: Final = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8, -8)  # steps of m away from the real slope
_EARLY: Final = 3  # tries after which channels without a line may be too many
_TOO_MANY: Final = 0.25  # the share of channels that is too many, if more than a few
_FEW: Final = 12
_FLAT: Final = np.float32(2.0**-40)  # m of a channel with one result: no accumulator changes it


@dataclass(frozen=True, eq=False)
class Distance(FloatForm):
    """floor(relu(q - u) m) of u = relu(h - x): the distance is exact, and nothing but the product rounds."""

    h: np.ndarray
    q: np.ndarray
    m: np.ndarray

    @classmethod
    def fit(cls, climb: Climb) -> Distance | None:
        top = np.clip(climb.thresholds[-1], climb.low, climb.high)
        least = top + 1 - EXACT  # below it h - x is rounded, but on the first level anyway
        climb = climb._replace(bottom=0).exact_part(least)
        low, live = climb.low, climb.live
        if ((low < least) | (np.abs(top) >= FARTHEST))[live].any():
            return None
        flat = (((climb.thresholds <= low).sum(0) + 0.5) / _FLAT).astype(np.float32)
        fit = cls(np.where(live, top, 0).astype(np.float32), flat, np.full(low.shape, _FLAT, np.float32))
        return fit if _search(fit, climb, np.nonzero(live)[0]) else None

    @property
    def live(self) -> np.ndarray:
        return self.m > _FLAT

    def prepare(self) -> Prepare:
        return Prepare(negate=True, add=self.h, relu=True)

    def offset(self, bottom: int) -> int:
        return bottom

    def apply(self, x: X, ops: Ops[X]) -> X:
        return ops.floor(ops.mul(ops.sub(ops.row(self.q), x, relu=True), ops.row(self.m)))


def _search(fit: Distance, climb: Climb, left: np.ndarray) -> bool:
    """Fills in the channels that are left; answers whether all of them have a line."""
    few = max(_TOO_MANY * left.size, _FEW)
    for count, step in enumerate(_SLOPES):
        if not left.size or (count == _EARLY and left.size > few):
            break
        proven = np.zeros(left.size, bool)
        for block in blocks(left.size):
            some = climb.of_channels(left[block])
            proven[block] = _fill(fit, left[block], some.steps, some.slope, step)
        left = left[~proven]
    return not left.size


def _fill(result: Distance, channels: np.ndarray, steps: Steps, slope: np.ndarray, step: int) -> np.ndarray:
    """Fills in q and m of the channels for which the m that is `step` float32 numbers from the slope is proven.
    Answers for which it is, bool [C]."""
    m = from_steps(np.maximum(float_steps(slope.astype(np.float32)) + step, 1))
    h = result.h[channels]
    bounds = whole_bounds(int(steps.levels[0]), steps.levels.size)[:-2, None] / m.astype(np.float64)
    at_least, under = bounds - steps.reached, bounds - steps.missed
    q = inside(np.fmax.reduce(at_least, 0) + h, np.fmin.reduce(under, 0) + h)
    fit = Distance(h, q, m)
    proven = steps.meets_thresholds(fit(steps.reached), fit(steps.missed)) & (np.floor(q * m) <= steps.levels[-1])
    result.store(channels[proven], fit.of_channels(proven))
    return np.asarray(proven)
