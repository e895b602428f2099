"""Requantization in float32 of sums that fall, with three kernels after the convolution; of sums that are clipped.

    u = relu(h - x)                       the convolution's own: weights with the other sign, h in the bias
    f(x) = floor(relu(c - u * m))         MUL, ADD with RELU, FLOOR

    s = sign(h - u)                       where thresholds jump at zero, as if rounding twice
    f(x) = floor(relu(c - (u - s * d) * m))

h is where the last level has been reached, so the first rectifier ends the levels above and the second one below:
neither a clamp nor the product that undoes its scale is needed. f is monotone in x for m >= 0, so it equals the
requantization of `tflq.numerics.float_requantize` if f(T(n)) has reached n and f(T(n) - 1) has not, and the same at
the ends.

There is no gain to choose, so m is fixed; h is any integer before the line reaches a further level. Some are tried,
with c in the middle of what they leave (-u m is (x - h) m). Where thousands of accumulators share a level that is not
enough. d takes accumulators so far from zero that the thresholds on both sides of it are on one line; h - u is x, or h
where x is greater, so s is exact, and u - s d climbs as u does.

A kernel that computes MUL and ADD in one, such as DEPTHWISE_CONV_2D, may round once (`tflq.numerics.float_basics`), so
lines are proven with both roundings, or with separate ones.

The same line with one clamp of whole numbers, whose lower end is where the line has left the first level:

    f(x) = floor(clip(x - h, -span, 0) * m + c)         CLIP, MUL, ADD, FLOOR

As the clamp stands before the product, no runtime can multiply m into the weights of the convolution, and it has no
other constants to put together. These lines are proven with both roundings; and c may be off by a part of a unit in
its last place.
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
    """f(x) = floor(relu(c - (u - s * d) * m)) with u = relu(h - x) and s = sign(h - u): float32 [C] each; results are
    levels from 0 on. `rounding`: for which roundings of MUL and ADD it is proven."""

    rounding: SumRounding
    h: np.ndarray
    m: np.ndarray
    c: np.ndarray
    d: np.ndarray

    def __call__(self, x: np.ndarray, *, fused: bool = False) -> np.ndarray:
        """f of integers [..., C], operation by operation in float32; `fused`: with one rounding for MUL and ADD."""
        h = self.h.astype(np.float64)
        u = np.maximum(h - x, 0).astype(np.float32)
        if self.d.any():
            u -= np.sign(np.minimum(x, h)).astype(np.float32) * self.d
        total = multiply_add(u, -self.m, self.c, fused=fused)
        np.maximum(total, np.float32(0), out=total)
        return np.floor(total, out=total)

    def of(self, channels: np.ndarray) -> FallingRequantization:
        """The requantization of some channels."""
        return FallingRequantization(self.rounding, *(v[channels] for v in self[1:]))


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
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray, rounding: SumRounding
) -> tuple[np.ndarray, ...]:
    """`fit_falling` as arrays: h, m, c and d; empty without a proof."""
    fit = fit_falling(thresholds, slope, low, high, rounding)
    return () if fit is None else fit[1:]


def clipped_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray, bottom: int
) -> tuple[np.ndarray, ...]:
    """`fit_clipped` as arrays: h, span, m and c; empty without a proof."""
    return tuple(fit_clipped(thresholds, slope, low, high, bottom) or ())


def fit_falling(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray, rounding: SumRounding = "separate"
) -> FallingRequantization | None:
    """The requantization with thresholds T(1) ... T(L) int64 [L, C] on accumulators in [low, high] int64 [C], with
    about `slope` float64 [C] levels per unit; `rounding`: that of sums, "either", or "separate", for which no
    line has a d. None without a proof."""
    return _fit(thresholds, slope, low, high, 0, rounding, 0.0)


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
    fit = _fit(thresholds, slope, low, high, bottom, "either", _MARGIN, below)
    if fit is None:
        return None
    over = np.maximum(fit.c - np.float32(bottom + 0.5), 0)
    span = np.divide(over, fit.m, out=np.zeros_like(over), where=fit.m > 0)
    return ClippedRequantization(fit.h, span, fit.m, fit.c)


class _Task(NamedTuple):
    """Thresholds T(1) ... T(L) int64 [L, C] on [low, high], int64 [C], of lines that gain about `slope` float64 [C]
    levels per unit; where the last level is reached, and how many accumulators further h may be, int64 [C]. `below` as
    in `fit_clipped`; `d` as in `FallingRequantization`; `margin`: units in the last place by which c may be off."""

    thresholds: np.ndarray
    below: np.ndarray | None
    low: np.ndarray
    high: np.ndarray
    slope: np.ndarray
    top: np.ndarray
    span: np.ndarray
    d: np.ndarray
    bottom: int
    rounding: SumRounding
    margin: float

    def of(self, channels: np.ndarray) -> _Task:
        below = None if self.below is None else self.below.take(channels, 1)
        low, high, slope, top, span, d = (v[channels] for v in self[2:8])
        how = self.bottom, self.rounding, self.margin
        return _Task(self.thresholds.take(channels, 1), below, low, high, slope, top, span, d, *how)

    @property
    def steps(self) -> Steps:
        return Steps.of(self.thresholds, self.below, self.low, self.high, self.bottom)

    def proves(self, fit: FallingRequantization, steps: Steps) -> np.ndarray:
        """Whether f meets every threshold and ends at the last level, however sums are rounded, bool [C]."""
        good, margin = np.ones(fit.c.shape, bool), np.spacing(fit.c) * self.margin
        for fused in (False, True) if self.rounding == "either" else (False,):
            good &= fit(fit.h[None], fused=fused)[0] <= steps.level[-1, 0]
            if self.margin:
                at_least, below = steps.left(fit.h.astype(np.float64), fit.m, fused=fused)
                good &= (at_least <= fit.c - margin) & (fit.c + margin < below)
            else:
                good &= steps.met(fit(steps.reached, fused=fused), fit(steps.missed, fused=fused))
        return good


def _fit(
    thresholds: np.ndarray,
    slope: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    bottom: int,
    rounding: SumRounding,
    margin: float,
    below: np.ndarray | None = None,
) -> FallingRequantization | None:
    top = np.clip(thresholds[-1], low, high)
    span = np.clip(_ROOM / np.maximum(slope, 1 / EXACT), 1, sum(_TRIED) * _FURTHER).astype(np.int64)
    least = top + span - EXACT  # below it x is rounded, but on the first level anyway
    low, live = exact_part(thresholds, low, high, least)
    farthest = _FARTHEST if margin else EXACT
    if (low < least)[live].any() or (np.abs(top) + span >= farthest)[live].any():
        return None
    h, m, d = (np.zeros(low.shape, np.float32) for _ in range(3))
    c = ((thresholds <= low).sum(0) + (bottom + 0.5)).astype(np.float32)
    fit, left = FallingRequantization(rounding, h, m, c, d), np.nonzero(live)[0]
    task = _Task(thresholds, below, low, high, slope, top, span, d, bottom, rounding, margin)
    if margin == 0:
        parts = (task.of(channels) for channels in blocks(d.size))
        task = task._replace(d=np.concatenate([part.steps.jumps(part.slope) for part in parts]))
        if rounding == "separate" and task.d.any():
            return None
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
        slope, apart = m.astype(np.float64), steps.apart(some.d)
        least, most = (reduce(v, 0) for reduce, v in zip((np.max, np.min), apart.room(slope), strict=True))
        if (least > most + len(steps.level) * 2.0**-22).any():
            return None
        most = np.minimum(most, steps.level[-1] + 1 - (some.top + some.d) * slope)
        c = ((least + most) / 2 + some.top * slope).astype(np.float32)
        fit = FallingRequantization(task.rounding, some.top.astype(np.float32), m, c, some.d)
        good = some.proves(fit, steps)
        _keep(result, channels[block][good], fit.of(good))
        rest = np.nonzero(~good)[0]
        if rest.size:
            lost.append(channels[block][rest])
            tight.append(Tight.of(apart.of_channels(rest), some.slope[rest], odd=False))
    return np.concatenate(lost), Tight.joined(tight) if tight else None


def _keep(result: FallingRequantization, channels: np.ndarray, fit: FallingRequantization) -> None:
    for kept, new in zip(result[1:], fit[1:], strict=True):
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
    h, m = (v[lines.best, columns] for v in (h, m))
    return FallingRequantization(task.rounding, h.astype(np.float32), m, lines.c, task.d), lines.any
