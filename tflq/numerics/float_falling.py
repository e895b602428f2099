"""Requantization in float32 of sums that fall, with three kernels after the convolution.

    u = relu(h - x)                       the convolution's own: weights with the other sign, h in the bias
    f(x) = floor(relu(c - u * m))         MUL, ADD with RELU, FLOOR

h is where the last level has been reached, so the first rectifier ends the levels above, the second one below: neither
a clamp nor the product that undoes its scale is needed. f is monotone in x for m >= 0, so it equals the requantization
of `tflq.numerics.float_requantize` if f(T(n)) has reached n and f(T(n) - 1) has not, and the same at the ends.

m is what it is, there is no gain to choose; h is any whole number before the line reaches a further level. So some are
tried, and c in the middle of what they leave (`tflq.numerics.float_lines`: -u m is (x - h) m). Where thousands of
accumulators share a level that is not enough.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tflq.numerics.exact_sums import EXACT
from tflq.numerics.float_lines import Steps, Tight, level_bounds
from tflq.numerics.float_thresholds import float_steps, from_steps

__all__ = ["FallingRequantization", "falling_arrays", "fit_falling"]

_TRIED: Final = (4, 12, *[32] * 6)  # h of each wave
_STEPS: Final = np.asarray([0, 1, -1])[:, None]  # of m away from the real slope
_FURTHER: Final = 7  # how far h is from the one before
_LEFT: Final = (0.8, 0.25)  # the share of more than a few channels, left after the first waves, that are too many
_FEW: Final = 12
_ROOM: Final = 0.9  # how much of a level h may use up
_BLOCK: Final = 128  # channels whose thresholds stay in the cache


class FallingRequantization(NamedTuple):
    """f(x) = floor(relu(c - relu(h - x) * m)): float32 [C] each; results are levels from 0 on."""

    h: np.ndarray
    m: np.ndarray
    c: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """f of integers [..., C], operation by operation in float32."""
        u = np.maximum(self.h.astype(np.float64) - x, 0).astype(np.float32)
        total = u * -self.m
        total += self.c
        np.maximum(total, np.float32(0), out=total)
        return np.floor(total, out=total)

    def of(self, channels: np.ndarray) -> FallingRequantization:
        """That of some channels."""
        return FallingRequantization(*(v[channels] for v in self))


def falling_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, ...]:
    """`fit_falling` as arrays; nothing without a proof."""
    return tuple(fit_falling(thresholds, slope, low, high) or ())


class _Task(NamedTuple):
    """Thresholds T(1) ... T(L) int64 [L, C] on [low, high], int64 [C], of lines that gain about `slope` float64 [C]
    levels per unit; where the last level is reached, and how many accumulators further h may be, int64 [C]."""

    thresholds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    slope: np.ndarray
    top: np.ndarray
    span: np.ndarray

    def of(self, channels: np.ndarray) -> _Task:
        return _Task(self.thresholds.take(channels, 1), *(v[channels] for v in self[1:]))

    @property
    def steps(self) -> Steps:
        return Steps.of(self.thresholds, None, self.low, self.high, 0)


def fit_falling(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray
) -> FallingRequantization | None:
    """The requantization with thresholds T(1) ... T(L) int64 [L, C] on accumulators in [low, high] int64 [C], with
    about `slope` float64 [C] levels per unit. None without a proof."""
    top = np.clip(thresholds[-1], low, high)
    span = np.clip(_ROOM / np.maximum(slope, 1 / EXACT), 1, sum(_TRIED) * _FURTHER).astype(np.int64)
    least = top + span - EXACT  # what is below it is rounded, and on the first level anyway
    low = np.where(thresholds[0] > least, np.maximum(low, least), low)
    live = ((thresholds > low) & (thresholds <= high)).any(0)
    if (low < least)[live].any() or (np.abs(top) + span >= EXACT)[live].any():
        return None
    h, m = np.zeros(low.shape, np.float32), np.zeros(low.shape, np.float32)
    c = ((thresholds <= low).sum(0) + 0.5).astype(np.float32)
    fit, left = FallingRequantization(h, m, c), np.nonzero(live)[0]
    return fit if _search(_Task(thresholds, low, high, slope, top, span), fit, left) else None


def _search(task: _Task, found: FallingRequantization, channels: np.ndarray) -> bool:
    """Fills `found` for channels; whether it does for all."""
    first = _first(task, found, channels)
    if first is None:
        return False
    (left, tight), order = first, 0
    for wave, tried in enumerate(_TRIED):
        if tight is None or not left.size:
            break
        fit, hits = _tried(task.of(left), tight, np.arange(order, order + tried)[:, None])
        hits = np.nonzero(hits)[0]
        hits = hits[_proven(task.of(left[hits]), fit.of(hits))]
        _keep(found, left[hits], fit.of(hits))
        rest = np.delete(np.arange(left.size), hits)
        left, tight, order = left[rest], tight.columns(rest), order + tried
        if left.size > max(_LEFT[min(wave, 1)] * channels.size, _FEW):
            return False
    return not left.size


def _first(task: _Task, found: FallingRequantization, channels: np.ndarray) -> tuple[np.ndarray, Tight | None] | None:
    """Fills `found` for channels for which the line of the nearest m through the middle of all thresholds is proven.
    The others, and their tightest thresholds; None if a channel has no line: none has where thresholds jump at zero."""
    lost, tight = [np.zeros(0, np.int64)], []
    for at in range(0, channels.size, _BLOCK):
        some = task.of(channels[at : at + _BLOCK])
        steps, m = some.steps, some.slope.astype(np.float32)
        slope = m.astype(np.float64)
        least, most = (reduce(v, 0) for reduce, v in zip((np.max, np.min), steps.room(slope), strict=True))
        if (least > most + len(steps.level) * 2.0**-22).any():
            return None
        most = np.minimum(most, steps.level[-1] + 1 - some.top * slope)
        c = ((least + most) / 2 + some.top * slope).astype(np.float32)
        fit = FallingRequantization(some.top.astype(np.float32), m, c)
        proven = _meets(fit, steps)
        _keep(found, channels[at : at + _BLOCK][proven], fit.of(proven))
        rest = np.nonzero(~proven)[0]
        if rest.size:
            lost.append(channels[at : at + _BLOCK][rest])
            tight.append(Tight.of(steps.of_channels(rest), some.slope[rest], odd=False))
    return np.concatenate(lost), Tight.joined(tight) if tight else None


def _keep(found: FallingRequantization, channels: np.ndarray, fit: FallingRequantization) -> None:
    for kept, new in zip(found, fit, strict=True):
        kept[channels] = new


def _tried(task: _Task, tight: Tight, order: np.ndarray) -> tuple[FallingRequantization, np.ndarray]:
    """The line of each channel that leaves most room on its tightest thresholds, of some h in their order [H, 1], and
    whether it leaves any."""
    h = task.top + order * _FURTHER % task.span
    near = from_steps(np.maximum(float_steps(task.slope.astype(np.float32)) + _STEPS, 0))
    h, m = np.tile(h, (len(near), 1)), np.repeat(near, len(order), 0)
    levels = task.thresholds.shape[0]
    bounds = level_bounds(np.arange(1, levels + 1), np.ones(1, np.float32))
    lines = tight.lines(h.astype(np.float64), m, bounds, np.zeros(m.shape, np.int64))
    columns = np.arange(task.slope.size)
    fit = FallingRequantization(h[lines.best, columns].astype(np.float32), m[lines.best, columns], lines.c)
    return fit, lines.any


def _proven(task: _Task, fit: FallingRequantization) -> np.ndarray:
    """Whether f meets every threshold and ends at the last level, bool [C]."""
    proven = np.zeros(task.slope.size, bool)
    for at in range(0, proven.size, _BLOCK):
        channels = np.arange(at, min(at + _BLOCK, proven.size))
        proven[channels] = _meets(fit.of(channels), task.of(channels).steps)
    return proven


def _meets(fit: FallingRequantization, steps: Steps) -> np.ndarray:
    return steps.met(fit(steps.reached), fit(steps.missed)) & (np.floor(fit.c) <= steps.level[-1, 0])
