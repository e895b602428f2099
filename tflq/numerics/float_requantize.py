"""Requantization in float32, proven at every threshold.

An accumulator x below 2^24 is exact in float32. A requantization of x to levels 0 ... L is monotone, so it is known by
its thresholds T(n), the smallest x with a result of at least n (`tflq.numerics.staircase`). The same function in
float32, each operation correctly rounded, as a kernel of its own:

    f(x) = floor(gain * clamp((x - a) * m + (sign(x) * e + c)))        sign(x) e only where the formula is odd around 0

The clamp is RELU6 or RELU_N1_TO_1, which ADD fuses; gain brings its bounds to the ends of the levels:

    RELU6            [0, 6]     gain in [L / 6, (L + 1) / 6)    results 0 ... L
    RELU_N1_TO_1     [-1, 1]    gain in (127, 128)              results -128 ... 127, for L = 255

Every operation is monotone in x for m, e >= 0, and so is f. It equals the requantization on [low, high] if f(T(n)) has
reached n and f(T(n) - 1) has not, for every T(n) of that range, and the same at the range's ends: that is the proof, by
evaluation of f itself in float32. No multiplication and addition may be contracted into one rounding: they are
separate kernels, so none is.

Where to look for the constants: a gain and a factor m leave an interval to c (to c + e and c - e on both sides of
zero), whose middle is tried. How each product is rounded is chance, so where the thresholds are dense it takes some
tries: neighbours of m, and other gains, of which the clamp leaves many. Who makes the accumulators can make x - a: with
a in the middle of the levels all numbers are small, c most of all, so roundings are, too, and there are other a to try.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import numpy as np

from tflq.light import NamedTuple
from tflq.numerics.exact_sums import EXACT
from tflq.numerics.float_thresholds import float_steps, from_steps

__all__ = [
    "N1_TO_1",
    "RELU6",
    "Clamp",
    "FloatRequantization",
    "fit_float_requantization",
    "gains",
    "line_slope",
    "of_arrays",
    "requantization_arrays",
]

_STEPS: Final = ((0, 1, -1, 2, -2), (0, 1, -1))  # of m away from the real factor, with the first gain and any other
_GAINS: Final = 1024
_ROUNDS, _FURTHER = 24, 3  # how often all gains are tried with another a, and how far that is from the last one
_MOST: Final = (1 << 17, 1 << 19)  # lines that are tried, of all channels: without an a and with one
_HOPELESS: Final = 0.95  # where this share of more than a few channels is left after a few tries, there are too many
_FEW: Final = 16
_FIRST: Final = len(_STEPS[0])  # tries on all thresholds; later ones are made on the tightest
_TIGHT, _COLUMNS = 40, 1024  # how many of these, and of channels that are tried at once

_F32: TypeAlias = np.ndarray


class Clamp(NamedTuple):
    """A fused activation, its bounds, and what a result of 0 stands for as a level of 0 ... 255."""

    activation: Literal["RELU6", "RELU_N1_TO_1"]
    low: float
    high: float
    middle: int


RELU6: Final = Clamp("RELU6", 0.0, 6.0, 0)
N1_TO_1: Final = Clamp("RELU_N1_TO_1", -1.0, 1.0, 128)


class FloatRequantization(NamedTuple):
    """f(x) = floor(gain * clamp((x - a) * m + (sign(x) * e + c))): float32 [C] each, e None for no such term."""

    clamp: Clamp
    gain: _F32
    m: _F32
    c: _F32
    e: _F32 | None
    a: _F32 | None = None

    def of(self, channels: np.ndarray) -> FloatRequantization:
        """That of some channels."""
        return FloatRequantization(self.clamp, *(None if v is None else v[channels] for v in self[1:]))  # type: ignore[arg-type]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """f of integers below 2^24 [..., C], operation by operation in float32."""
        whole = np.asarray(x)
        total = (whole if self.a is None else whole - self.a.astype(np.float64)).astype(np.float32) * self.m
        total += self.c if self.e is None else np.sign(whole).astype(np.float32) * self.e + self.c
        np.clip(total, np.float32(self.clamp.low), np.float32(self.clamp.high), out=total)
        return np.floor(total * self.gain)


class _Thresholds(NamedTuple):
    """What f has to meet, [L, C] each: from `reached` on at least `level`, and below it at `missed`; NaN where the
    range has no such accumulator. `ends` are the results where the clamp ends."""

    level: np.ndarray  # [L, C], or [L, 1] for all channels alike
    reached: np.ndarray
    missed: np.ndarray
    ends: tuple[int, int]
    a: np.ndarray  # [C], whole numbers

    def of(self, channels: np.ndarray) -> _Thresholds:
        level = self.level if self.level.shape[1] == 1 else self.level[:, channels]
        return _Thresholds(level, self.reached[:, channels], self.missed[:, channels], self.ends, self.a[channels])

    def tightest(self, slope: np.ndarray, *, odd: bool) -> _Thresholds:
        """The thresholds that leave a line the least room, of each channel; on both sides of zero, if it is odd."""
        if self.level.size <= _TIGHT:
            return self
        offset, jump = _lines(self, slope, odd=odd)
        above = (self.reached - self.a) * slope + offset - self.level
        below = self.level - (self.missed - self.a) * slope - offset
        if jump is not None:
            above, below = above + np.sign(self.reached) * jump, below - np.sign(self.missed) * jump
        room = np.fmin(above, below)
        sides = [room] if jump is None else [np.where(self.reached * sign > 0, room, np.nan) for sign in (1, -1)]
        order = np.concatenate([np.argpartition(side, _TIGHT, axis=0)[:_TIGHT] for side in sides])
        level, reached, missed = (
            np.take_along_axis(np.broadcast_to(v, self.reached.shape), order, 0) for v in self[:3]
        )
        return _Thresholds(level, reached, missed, self.ends, self.a)


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
    """The requantization with thresholds T(1) ... T(L) int64 [L, C] on accumulators in [low, high] int64 [C], with
    about `slope` float64 [C] levels per unit, in float32: a result of 0 is the level `clamp.middle`. None without a
    proof. `below` are the greatest accumulators below each threshold, if that is not one less; `centred`: whether there
    may be an a.

    A channel with one result on its whole range is that number whatever x is; of any other the range is below 2^24, or
    goes on where the clamp has ended: an accumulator that is rounded to float32 stays beyond 2^24.
    """
    if clamp is N1_TO_1 and thresholds.shape[0] != 255:
        return None
    middle = np.clip(thresholds[thresholds.shape[0] // 2], low, high) if centred else np.zeros_like(low)
    least, most = middle + _ROUNDS * _FURTHER + 1 - EXACT, middle + EXACT - 1
    low = np.where(thresholds[0] > least, np.maximum(low, least), low)
    high = np.where(thresholds[-1] <= most, np.minimum(high, most), high)
    live = ((thresholds > low) & (thresholds <= high)).any(0)
    if ((low < least) | (high > most))[live].any():
        return None
    gain = np.full(low.shape, next(gains(clamp, thresholds.shape[0])), np.float32)
    lone = (thresholds <= low).sum(0) - clamp.middle  # the one result of a channel that is not live
    m, e, c, a = (np.zeros(low.shape, np.float32) for _ in range(4))
    c[~live] = ((lone + 0.5) / gain)[~live]
    left, odd = np.nonzero(live)[0], False
    if left.size:
        beneath = thresholds - 1 if below is None else below
        given = _thresholds(thresholds[:, left], beneath[:, left], low[left], high[left], clamp, middle[left])
        odd = _is_odd(given, slope[left])
        found = _search(given, slope[left], clamp, odd=odd, centred=centred)
        if found is None:
            return None
        gain[left], m[left], c[left], e[left] = found.gain, found.m, found.c, 0 if found.e is None else found.e
        a[left] = 0 if found.a is None else found.a
    fit = FloatRequantization(clamp, gain, m, c, e if odd else None, a if centred else None)
    assert (fit(np.zeros((1, low.size)))[0] == lone)[~live].all()
    return fit


def requantization_arrays(
    thresholds: np.ndarray, slope: np.ndarray, low: np.ndarray, high: np.ndarray, activation: str, centred: bool
) -> tuple[np.ndarray, ...]:
    """`fit_float_requantization` with the clamp of an activation: gain, m, c, e and a, empty where there is no such
    term; nothing without a proof."""
    clamp = RELU6 if activation == RELU6.activation else N1_TO_1
    fit = fit_float_requantization(thresholds, slope, low, high, clamp, centred=centred)
    return () if fit is None else tuple(np.zeros(0, np.float32) if v is None else v for v in fit[1:])


def of_arrays(arrays: Sequence[np.ndarray], activation: str) -> FloatRequantization:
    """What `requantization_arrays` stand for."""
    clamp = RELU6 if activation == RELU6.activation else N1_TO_1
    gain, m, c, e, a = arrays
    return FloatRequantization(clamp, gain, m, c, e if e.size else None, a if a.size else None)


def line_slope(thresholds: np.ndarray, below: np.ndarray | None = None) -> float | None:
    """Levels per unit of a line that climbs where T(1) ... T(L) int64 [L] say, in the middle of what these leave to it:
    of any two, it gains less from T(i) to what is below T(j) than j - i levels. It may be another one on either side
    of zero. None if there is no such line."""
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
    """The bounds of what lines with these steps gain per unit; the same twice if there is none."""
    run, rise = missed - reached[:, None], level - level[:, None]
    if ((run == 0) & (rise <= 0)).any():
        return 0.0, 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(run < 0, rise / run, 0).max(initial=0)
        most = np.where(run > 0, rise / run, np.inf).min(initial=np.inf)
    return float(least), float(most)


def gains(clamp: Clamp, levels: int) -> Iterator[np.float32]:
    """Gains that bring the clamp's bounds to the ends of the levels; the first is the one that is best as a rule."""
    if clamp is N1_TO_1:
        yield np.nextafter(np.float32(128), np.float32(0))  # the product is the neighbour of one by 128: no rounding
    least, most = (127.0, 128.0) if clamp is N1_TO_1 else (levels / 6, (levels + 1) / 6)
    for i in range(_GAINS):
        yield np.float32(least + (most - least) * ((0.5 + i * 0.6180339887498949) % 1.0))


def _thresholds(
    thresholds: np.ndarray, below: np.ndarray, low: np.ndarray, high: np.ndarray, clamp: Clamp, a: np.ndarray
) -> _Thresholds:
    level = np.arange(1, thresholds.shape[0] + 1)[:, None] - clamp.middle
    reached = np.where(thresholds <= high, np.maximum(thresholds, low), np.nan)
    missed = np.where(thresholds > low, np.minimum(below, high), np.nan)
    return _Thresholds(level, reached, missed, (int(level[0, 0]) - 1, int(level[-1, 0])), a)


def _interval(given: _Thresholds, slope: np.ndarray, sign: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """What the thresholds leave to c for lines of a slope, in levels, float64 [C] each; by accumulators of one sign
    alone if it is given."""
    at_least, below = (given.level - (x - given.a) * slope for x in (given.reached, given.missed))
    if sign is not None:
        at_least = np.where(given.reached * sign > 0, at_least, np.nan)
        below = np.where(given.missed * sign > 0, below, np.nan)
    return np.fmax.reduce(at_least, 0), np.fmin.reduce(below, 0)


def _is_odd(given: _Thresholds, slope: np.ndarray) -> bool:
    """Whether most channels have no line on both sides of zero, as if rounding twice."""
    with np.errstate(invalid="ignore"):
        low, high = _interval(given, slope)
        return bool((low > high).mean() > 0.5)


def _middle(low: np.ndarray, high: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The middle of an interval; near the one end that it has."""
    low, high = np.fmax(low, high - slope), np.fmin(high, low + slope)
    return (low + high) / 2


def _lines(given: _Thresholds, slope: np.ndarray, *, odd: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """c and e in levels, float64 [C], for lines of a slope."""
    if not odd:
        return _middle(*_interval(given, slope), slope), None
    above, below = (_middle(*_interval(given, slope, sign), slope) for sign in (1, -1))
    above, below = np.where(np.isnan(above), below, above), np.where(np.isnan(below), above, below)
    return (above + below) / 2, np.maximum((above - below) / 2, 0)


def _search(
    given: _Thresholds, slope: np.ndarray, clamp: Clamp, *, odd: bool, centred: bool
) -> FloatRequantization | None:
    """The first proven line of each channel; None if one has none. Where the first tries fail, others are made on the
    tightest thresholds, and proven on all."""
    size = slope.size
    found = FloatRequantization(clamp, *(np.zeros(size, np.float32) for _ in range(5)))
    gain, step = (np.asarray(v) for v in zip(*_candidates(clamp, given.level.shape[0]), strict=True))
    further = np.repeat(np.arange(_ROUNDS if centred else 1) * _FURTHER, gain.size)
    gain, step = (np.tile(v, further.size // gain.size) for v in (gain, step))
    left, at, tight, spent = np.arange(size), 0, given, 0
    while at < gain.size and spent < _MOST[centred] and not (at >= _FEW and left.size > max(_HOPELESS * size, _FEW)):
        if at == _FIRST:
            tight = given.of(left).tightest(slope[left], odd=odd)
        some = slice(at, at + (1 if at < _FIRST else max(1, min(_COLUMNS // left.size, _FEW))))
        columns = np.tile(np.arange(left.size), gain[some].size)  # where channels are few, several tries at once
        spent += columns.size
        more, *factors = (np.repeat(v[some], left.size) for v in (further, gain, step))
        met = tight.of(columns)
        met = met._replace(a=met.a + more)
        tried = _line(met, slope[left][columns], clamp, *factors, odd=odd)
        proven = _proven(tried, met).reshape(-1, left.size)
        done = proven.any(0)
        tried = tried.of((proven.argmax(0) * left.size + np.arange(left.size))[done])
        if at >= _FIRST:
            whole = _proven(tried, given.of(left[done]))
            tried, done[done] = tried.of(whole), whole
        for kept, new in zip(found[1:], tried[1:], strict=True):
            if kept is not None and new is not None:
                kept[left[done]] = new
        left, tight, at = left[~done], tight.of(~done), at + gain[some].size
        if not left.size:
            return found._replace(e=found.e if odd else None, a=found.a if centred else None)
    return None


def _candidates(clamp: Clamp, levels: int) -> Iterator[tuple[np.float32, int]]:
    for i, gain in enumerate(gains(clamp, levels)):
        for step in _STEPS[min(i, 1)]:
            yield gain, step


def _line(
    given: _Thresholds, slope: np.ndarray, clamp: Clamp, gain: np.ndarray, step: np.ndarray, *, odd: bool
) -> FloatRequantization:
    """One try per channel: m is `step` floats away from the real factor, c and e are in the middle of what that
    leaves."""
    real = gain.astype(np.float64)
    m = from_steps(np.maximum(float_steps((slope / real).astype(np.float32)) + step, 0))
    offset, jump = _lines(given, m * real, odd=odd)
    c = (offset / real).astype(np.float32)
    e = None if jump is None else (jump / real).astype(np.float32)
    return FloatRequantization(clamp, gain, m, c, e, given.a.astype(np.float32))


def _proven(fit: FloatRequantization, given: _Thresholds) -> np.ndarray:
    """Whether f meets every threshold and the clamp ends at the first and last level, bool [C]."""
    with np.errstate(invalid="ignore"):
        late, early = fit(given.reached) < given.level, fit(given.missed) >= given.level
    bottom, top = (np.floor(np.float32(end) * fit.gain) for end in (fit.clamp.low, fit.clamp.high))
    return ~(late | early).any(0) & (bottom == given.ends[0]) & (top == given.ends[1])
