"""Requantization in float32 by one clamped line, proven at every threshold.

An accumulator x below 2^24 is exact in float32. A requantization of x to levels 0 ... L is monotone, so its thresholds
T(n), the smallest x with a result of at least n, determine it (`staircase.py`). The same function in
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

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Final, NamedTuple, Self

import numpy as np

from tflq.numerics.float_basics import EXACT, float_steps, from_steps, level_bounds
from tflq.numerics.requantize.climb import Climb, blocks
from tflq.numerics.requantize.float_forms import N1_TO_1, RELU6, FloatForm, Prepare
from tflq.numerics.requantize.forms import FusedClamp, Ops, X
from tflq.numerics.requantize.gaps import Gaps, Nearest
from tflq.numerics.requantize.lines import HardestThresholds, added, closed

_BYTE: Final = 255  # levels above the lowest of 8 bits
# These numbers bound the search, not the proof. By docs/decisions/0016 it decides 53 of 3,560 models, and takes 1.3 of
# the 4.3 s in which these are converted. Levels of 6,000 accumulators or more seldom have a line (0013): a layer with
# many of them is given up early.
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
_TIMES: Final = 5  # roundings twice, of the products, the sum and the slope, and two units in the last place of m
_ALL: Final = 2.0**60  # a size of numbers with which all thresholds are near
_LAST: Final = 4  # so many channels or fewer are tried on all of their nearest thresholds


@dataclass(frozen=True, eq=False)
class Clamped(FloatForm):
    """floor(gain clamp((x - a) m + (sign(x) e + c))): proven at every threshold, each operation rounded on its own."""

    clamp: ClassVar[FusedClamp]
    centred: ClassVar[bool] = False  # whether there may be an a
    optional: ClassVar[int] = 2

    gain: np.ndarray
    m: np.ndarray
    c: np.ndarray
    e: np.ndarray | None
    a: np.ndarray | None = None

    @classmethod
    def fit(cls, climb: Climb) -> Self | None:
        """A channel with one result on its whole range is that number whatever x is. Any other range is below 2^24, or
        the clamp has ended where it goes on: an accumulator that is rounded to float32 stays beyond 2^24."""
        if not cls.suits(climb):
            return None
        climb = climb._replace(bottom=-cls.clamp.middle)
        thresholds, low, high, live = climb.thresholds, climb.low, climb.high, climb.live
        origins = [np.zeros_like(low)]
        if cls.centred:
            origins.append(np.clip(thresholds[thresholds.shape[0] // 2], low, high))
        origins = [a for a in origins if _is_exact(climb, a, live)]
        if not origins:
            return None
        for a in origins:
            climb = _exact_range(climb, a)
        low = climb.low
        gain = np.full(low.shape, next(gains(cls.clamp, thresholds.shape[0])), np.float32)
        rest = np.nonzero(~live)[0]
        lone = (thresholds.take(rest, 1) <= low[rest]).sum(0) + climb.bottom  # the one result of a channel
        m, c, e, a = (np.zeros(low.shape, np.float32) for _ in range(4))
        c[rest] = (lone + 0.5) / gain[rest]
        fit, left, odd = cls(gain, m, c, e, a), np.nonzero(live)[0], False
        if left.size:
            climb = climb.of_channels(left)
            odd = _is_odd(climb.of_channels(np.arange(left.size)[next(blocks(left.size))]))
            task = _Task(_nearest_steps(climb, odd=odd), climb.slope, origins[0][left], cls, odd)
            lines = _search(task, [a[left] for a in origins])
            if lines is None:
                return None
            fit.store(left, lines)
        fit = cls(gain, m, c, e if odd else None, a if a.any() else None)
        if not (fit(np.zeros((1, low.size)))[0, rest] == lone).all():
            raise AssertionError("a fit misses the values that are the only ones of their channels")
        return fit

    @classmethod
    def suits(cls, climb: Climb) -> bool:
        """Whether the clamp ends at the ends of the levels."""
        raise NotImplementedError

    def prepare(self) -> Prepare:
        return Prepare(negate=False, add=np.zeros(1, np.float32) if self.a is None else -self.a, relu=False)

    def offset(self, bottom: int) -> int:
        return bottom + self.clamp.middle

    def apply(self, x: X, ops: Ops[X]) -> X:
        product = ops.mul(x, ops.row(self.m))
        rest = ops.row(self.c) if self.e is None else ops.of_sign(x, self.a, self.e, self.c)
        return ops.floor(ops.mul(ops.clamped(product, rest, self.clamp), ops.row(self.gain)))


class ClampedToSix(Clamped):
    """With RELU6: for results of a rectifier, and levels that are not 256."""

    clamp = RELU6

    @classmethod
    def suits(cls, climb: Climb) -> bool:
        return climb.bottom == 0 or climb.thresholds.shape[0] != _BYTE


class ClampedToOne(Clamped):
    """With RELU_N1_TO_1: for 256 levels, around the middle of which numbers are small."""

    clamp = N1_TO_1
    centred = True

    @classmethod
    def suits(cls, climb: Climb) -> bool:
        return climb.thresholds.shape[0] == _BYTE


class _Task(NamedTuple):
    """A search for lines of a class by steps of C channels. `slope`: levels per accumulator, float64 [C]; `a`: what is
    taken off accumulators, int64 [C]; `odd`: whether lines differ on both sides of zero."""

    steps: Nearest
    slope: np.ndarray
    a: np.ndarray
    kind: type[Clamped]
    odd: bool

    def of_channels(self, some: np.ndarray) -> _Task:
        return _Task(self.steps.of_channels(some), self.slope[some], self.a[some], self.kind, self.odd)

    def proves(self, fit: Clamped) -> np.ndarray:
        """Whether a line meets every threshold and the clamp ends at the first and last level, bool [C]."""
        steps, levels = self.steps, self.steps.levels
        ends = (np.floor(np.float32(end) * fit.gain) for end in (fit.clamp.low, fit.clamp.high))
        bottom, top = (end == level for end, level in zip(ends, (levels[0] - 1, levels[-1]), strict=True))
        return steps.meets(fit.of_channels(steps.channel)(steps.x), steps.level) & bottom & top


def _is_odd(climb: Climb) -> bool:
    """Whether most channels have no line on both sides of zero, as if rounding twice."""
    at_least, below = Gaps.of(climb, climb.slope).room()
    return bool((at_least > below).mean() > 0.5)


def _exact_range(climb: Climb, a: np.ndarray) -> Climb:
    """The climb without accumulators x on the first or last level for which x - a, or a little less, is not exact:
    others have these levels, too."""
    least, most = a + len(_TRIED) * _FURTHER + 1 - EXACT, a + EXACT - 1
    low = np.where(climb.thresholds[0] > least, np.maximum(climb.low, least), climb.low)
    return climb._replace(
        low=low, high=np.where(climb.thresholds[-1] <= most, np.minimum(climb.high, most), climb.high)
    )


def _is_exact(climb: Climb, a: np.ndarray, live: np.ndarray) -> bool:
    """Whether x - a is exact on what remains of the ranges of live channels."""
    part = _exact_range(climb, a)
    exact = (part.low > a + len(_TRIED) * _FURTHER - EXACT) & (part.high < a + EXACT)
    return bool(exact[live].all())


def gains(clamp: FusedClamp, levels: int) -> Iterator[np.float32]:
    """Gains that bring the clamp's bounds to the ends of the levels; the first is the best as a rule."""
    for wave in range(len(_TRIED)):
        yield from _gains(clamp, levels, wave)


def _gains(clamp: FusedClamp, levels: int, wave: int) -> np.ndarray:
    """The gains of a wave, float32 [G]."""
    least, most = (127.0, 128.0) if clamp is N1_TO_1 else (levels / 6, (levels + 1) / 6)
    order = np.arange(wave * _GAINS, (wave + 1) * _GAINS)
    spread = (least + (most - least) * ((0.5 + order * 0.6180339887498949) % 1.0)).astype(np.float32)
    if clamp is N1_TO_1 and wave == 0:  # the product is the neighbour of one by 128: no rounding
        spread[0] = np.nextafter(np.float32(128), np.float32(0))
    return spread


@cache
def _wave(clamp: FusedClamp, levels: int, wave: int) -> tuple[np.ndarray, np.ndarray]:
    """The gains of a wave, float32 [G], and the bounds that levels have with them (`level_bounds`), [G, L + 2]."""
    gain = _gains(clamp, levels, wave)
    return gain, level_bounds(np.arange(1, levels + 1) - clamp.middle, gain)


def _search(task: _Task, origins: list[np.ndarray]) -> Clamped | None:
    """A proven line of each channel, with one of the `origins` as a; None if a channel has none, or likely has none."""
    result, proven = _first(task)
    left, of, tries = np.nonzero(~proven)[0], proven.size, 1
    if not left.size:
        return result
    task = task.of_channels(left)
    tight = HardestThresholds.of(task.steps, task.slope, odd=task.odd)
    for wave, tried in enumerate(_TRIED):
        if left.size <= _LAST:
            tight = HardestThresholds.of(task.steps, task.slope, odd=task.odd, most=task.steps.levels.size)
        a = origins[wave % len(origins) if wave >= _STRAIGHT else 0][left]
        task = task._replace(a=np.where(a == 0, a, a + wave * _FURTHER))
        fit, hits = _tried(task, tight, wave, min(max(tried, _LINES // left.size), _GAINS - 1))
        tries += tried
        if hits.any():
            hits = np.nonzero(hits)[0]
            hits = hits[task.of_channels(hits).proves(fit.of_channels(hits))]
            result.store(left[hits], fit.of_channels(hits))
            if hits.size == left.size:
                return result
            rest = np.delete(np.arange(left.size), hits)
            left, task, tight = left[rest], task.of_channels(rest), tight.columns(rest)
        hopeless = tries > _EARLY and left.size * tries > _HOPELESS
        if hopeless or (wave > 0 and left.size > max(_NONE * of, _FEW)):
            return None
    return None


def _first(task: _Task) -> tuple[Clamped, np.ndarray]:
    """The lines through the middle of all thresholds, and whether they are proven."""
    steps, (gain, _) = task.steps, _wave(task.kind.clamp, task.steps.levels.size, 0)
    best, m = _nearest(task.slope, gain[:_FIRST], 1)
    factor, offsets = gain[best[0]], steps.offsets(task.slope)
    ends = steps.ends(offsets, np.sign(steps.x).astype(np.int64) + 1, 3) if task.odd else steps.ends(offsets)
    at_least, below = ((v[::-2] + task.a * task.slope) / factor for v in ends)
    width, c, e = added(*closed(at_least, below, task.slope / factor))
    fit = task.kind(factor, m[0], c, e, task.a.astype(np.float32))
    return fit, (width > -np.inf) & task.proves(fit)


def _nearest_steps(climb: Climb, *, odd: bool) -> Nearest:
    """The nearest steps; if lines are `odd`, those of each sign of accumulators. All steps, where channels change the
    sign at different levels or have a threshold at 0."""
    middle = int(np.searchsorted(climb.thresholds[:, 0], 1)) if odd else 0
    ends = climb.thresholds[max(middle - 1, 0)], climb.thresholds[min(middle, climb.thresholds.shape[0] - 1)]
    apart = not odd or bool((ends[0] < 0).all() and (ends[1] > 1).all())
    some, size = np.arange(climb.slope.size), climb.size if apart else _ALL
    return Gaps.of(climb, climb.slope).nearest(some, _TIMES, size, middle)


def _tried(task: _Task, tight: HardestThresholds, wave: int, count: int) -> tuple[Clamped, np.ndarray]:
    """The line of each channel that leaves most room on its tightest thresholds, among `count` gains of a wave, and
    whether it leaves any."""
    slope = task.slope
    gain, bounds = _wave(task.kind.clamp, task.steps.levels.size, wave)
    index, m = _nearest(slope, gain, count)
    if wave == 1 or slope.size <= _LAST:
        some = slice(None if slope.size <= _LAST else 1)
        steps = float_steps(m[some]) + np.asarray(_BESIDE)[:, None, None]
        m = np.concatenate([m, from_steps(np.maximum(steps, 0)).reshape(-1, m.shape[1])])
        index = np.concatenate([index, *[index[some]] * len(_BESIDE)])
    lines = tight.lines(task.a[None].astype(np.float64), m, bounds, index)
    columns = np.arange(slope.size)
    best = gain[index[lines.best, columns]], m[lines.best, columns]
    return task.kind(*best, lines.c, lines.e, task.a.astype(np.float32)), lines.any


def _nearest(slope: np.ndarray, gain: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The indices of gains whose products by a float32 m come nearest to slopes float64 [C], and m: [count, C]."""
    factor = gain.astype(np.float64)[:, None]
    m = (slope / factor).astype(np.float32)
    error = np.abs(m * factor - slope)
    index = error.argmin(0)[None] if count == 1 else np.argpartition(error, count, axis=0)[:count]
    return index, np.take_along_axis(m, index, 0)
