"""Requantization in float32, proven at every threshold.

An accumulator x below 2^24 is exact in float32. A requantization of x to levels 0 ... L is monotone, so its thresholds
T(n), the smallest x with a result of at least n, determine it (`tflq.numerics.staircase`). The same function in
float32, where each operation is a kernel of its own and correctly rounded:

    f(x) = floor(gain * clamp((x - a) * m + (sign(x) * e + c)))        sign(x) e only where the formula is odd around 0

The clamp is RELU6 or RELU_N1_TO_1, which ADD fuses; gain brings its bounds to the ends of the levels:

    RELU6            [0, 6]     gain in [L / 6, (L + 1) / 6)    results 0 ... L
    RELU_N1_TO_1     [-1, 1]    gain in (127, 128)              results -128 ... 127, for L = 255

Every operation is monotone in x for m, e >= 0, and so is f. It equals the requantization on [low, high] if f(T(n)) has
reached n and f(T(n) - 1) has not, for every T(n) of that range, and the same at the range's ends: that is the proof, by
evaluation of f itself in float32. It needs multiplication and addition not to be contracted into one rounding; as
separate kernels they are not.

The search for the constants: a gain, an m and an a leave an interval for what is added (for c + e and c - e on both
sides of zero). It is known exactly (`tflq.numerics.float_basics`), and often empty. How products are rounded is chance,
and so is how near the product of two float32 numbers, gain and m, comes to a slope. The gains that come nearest are
tried, first with the line in the middle of the thresholds, which is enough for most channels; then, on the tightest
thresholds of the others, more and more gains, of which the clamp allows many. Whatever makes the accumulators can make
x - a instead: with a in the middle of the levels all numbers are small, c most of all, and so are the roundings; and
there are other a to try.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from tflq.base.results import per_channel, returns
from tflq.numerics.float_basics import (
    EXACT,
    HardestThresholds,
    Lines,
    Steps,
    blocks,
    float_steps,
    from_steps,
    level_bounds,
    live_channels,
    proven,
)

_FIRST: Final = 16  # gains whose nearest one is tried on all thresholds
_GAINS: Final = 128  # of a wave
_TRIED: Final = (4, *[16] * 7, *[32] * 24)  # gains of each wave, nearest to the slope
_LINES: Final = 2048  # tried over all channels, if these are few
_BESIDE: Final = (1, -1, 2, -2)  # steps of m from the real factor, which may be an end of what the thresholds allow
_STRAIGHT: Final = 4  # waves without an a, if there may be one
_FURTHER: Final = 3  # from the a of the wave before
_EARLY: Final = 64  # tries after which channels without a line may be too many
_HOPELESS: Final = 1 << 14  # channels times tries: fewer may be left the more tries there were
_NONE: Final = 0.9  # the share of channels that is too many after the first tries, if more than a few
_FEW: Final = 16
_TABLE_LEVELS: Final = 1024  # that a table may climb, since each two of them are compared
_LAST: Final = 4  # so many channels or fewer are tried on all thresholds


@dataclass(frozen=True, slots=True)
class Clamp:
    """A fused activation, its bounds, and the level, of 0 ... 255, of a result of 0."""

    activation: str
    low: float
    high: float
    middle: int


RELU6: Final = Clamp("RELU6", 0.0, 6.0, 0)
N1_TO_1: Final = Clamp("RELU_N1_TO_1", -1.0, 1.0, 128)
_CLAMPS: Final = {clamp.activation: clamp for clamp in (RELU6, N1_TO_1)}


class FloatRequantization(NamedTuple):
    """f(x) = floor(gain * clamp((x - a) * m + (sign(x) * e + c))): float32 [C] each.

    e and a are None where the formula has no such term.
    """

    clamp: Clamp
    gain: np.ndarray
    m: np.ndarray
    c: np.ndarray
    e: np.ndarray | None
    a: np.ndarray | None = None

    def of(self, channels: np.ndarray) -> FloatRequantization:
        """The requantization of some channels."""
        return FloatRequantization(self.clamp, *(None if v is None else v[channels] for v in self[1:]))  # type: ignore[arg-type]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """f of integers below 2^24 [..., C], operation by operation in float32."""
        whole = np.asarray(x)
        total = (whole if self.a is None else whole - self.a.astype(np.float64)).astype(np.float32) * self.m
        total += self.c if self.e is None else np.sign(whole).astype(np.float32) * self.e + self.c
        np.maximum(total, np.float32(self.clamp.low), out=total)
        np.minimum(total, np.float32(self.clamp.high), out=total)
        total *= self.gain
        return np.floor(total, out=total)


class _Task(NamedTuple):
    """Thresholds T(1) ... T(L) int64 [L, C] on accumulators in [low, high], which lines take less a, int64 [C]; they
    gain about `slope` float64 [C] levels per unit. `below` as in `fit_float_requantization`."""

    thresholds: np.ndarray
    below: np.ndarray | None
    low: np.ndarray
    high: np.ndarray
    slope: np.ndarray
    a: np.ndarray
    clamp: Clamp

    def of(self, channels: np.ndarray) -> _Task:
        below = None if self.below is None else self.below.take(channels, 1)
        low, high, slope, a = (v[channels] for v in (self.low, self.high, self.slope, self.a))
        return _Task(self.thresholds.take(channels, 1), below, low, high, slope, a, self.clamp)

    @property
    def steps(self) -> Steps:
        return Steps.of(self.thresholds, self.below, self.low, self.high, -self.clamp.middle)

    @property
    def is_odd(self) -> bool:
        """Whether most channels have no line on both sides of zero, as if rounding twice."""
        at_least, below = self.steps.room(self.slope)
        with np.errstate(invalid="ignore"):
            return bool((at_least.max(0) > below.min(0)).mean() > 0.5)

    def proves(self, fit: FloatRequantization, steps: Steps) -> np.ndarray:
        """Whether f meets every threshold and the clamp ends at the first and last level, bool [C]."""
        ends = (np.floor(np.float32(end) * fit.gain) for end in (self.clamp.low, self.clamp.high))
        bottom, top = (end == level for end, level in zip(ends, (steps.level[0] - 1, steps.level[-1]), strict=True))
        return steps.meets_thresholds(fit(steps.reached), fit(steps.missed)) & bottom & top


def fit_float_requantization(
    thresholds: np.ndarray,
    slope: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    clamp: Clamp,
    *,
    below: np.ndarray | None = None,
    centred: bool = False,
) -> FloatRequantization | None:
    """The requantization with thresholds T(1) ... T(L) int64 [L, C] on accumulators in [low, high] int64 [C], in
    float32. `slope`, float64 [C]: about the levels per unit. A result of 0 is the level `clamp.middle`. None
    without a proof. `below`: the greatest accumulators below each threshold, if they are not one less; `centred`:
    whether there may be an a.

    A channel with one result on its whole range is that number whatever x is. Any other range is below 2^24, or the
    clamp has ended where it goes on: an accumulator that is rounded to float32 stays beyond 2^24.
    """
    if clamp is N1_TO_1 and thresholds.shape[0] != 255:
        return None
    live = live_channels(thresholds, low, high)
    origins = [np.zeros_like(low)]
    if centred:
        origins.append(np.clip(thresholds[thresholds.shape[0] // 2], low, high))
    origins = [a for a in origins if _is_exact(thresholds, low, high, a, live)]
    if not origins:
        return None
    for a in origins:
        low, high = _exact_range(thresholds, low, high, a)
    gain = np.full(low.shape, next(gains(clamp, thresholds.shape[0])), np.float32)
    rest = np.nonzero(~live)[0]
    lone = (thresholds.take(rest, 1) <= low[rest]).sum(0) - clamp.middle  # the one result of a channel
    m, e, c, a = (np.zeros(low.shape, np.float32) for _ in range(4))
    c[rest] = (lone + 0.5) / gain[rest]
    left, odd = np.nonzero(live)[0], False
    if left.size:
        task = _Task(thresholds, below, low, high, slope, origins[0], clamp)
        task = task.of(left) if rest.size else task
        odd = task.of(next(blocks(left.size))).is_odd
        lines = _search(task, [a[left] for a in origins], odd=odd)
        if lines is None:
            return None
        for target, new in zip((gain, m, c, e, a), lines[1:], strict=True):
            target[left] = new
    fit = FloatRequantization(clamp, gain, m, c, e if odd else None, a if a.any() else None)
    if not (fit(np.zeros((1, low.size)))[0, rest] == lone).all():
        raise AssertionError("a fit misses the values that are the only ones of their channels")
    return fit


def _exact_range(
    thresholds: np.ndarray, low: np.ndarray, high: np.ndarray, a: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The range without accumulators x on the first or last level for which x - a, or a little less, is not exact:
    others have these levels, too."""
    least, most = a + len(_TRIED) * _FURTHER + 1 - EXACT, a + EXACT - 1
    low = np.where(thresholds[0] > least, np.maximum(low, least), low)
    return low, np.where(thresholds[-1] <= most, np.minimum(high, most), high)


def _is_exact(thresholds: np.ndarray, low: np.ndarray, high: np.ndarray, a: np.ndarray, live: np.ndarray) -> bool:
    """Whether x - a is exact on what remains of the ranges of live channels."""
    least, most = _exact_range(thresholds, low, high, a)
    exact = (least > a + len(_TRIED) * _FURTHER - EXACT) & (most < a + EXACT)
    return bool(exact[live].all())


@returns(per_channel(5, optional=2))
def requantization_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray, activation: str, centred: bool
) -> tuple[np.ndarray, ...]:
    """`fit_float_requantization` with the clamp of an activation: gain, m, c, e and a, empty where there is no such
    term; nothing without a proof."""
    fit = fit_float_requantization(thresholds, slope, low, high, _CLAMPS[activation], centred=centred)
    return () if fit is None else tuple(np.zeros(0, np.float32) if v is None else v for v in fit[1:])


def of_arrays(arrays: Sequence[np.ndarray], activation: str) -> FloatRequantization:
    """The requantization of `requantization_arrays`."""
    gain, m, c, e, a = arrays
    return FloatRequantization(_CLAMPS[activation], gain, m, c, e if e.size else None, a if a.size else None)


def table_line(entries: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, float] | None:
    """The thresholds, int64 [L], and the slope of the line that a table climbs along. `entries` int64 [N], by the
    `numbers` int64 [N], which climb. None if there is no such line, or if it has more levels than are looked at."""
    least, most = int(entries[0]), int(entries[-1])
    if not least < most <= least + _TABLE_LEVELS or (np.diff(entries) < 0).any():
        return None
    thresholds = numbers[np.searchsorted(entries, np.arange(least + 1, most + 1))].astype(np.int64)
    slope = line_slope(thresholds)
    return (thresholds, slope) if slope else None


def line_slope(thresholds: np.ndarray, below: np.ndarray | None = None) -> float | None:
    """Levels per unit of a line that climbs at T(1) ... T(L) int64 [L], in the middle of what they allow: for any two,
    it gains less than j - i levels from T(i) to what is below T(j). Lines may differ on both sides of zero. None if
    there is no such line."""
    beneath = thresholds - 1 if below is None else below
    least, most = 0.0, np.inf
    ends = _slopes(thresholds, beneath, np.arange(thresholds.size))
    if not ends[0] < ends[1]:
        for side in (thresholds > 0, thresholds <= 0):
            ends = _slopes(thresholds[side], beneath[side], np.arange(thresholds.size)[side])
            least, most = max(least, ends[0]), min(most, ends[1])
        ends = least, most
    if not ends[0] < ends[1]:
        return None
    return (ends[0] + ends[1]) / 2 if np.isfinite(ends[1]) else ends[0] * 2 or 1.0


def _slopes(reached: np.ndarray, missed: np.ndarray, level: np.ndarray) -> tuple[float, float]:
    """The bounds of what lines with these steps gain per unit; twice the same if no line has them."""
    run, rise = missed - reached[:, None], level - level[:, None]
    if ((run == 0) & (rise <= 0)).any():
        return 0.0, 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(run < 0, rise / run, 0).max(initial=0)
        most = np.where(run > 0, rise / run, np.inf).min(initial=np.inf)
    return float(least), float(most)


def gains(clamp: Clamp, levels: int) -> Iterator[np.float32]:
    """Gains that bring the clamp's bounds to the ends of the levels; the first is the best as a rule."""
    for wave in range(len(_TRIED)):
        yield from _gains(clamp, levels, wave)


def _gains(clamp: Clamp, levels: int, wave: int) -> np.ndarray:
    """The gains of a wave, float32 [G]."""
    least, most = (127.0, 128.0) if clamp is N1_TO_1 else (levels / 6, (levels + 1) / 6)
    order = np.arange(wave * _GAINS, (wave + 1) * _GAINS)
    spread = (least + (most - least) * ((0.5 + order * 0.6180339887498949) % 1.0)).astype(np.float32)
    if clamp is N1_TO_1 and wave == 0:  # the product is the neighbour of one by 128: no rounding
        spread[0] = np.nextafter(np.float32(128), np.float32(0))
    return spread


@cache
def _wave(clamp: Clamp, levels: int, wave: int) -> tuple[np.ndarray, np.ndarray]:
    """The gains of a wave, float32 [G], and the bounds that levels have with them (`level_bounds`), [G, L + 2]."""
    gain = _gains(clamp, levels, wave)
    return gain, level_bounds(np.arange(1, levels + 1) - clamp.middle, gain)


def _search(task: _Task, origins: list[np.ndarray], *, odd: bool) -> FloatRequantization | None:
    """A proven line of each channel, with one of the `origins` as a; None if a channel has none, or likely has none."""
    size = task.slope.size
    result = FloatRequantization(task.clamp, *(np.zeros(size, np.float32) for _ in range(5)))
    left, tight = _first(task, result, odd=odd)
    tries = 1
    for wave, tried in enumerate(_TRIED):
        if tight is None or not left.size:
            return result
        levels = task.thresholds.shape[0]
        if left.size <= _LAST and tight.width < levels:
            tight = HardestThresholds.of(task.of(left).steps, task.slope[left], odd=odd, most=levels)
        a = origins[wave % len(origins) if wave >= _STRAIGHT else 0]
        some = task._replace(a=np.where(a == 0, a, a + wave * _FURTHER)).of(left)
        count = min(max(tried, _LINES // left.size), _GAINS - 1)
        fit, hits = _tried(some, tight, wave, count)
        hits = np.nonzero(hits)[0]
        hits = hits[proven(some.of(hits), fit.of(hits))]
        _keep(result, left[hits], fit.of(hits))
        rest = np.delete(np.arange(left.size), hits)
        left, tight, tries = left[rest], tight.columns(rest), tries + tried
        hopeless = tries > _EARLY and left.size * tries > _HOPELESS
        if hopeless or (wave > 0 and left.size > max(_NONE * size, _FEW)):
            return None
    return None if left.size else result


def _first(task: _Task, result: FloatRequantization, *, odd: bool) -> tuple[np.ndarray, HardestThresholds | None]:
    """Fills `result` with lines through the middle of all thresholds where they are proven. Answers the other channels
    and their tightest thresholds."""
    unproven, tight = [], []
    gain, _ = _wave(task.clamp, task.thresholds.shape[0], 0)
    for channels in blocks(task.slope.size):
        some = task.of(channels)
        steps = some.steps
        room = steps.split(*steps.room(some.slope), odd=odd)
        best, m = _nearest(some.slope, gain[:_FIRST], 1)
        best_gain = gain[best[0]]
        ends = ((v[:, None] + some.a * some.slope) / best_gain for v in (room[0].max(0), room[1].min(0)))
        lines = Lines.widest(next(ends), next(ends), some.slope / best_gain)
        fit = FloatRequantization(task.clamp, best_gain, m[0], lines.c, lines.e, some.a.astype(np.float32))
        good = lines.any & some.proves(fit, steps)
        _keep(result, channels[good], fit.of(good))
        if not good.all():
            unproven.append(channels[~good])
            tight.append(HardestThresholds.of(steps.of_channels(np.nonzero(~good)[0]), some.slope[~good], odd=odd))
    return (np.concatenate(unproven), HardestThresholds.joined(tight)) if unproven else (np.zeros(0, np.int64), None)


def _tried(task: _Task, tight: HardestThresholds, wave: int, count: int) -> tuple[FloatRequantization, np.ndarray]:
    """The line of each channel that leaves most room on its tightest thresholds, among `count` gains of a wave, and
    whether it leaves any."""
    gain, bounds = _wave(task.clamp, task.thresholds.shape[0], wave)
    index, m = _nearest(task.slope, gain, count)
    if wave == 1 or task.slope.size <= _LAST:
        some = slice(None if task.slope.size <= _LAST else 1)
        steps = float_steps(m[some]) + np.asarray(_BESIDE)[:, None, None]
        m = np.concatenate([m, from_steps(np.maximum(steps, 0)).reshape(-1, m.shape[1])])
        index = np.concatenate([index, *[index[some]] * len(_BESIDE)])
    lines = tight.lines(task.a[None].astype(np.float64), m, bounds, index)
    columns = np.arange(task.slope.size)
    best = gain[index[lines.best, columns]], m[lines.best, columns]
    return FloatRequantization(task.clamp, *best, lines.c, lines.e, task.a.astype(np.float32)), lines.any


def _nearest(slope: np.ndarray, gain: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The indices of gains whose products by a float32 m come nearest to slopes float64 [C], and m: [count, C]."""
    factor = gain.astype(np.float64)[:, None]
    m = (slope / factor).astype(np.float32)
    error = np.abs(m * factor - slope)
    index = error.argmin(0)[None] if count == 1 else np.argpartition(error, count, axis=0)[:count]
    return index, np.take_along_axis(m, index, 0)


def _keep(result: FloatRequantization, channels: np.ndarray, fit: FloatRequantization) -> None:
    for target, new in zip(result[1:], fit[1:], strict=True):
        assert target is not None
        target[channels] = new
