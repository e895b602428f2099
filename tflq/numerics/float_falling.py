"""Requantization in float32 of sums that fall, with three kernels after the convolution; of sums that are clipped.

    u = relu(h - x)                       the convolution's own: weights with the other sign, h in the bias
    f(x) = floor(relu(c - u * m))         MUL, ADD with RELU, FLOOR

h is where the last level has been reached, so the first rectifier ends the levels above and the second one below:
neither a clamp nor the product that undoes its scale is needed. f is monotone in x for m >= 0, so it equals the
requantization of `tflq.numerics.float_requantize` if f(T(n)) has reached n and f(T(n) - 1) has not, and the same at
the ends.

There is no gain to choose, so m is fixed; h is any integer before the line reaches a further level. Some are tried,
with c in the middle of what they leave (-u m is (x - h) m). Where thousands of accumulators share a level that is not
enough.

The same line with one clamp of whole numbers, whose lower end is where the line has left the first level:

    f(x) = floor(clip(x - h, -span, 0) * m + c)         CLIP, MUL, ADD, FLOOR

As the clamp stands before the product, no runtime can multiply m into the weights of the convolution, and it has no
other constants to put together. What is left to it is to round MUL and ADD once (`tflq.numerics.float_basics`), so
these lines are proven with both roundings; and c may be off by a part of a unit in its last place.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tflq.light import NamedTuple
from tflq.numerics.float_basics import EXACT, SumRounding, float_steps, from_steps, multiply_add
from tflq.numerics.float_lines import Steps, Tight, blocks, exact_part, level_bounds, proven

_TRIED: Final = (4, 12, *[32] * 6)  # h of each wave
_STEPS: Final = np.asarray([0, 1, -1])[:, None]  # of m away from the real slope
_FURTHER: Final = 7  # how far h is from the one before
_LEFT: Final = (0.8, 0.25)  # the share of channels that is too many after the first waves, if more than a few
_FEW: Final = 12
_ROOM: Final = 0.9  # how much of a level h may use up
_FARTHEST: Final = EXACT << 4  # where x is not exact, but x - h may be
_MARGIN: Final = 0.25  # units in the last place of c


class FallingRequantization(NamedTuple):
    """f(x) = floor(relu(c - relu(h - x) * m)): float32 [C] each; results are levels from 0 on."""

    h: np.ndarray
    m: np.ndarray
    c: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """f of integers [..., C], operation by operation in float32."""
        u = np.maximum(self.h.astype(np.float64) - x, 0).astype(np.float32)
        total = multiply_add(u, -self.m, self.c)
        np.maximum(total, np.float32(0), out=total)
        return np.floor(total, out=total)

    def of(self, channels: np.ndarray) -> FallingRequantization:
        """The requantization of some channels."""
        return FallingRequantization(*(v[channels] for v in self))


class ClippedRequantization(NamedTuple):
    """f(x) = floor(clip(x - h, -span, 0) * m + c): float32 [C] each, h whole."""

    h: np.ndarray
    span: np.ndarray
    m: np.ndarray
    c: np.ndarray

    def __call__(self, x: np.ndarray, *, fused: bool = False) -> np.ndarray:
        """f of integers [..., C] in float32; `fused`: with one rounding for MUL and ADD."""
        u = np.clip((x - self.h.astype(np.float64)).astype(np.float32), -self.span, np.float32(0))
        total = multiply_add(u, self.m, self.c, fused=fused)
        return np.floor(total, out=total)


def falling_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, ...]:
    """`fit_falling` as arrays; empty without a proof."""
    return tuple(fit_falling(thresholds, slope, low, high) or ())


def clipped_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray, bottom: int
) -> tuple[np.ndarray, ...]:
    """`fit_clipped` as arrays: h, span, m and c; empty without a proof."""
    return tuple(fit_clipped(thresholds, slope, low, high, bottom) or ())


def fit_falling(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray
) -> FallingRequantization | None:
    """The requantization with thresholds T(1) ... T(L) int64 [L, C] on accumulators in [low, high] int64 [C], with
    about `slope` float64 [C] levels per unit. None without a proof."""
    return _fit(thresholds, slope, low, high, 0, "separate")


def fit_clipped(
    thresholds: np.ndarray,
    slope: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    bottom: int = 0,
    *,
    below: np.ndarray | None = None,
) -> ClippedRequantization | None:
    """The same for thresholds of levels from `bottom` + 1 on, with either rounding of sums. `below`: the greatest
    accumulators below each threshold, if they are not one less. None without a proof."""
    fit = _fit(thresholds, slope, low, high, bottom, "either", below)
    if fit is None:
        return None
    over = np.maximum(fit.c - np.float32(bottom + 0.5), 0)
    span = np.divide(over, fit.m, out=np.zeros_like(over), where=fit.m > 0)
    return ClippedRequantization(fit.h, span, fit.m, fit.c)


class _Task(NamedTuple):
    """Thresholds T(1) ... T(L) int64 [L, C] on [low, high], int64 [C], of lines that gain about `slope` float64 [C]
    levels per unit; where the last level is reached, and how many accumulators further h may be, int64 [C]. `below` as
    in `fit_clipped`."""

    thresholds: np.ndarray
    below: np.ndarray | None
    low: np.ndarray
    high: np.ndarray
    slope: np.ndarray
    top: np.ndarray
    span: np.ndarray
    bottom: int
    rounding: SumRounding

    def of(self, channels: np.ndarray) -> _Task:
        below = None if self.below is None else self.below.take(channels, 1)
        low, high, slope, top, span = (v[channels] for v in self[2:7])
        thresholds = self.thresholds.take(channels, 1)
        return _Task(thresholds, below, low, high, slope, top, span, self.bottom, self.rounding)

    @property
    def steps(self) -> Steps:
        return Steps.of(self.thresholds, self.below, self.low, self.high, self.bottom)

    def proves(self, fit: FallingRequantization, steps: Steps) -> np.ndarray:
        """Whether f meets every threshold and ends at the last level, bool [C]."""
        ends = np.floor(fit.c) <= steps.level[-1, 0]
        if self.rounding == "separate":
            return ends & steps.met(fit(steps.reached), fit(steps.missed))
        margin = np.spacing(fit.c) * _MARGIN
        for fused in (False, True):
            at_least, below = steps.left(fit.h.astype(np.float64), fit.m, fused=fused)
            ends &= (at_least <= fit.c - margin) & (fit.c + margin < below)
        return ends


def _fit(
    thresholds: np.ndarray,
    slope: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    bottom: int,
    rounding: SumRounding,
    below: np.ndarray | None = None,
) -> FallingRequantization | None:
    top = np.clip(thresholds[-1], low, high)
    span = np.clip(_ROOM / np.maximum(slope, 1 / EXACT), 1, sum(_TRIED) * _FURTHER).astype(np.int64)
    least = top + span - EXACT  # below it x is rounded, but on the first level anyway
    low, live = exact_part(thresholds, low, high, least)
    farthest = EXACT if rounding == "separate" else _FARTHEST
    if (low < least)[live].any() or (np.abs(top) + span >= farthest)[live].any():
        return None
    h, m = np.zeros(low.shape, np.float32), np.zeros(low.shape, np.float32)
    c = ((thresholds <= low).sum(0) + (bottom + 0.5)).astype(np.float32)
    fit, left = FallingRequantization(h, m, c), np.nonzero(live)[0]
    task = _Task(thresholds, below, low, high, slope, top, span, bottom, rounding)
    return fit if _search(task, fit, left) else None


def _search(task: _Task, result: FallingRequantization, channels: np.ndarray) -> bool:
    """Fills `result` for the channels; answers whether all of them have a line."""
    first = _first(task, result, channels)
    if first is None:
        return False
    (left, tight), order = first, 0
    for wave, tried in enumerate(_TRIED):
        if tight is None or not left.size:
            break
        fit, hits = _tried(task.of(left), tight, np.arange(order, order + tried)[:, None])
        hits = np.nonzero(hits)[0]
        hits = hits[proven(task.of(left[hits]), fit.of(hits))]
        _keep(result, left[hits], fit.of(hits))
        rest = np.delete(np.arange(left.size), hits)
        left, tight, order = left[rest], tight.columns(rest), order + tried
        if left.size > max(_LEFT[min(wave, 1)] * channels.size, _FEW):
            return False
    return not left.size


def _first(task: _Task, result: FallingRequantization, channels: np.ndarray) -> tuple[np.ndarray, Tight | None] | None:
    """Fills `result` where the line of the nearest m through the middle of all thresholds is proven. Answers the other
    channels and their tightest thresholds; None if a channel has no line, as where thresholds jump at zero."""
    lost, tight = [np.zeros(0, np.int64)], []
    for block in blocks(channels.size):
        some = task.of(channels[block])
        steps, m = some.steps, some.slope.astype(np.float32)
        slope = m.astype(np.float64)
        least, most = (reduce(v, 0) for reduce, v in zip((np.max, np.min), steps.room(slope), strict=True))
        if (least > most + len(steps.level) * 2.0**-22).any():
            return None
        most = np.minimum(most, steps.level[-1] + 1 - some.top * slope)
        c = ((least + most) / 2 + some.top * slope).astype(np.float32)
        fit = FallingRequantization(some.top.astype(np.float32), m, c)
        good = some.proves(fit, steps)
        _keep(result, channels[block][good], fit.of(good))
        rest = np.nonzero(~good)[0]
        if rest.size:
            lost.append(channels[block][rest])
            tight.append(Tight.of(steps.of_channels(rest), some.slope[rest], odd=False))
    return np.concatenate(lost), Tight.joined(tight) if tight else None


def _keep(result: FallingRequantization, channels: np.ndarray, fit: FallingRequantization) -> None:
    for kept, new in zip(result, fit, strict=True):
        kept[channels] = new


def _tried(task: _Task, tight: Tight, order: np.ndarray) -> tuple[FallingRequantization, np.ndarray]:
    """The line of each channel that leaves most room on its tightest thresholds, among some h by their order [H, 1],
    and whether it leaves any."""
    h = task.top + order * _FURTHER % task.span
    near = from_steps(np.maximum(float_steps(task.slope.astype(np.float32)) + _STEPS, 0))
    h, m = np.tile(h, (len(near), 1)), np.repeat(near, len(order), 0)
    levels = task.thresholds.shape[0]
    bounds = level_bounds(np.arange(1, levels + 1) + task.bottom, np.ones(1, np.float32))
    gain = np.zeros(m.shape, np.int64)
    lines = tight.lines(h.astype(np.float64), m, bounds, gain, rounding=task.rounding)
    columns = np.arange(task.slope.size)
    fit = FallingRequantization(h[lines.best, columns].astype(np.float32), m[lines.best, columns], lines.c)
    return fit, lines.any
