"""Requantization in float32 in two steps: whole levels first, then what is left, which is small.

    u = clip(x - h, low, high)              from before the first level to where the last one is reached
    n = floor(u * p)                        p about the levels per accumulator
    r = u - n * S                           S the accumulators per level, with as many bits as keep n * S exact
    f(x) = n + floor(r * m + (n * d + c))                           d = S m - 1, what S leaves over
    f(x) = n + floor(r * m + (n * d + (clip(n, 0, 1) * e + c)))     where thresholds jump at zero, as if rounding twice

u, n S and r have 24 bits: they are exact, however they are rounded. With that h, level k begins a part of a level after
n = k does, one of `_SHARES`. There, r m is that part, and the rest is about as far below zero; each rounding is 2^-25
of a level or less, while in one line of all levels it is 2^-17.

The proof is in bounds of all roundings. Where n = k, the sum of the real numbers r m + n d + c climbs by one level
around zero, so f is k - 1 or k. It is k from T(k) on, and not before, if the sum there is further from zero than any
roundings add up to. So the proof holds for MUL and ADD rounded separately or once, and for c added last: that sum has
the sign of what it rounds, and those before are as large as c. Channels of few accumulators to a level, and others
without this proof, have one line (`tflq.numerics.float_falling`), with an n of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tflq.light import NamedTuple
from tflq.numerics.float_basics import EXACT, multiply_add
from tflq.numerics.float_falling import fit_clipped
from tflq.numerics.float_lines import Steps, blocks, live_channels

_FEWEST: Final = 4  # accumulators to a level
_SHARES: Final = (0.25, 0.0625, 0.015625, 0.5)
_ROUNDED: Final = 2.0**-22  # of a number: more than two roundings are
_LITTLE: Final = 2.0**-40  # of a level: more than the proof itself is rounded by


class SplitRequantization(NamedTuple):
    """f(x) as above: float32 [C] each, S as `step`; e is None where the formula has no such term."""

    h: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray
    step: np.ndarray
    m: np.ndarray
    d: np.ndarray
    c: np.ndarray
    e: np.ndarray | None

    def __call__(self, x: np.ndarray, *, fused: bool = False, c_last: bool = False) -> np.ndarray:
        """f of integers [..., C] in float32; `fused`: with one rounding for MUL and ADD; `c_last`: c added last."""
        u = np.clip((x - self.h.astype(np.float64)).astype(np.float32), self.low, self.high)
        n = np.floor(u * self.p)
        r = multiply_add(n, -self.step, u, fused=fused)
        if c_last:
            rest = multiply_add(r, self.m, n * self.d, fused=fused)
            if self.e is not None:
                rest = multiply_add(np.clip(n, 0, 1), self.e, rest, fused=fused)
            return np.asarray(n + np.floor(rest + self.c))
        rest = self.c if self.e is None else multiply_add(np.clip(n, 0, 1), self.e, self.c, fused=fused)
        rest = multiply_add(n, self.d, rest, fused=fused)
        return np.asarray(n + np.floor(multiply_add(r, self.m, rest, fused=fused)))


def split_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray, bottom: int
) -> tuple[np.ndarray, ...]:
    """`fit_split` as arrays, e empty where there is none; nothing without a proof."""
    fit = fit_split(thresholds, slope, low, high, bottom)
    return () if fit is None else tuple(np.zeros(0, np.float32) if v is None else v for v in fit)


def of_split_arrays(arrays: Sequence[np.ndarray]) -> SplitRequantization:
    """The requantization of `split_arrays`."""
    h, low, high, p, step, m, d, c, e = arrays
    return SplitRequantization(h, low, high, p, step, m, d, c, e if e.size else None)


def fit_split(
    thresholds: np.ndarray,
    slope: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    bottom: int,
    *,
    below: np.ndarray | None = None,
) -> SplitRequantization | None:
    """The requantization with thresholds T(1) ... T(L) int64 [L, C] of the levels from `bottom` + 1 on, on accumulators
    in [low, high] int64 [C], with about `slope` float64 [C] levels per unit; 0 is in the middle of level 0. None
    without a proof. `below`: the greatest accumulators below each threshold, if they are not one less.

    A channel with one result on its whole range is that number whatever x is. Of others, what is between the first
    level and the last one is below 2^24.
    """
    fit = SplitRequantization(*(np.zeros(low.shape, np.float32) for _ in range(9)))
    live = live_channels(thresholds, low, high)
    first, last = np.maximum(thresholds[0] - 1 if below is None else below[0], low), np.minimum(thresholds[-1], high)
    run = 1 / np.where(live, slope, 1)
    most = np.maximum(-first, last) + 2 * run
    wide = live & (run >= _FEWEST) & (most < EXACT)
    unit = np.exp2(np.floor(np.log2(EXACT / np.where(wide, most, 1))))
    beneath = thresholds - 1 if below is None else below
    task = _Task(thresholds, beneath, first, last, slope, np.rint(run * unit) / unit, bottom)
    for share in _SHARES:
        left = np.nonzero(wide & (fit.p == 0))[0]
        for block in blocks(left.size):
            _fill(fit, left[block], task.of(left[block]), share)
    rest = np.nonzero(fit.p == 0)[0]
    if rest.size:
        some = thresholds.take(rest, 1), slope[rest], low[rest], high[rest], bottom
        one = fit_clipped(*some, below=None if below is None else below.take(rest, 1))
        if one is None:
            return None
        fit.h[rest], fit.low[rest], fit.m[rest], fit.c[rest] = one.h, -one.span, one.m, one.c
    return fit if fit.e is not None and fit.e.any() else fit._replace(e=None)


class _Task(NamedTuple):
    """Thresholds of the levels from `bottom` + 1 on and the greatest accumulators below them, int64 [L, C], for x in
    [first, last], int64 [C]; levels per accumulator and, rounded, accumulators per level, float64 [C]."""

    thresholds: np.ndarray
    below: np.ndarray
    first: np.ndarray
    last: np.ndarray
    slope: np.ndarray
    step: np.ndarray
    bottom: int

    def of(self, channels: np.ndarray) -> _Task:
        first, last, slope, step = (v[channels] for v in (self.first, self.last, self.slope, self.step))
        thresholds, below = (v.take(channels, 1) for v in (self.thresholds, self.below))
        return _Task(thresholds, below, first, last, slope, step, self.bottom)


class _Sides(NamedTuple):
    """Both sides of all thresholds: the accumulators that must reach a level, and those that must not, [2, L, C].
    c for which r m + n d + c is zero there, NaN where there is no such accumulator; by what it is to be beyond that,
    and to be so that f is n or one less; whether n is the level, bool [C]."""

    c: np.ndarray
    error: np.ndarray
    around: float
    centred: np.ndarray

    @classmethod
    def of(cls, task: _Task, fit: SplitRequantization, steps: Steps) -> _Sides:
        """The error is what the roundings of r m, n d and n d + c, or r m + n d, add up to at most next to a threshold,
        where n d + c is as large as r m; farther away it is larger by no more than the sum, which keeps its sign when
        rounded."""
        x = np.stack([steps.reached, steps.missed])
        u = x - fit.h
        n = np.floor(u.astype(np.float32) * fit.p)
        begins = (x == task.thresholds) | (x == task.below)  # not an end of the range
        r_m = (u - n * task.step) * fit.m.astype(np.float64)
        n_d = n * fit.d.astype(np.float64)
        error = _half(r_m) + _half(n_d) + (np.abs(r_m) + np.abs(n_d)) * 2.0**-24 + _LITTLE
        around = float(np.abs(steps.level).max() + 1) * _ROUNDED
        return cls(steps.level - n - (r_m + n_d), error, around, ~(begins & (n != steps.level)).any((0, 1)))

    def left(self, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What some levels, bool [L], leave to c: from the first to the second, float64 [C]."""
        at_least, below = self.c[0] + self.error[0], self.c[1] - self.error[1]
        at_least, below = (np.where(np.isnan(v), free, v)[some] for v, free in ((at_least, -1), (below, 0)))
        return at_least.max(0, initial=self.around - 1), below.min(0, initial=-self.around)


def _fill(result: SplitRequantization, channels: np.ndarray, task: _Task, share: float) -> None:
    """Fills in the constants of the channels for which they are proven."""
    p = task.slope.astype(np.float32)
    h = -np.rint(task.step * (0.5 + share))
    d = (task.step * task.slope - 1).astype(np.float32)
    zero = np.zeros_like(p)
    h, low, high, step = (v.astype(np.float32) for v in (h, task.first - h, task.last - h, task.step))
    fit = SplitRequantization(h, low, high, p, step, p, d, zero, zero)
    steps = Steps.of(task.thresholds, task.below, task.first, task.last, task.bottom)
    sides = _Sides.of(task, fit, steps)
    up = steps.level[:, 0] > 0
    (least, most), (least_up, most_up) = sides.left(~up), sides.left(up)
    both = np.maximum(least, least_up), np.minimum(most, most_up)
    jumps = both[1] <= both[0]
    c = (np.where(jumps, least + most, both[0] + both[1]) / 2).astype(np.float32)
    e = np.where(jumps, (least_up + most_up) / 2 - c, 0).astype(np.float32)
    above = c + e.astype(np.float64)
    error = np.where(jumps, (np.abs(above) + np.abs(c)) * 2.0**-24, 0)
    proven = sides.centred & (least <= c) & (c <= most) & (least_up + error <= above) & (above <= most_up - error)
    for kept, new in zip(result, fit._replace(c=c, e=e), strict=True):
        assert kept is not None
        assert new is not None
        kept[channels[proven]] = new[proven]


def _half(x: np.ndarray) -> np.ndarray:
    """Half a unit in the last place of numbers in float32, float64."""
    return np.spacing(np.abs(x).astype(np.float32)).astype(np.float64) / 2
