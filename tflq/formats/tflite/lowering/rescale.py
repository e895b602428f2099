"""RESCALE on integer builtins, in the first of `FORMS` that is proven exact for the operator at hand;
ext.rescale_i64, ext.rounding_divide_by_pot.

ext.rescale_i64 is the product in int64, which wraps as it does, shifted so that the word asked for is the high one.

Clamps are subtractions with a fused RELU where they cannot overflow: hi - relu(hi - x) is min(x, hi), 0.3 ns per
element against 1.6 of MINIMUM. Figures of all forms: `cost.py`. Formulas: `numerics/fixed_point.py`, TOSA 1.0
specification, RESCALE.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Final, TypeAlias, TypeVar

import numpy as np

from tflq.dialects.builder import squeezed
from tflq.dialects.quant import RescaleFloat, RescaleI64, RoundingDivideByPot
from tflq.dialects.tfl.arithmetic import Sign
from tflq.dialects.tosa.convolution import Conv2D, DepthwiseConv2D
from tflq.dialects.tosa.elementwise import Clamp
from tflq.dialects.tosa.movement import Rescale
from tflq.formats.tflite.lowering.form_ops import KernelOps
from tflq.formats.tflite.lowering.lowering import Tflite, lowering
from tflq.formats.tflite.lowering.shifts import high_part, restore, right_shift
from tflq.ir.ops import Value
from tflq.ir.types import i16, i32, i64
from tflq.numerics.requantize.division import Division, rescale_divisions
from tflq.numerics.requantize.scaling import Bounds, Factor, FixedPoint, Range, Scaling, Staircase

_I31 = (1 << 31) - 1
_I62, _I63 = 1 << 62, (1 << 63) - 1
_Searched: TypeAlias = tuple[Staircase, Division | None]
_Requantized: TypeAlias = tuple[Scaling[FixedPoint], Clamp | None, _Searched | None]
Kind = TypeVar("Kind", bound=Factor)
_LEVELS: Final = 255
"""Levels above the lowest that a division climbs, at most."""
_TOGETHER = 1 << 16  # channels whose divisions are looked for in one go


@lowering(Rescale)
def rescale(op: Rescale, k: Tflite) -> Value:
    """saturate(apply_scale(x - input_zp) + output_zp), with the clamp that follows it, if one does."""
    x = k.value(op.input)
    storage = x.type.storage
    s, clamp, searched = k.once(_requantizations).get(op) or _requantized([op], k)[op]
    if storage.bits < 32:
        x = k.cast(x, i32)
    if s.zero_in:
        x = k.sub(x, s.zero_in)
    y = next(y for form in FORMS if (y := form(k, x, s, searched)) is not None)
    y = k.cast(y, op.output.type.storage)
    return k.fuse(clamp, y) if clamp else y


def _requantizations(k: Tflite) -> dict[Rescale, _Requantized]:
    """`_requantized` of the RESCALEs of a function together, since it takes many small steps on arrays. With float32,
    those of convolutions are left out: they are requantized in float32 as a rule, or else one by one."""
    ops = [op for op in k.source if isinstance(op, Rescale)]
    if k.mac == "float32":
        outputs = {op.output for op in k.source if isinstance(op, (Conv2D, DepthwiseConv2D))}
        ops = [op for op in ops if op.input not in outputs]
    return _requantized(ops, k)


def _requantized(ops: list[Rescale], k: Tflite) -> dict[Rescale, _Requantized]:
    """The scaling of each RESCALE, and the clamp that is part of it.

    If it may be a division, also its staircase, and the division that equals it on all its inputs, if there is one.
    """
    scalings = {op: scaling_of(op, op.factor, k) for op in ops}
    different: dict[Hashable, Scaling[FixedPoint]] = {}  # strips of one result have equal ones
    for op, (s, _) in scalings.items():
        if op.input.type.storage.bits <= 32 and s.result.low < s.result.high and not s.is_one and may_divide(s):
            different.setdefault(s.key, s)
    alike: dict[tuple[int, bool], list[Scaling[FixedPoint]]] = defaultdict(list)
    for s in different.values():
        alike[s.result.high - s.result.low, s.factor.double_round].append(s)
    searched: dict[Hashable, _Searched] = {}
    for group in alike.values():
        parts = np.cumsum([s.factor.multiplier.size for s in group]) // _TOGETHER
        for part in np.unique(parts):
            some = [s for s, at in zip(group, parts, strict=True) if at == part]
            searched |= zip([s.key for s in some], _search(some, k), strict=True)
    return {op: (s, clamp, searched.get(s.key)) for op, (s, clamp) in scalings.items()}


def may_divide(s: Scaling[Factor]) -> bool:
    """Whether the division form comes into question: few levels, and 0 maps to 0."""
    low, high = s.levels
    return high - low <= _LEVELS and low <= 0 <= high and s.factor.rises


def _search(scalings: list[Scaling[FixedPoint]], k: Tflite) -> list[_Searched]:
    """The staircases and divisions of scalings that have as many levels and the same rounding."""
    factors = [s.factor for s in scalings]
    multiplier, shift = (np.concatenate(v) for v in zip(*[f.numbers[:2] for f in factors], strict=True))
    sizes = np.asarray([f.multiplier.size for f in factors])
    ranges = [(s.levels.low + 1, *s.accumulator.range) for s in scalings]
    bottom, low, high = np.repeat(np.asarray(ranges, np.int64).T, sizes, axis=1)
    (least, most), double_round = scalings[0].result, factors[0].double_round
    first, step, proven, *numbers = k.remembered(
        rescale_divisions, bottom, most - least, multiplier, shift, double_round, low, high, sizes
    )
    factor = FixedPoint(multiplier, shift, double_round)
    stairs = Staircase.of(factor, bottom, most - least, (first, step))
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    divisions = [
        Division(*[v[part] for v in numbers], from_zero=s.levels.low >= 0) if sure else None
        for s, sure, part in zip(scalings, proven, parts, strict=True)
    ]
    return list(zip(map(stairs.of_channels, parts), divisions, strict=True))


def scaling_of(
    op: Rescale | RescaleFloat, factor: Kind, k: Tflite, accumulator: Bounds | None = None
) -> tuple[Scaling[Kind], Clamp | None]:
    """The scaling of an op by its factor, and the clamp that is part of it, if the only reader is a clamp."""
    storage = op.output.type.storage
    clamp = k.only_user(op.output, Clamp)
    ends = (storage.minimum, storage.maximum) if clamp is None else (clamp.min_val, clamp.max_val)
    zero = op.input_zp if isinstance(op, Rescale) else 0
    bounds = Bounds.of(*input_range(op, k)) if accumulator is None else accumulator
    return Scaling(factor, zero, op.output_zp, bounds, Range(*ends)), clamp


def input_range(op: Rescale | RescaleFloat, k: Tflite) -> tuple[int, int]:
    """Bounds of the operand less its zero point: those noted on the op (`input_range`), else those that follow."""
    if op.input_range:
        return int(op.input_range[0]), int(op.input_range[1])
    zero = op.input_zp if isinstance(op, Rescale) else 0
    least, most = k.ranges.of(op.input)
    widest = 1 << 47  # TOSA's widest accumulator; TFLite's int64 ones hold no more, unless that is noted
    return max(least, -widest) - zero, min(most, widest - 1) - zero


def filled(k: Tflite, x: Value, value: int) -> Value:
    """A tensor of x's shape, whatever that is when the model runs, with one value, as a clamp to one number leaves
    it."""
    return k.add(k.mul(x, 0), value)


def _constant(k: Tflite, x: Value, s: Scaling[FixedPoint], _: _Searched | None) -> Value | None:
    """One result, whatever x is."""
    return filled(k, x, s.result.low) if s.result.low == s.result.high else None


def _unscaled(k: Tflite, x: Value, s: Scaling[FixedPoint], _: _Searched | None) -> Value | None:
    """A scale of 1: only other zero points and a clamp."""
    return clamp_to(k, x, s, *s.accumulator.range) if s.is_one else None


# --- division


def _by_division(k: Tflite, x: Value, s: Scaling[FixedPoint], searched: _Searched | None) -> Value | None:
    """The division form, or None where it has no proof."""
    if x.type.storage != i32 or searched is None:
        return None
    return divide(k, x, *searched, *s.accumulator.range, s.zero_out)


def divide(
    k: Tflite, x: Value, stairs: Staircase, fit: Division | None, least: int, most: int, output_zp: int
) -> Value | None:
    """The staircase, for x (int32) in [least, most], for which `fit` is its division, if it has one: int32, plus
    `output_zp`. None without a proof."""
    bottom, top = int(stairs.bottom[0]), int(stairs.top[0])
    bounded = fit is None
    if fit is None:
        ends = stairs.thresholds(np.asarray([bottom, top]))
        first, last = np.maximum(ends[0] - 1, least), np.minimum(ends[1], most)
        if (last - least > _I31).any() or (most - last > _I31 + 1).any() or (last < first).any():
            return None  # the clamp of x would overflow, or leave nothing
        fit = Division.fit(stairs, first, last)
        if fit is None:
            return None
        x = clamped(k, x, first, last, least, most)
    y = fit.apply(x, KernelOps(k, i32))
    if not bounded:
        reach = int(np.ceil(max(-least, most) / float(stairs.step.min()))) + 1
        y_least = 0 if bottom > 0 else -reach
        return clamped(k, y, np.asarray(bottom - 1), np.asarray(top), y_least, reach, output_zp)
    return k.add(y, output_zp) if output_zp else y


def clamp_to(k: Tflite, x: Value, s: Scaling[Factor], least: int, most: int) -> Value:
    """The result of a factor in [least, most], clamped, zero point included."""
    low, high = (np.asarray(v) for v in s.levels)
    return clamped(k, x, low, high, least, most, s.zero_out)


def clamped(k: Tflite, x: Value, low: np.ndarray, high: np.ndarray, least: int, most: int, offset: int = 0) -> Value:
    """min(max(x, low), high) + offset for x (int32 or int64) in [least, most]; a bound that changes nothing is free.

    high - least and high - most are within x's type.
    """
    storage = x.type.storage
    upper, lower = bool((high < most).any()), bool((low > least).any())
    if storage == i64 and max(-least, most) >= _I62:
        x = k.maximum(k.minimum(x, k.row(high, storage)), k.row(low, storage))
        base = np.asarray(offset)
    elif upper and lower:
        x = k.sub(k.row(high, storage), x, "RELU")
        x = k.sub(k.row(high - low, storage), x, "RELU")
        base = low + offset
    elif upper:
        x = k.sub(k.row(high, storage), x, "RELU")
        return k.sub(k.row(high + offset, storage), x)
    elif lower:
        x = k.sub(x, k.row(low, storage), "RELU")
        base = low + offset
    else:
        base = np.asarray(offset)
    return k.add(x, k.row(base, storage)) if np.any(base) else x


# --- wide


def _wide(k: Tflite, x: Value, s: Scaling[FixedPoint], _: _Searched | None) -> Value:
    """The int64 form: x M + rounding, clamped where nothing overflows yet, and its high word.

    A shift of 32 or 48 is a word of the sum; a smaller one is made up to that by a factor, in the multiplier if there
    is room for it, else after the clamp; a larger one leaves a RIGHT_SHIFT.
    """
    (lows, highs), widest = s.levels, s.accumulator.range.reach
    multiplier, shift, double_round = s.factor.numbers
    place = 48 if 32 < shift.max() <= 48 and highs - lows < 1 << 14 else 32
    room = np.maximum(place - shift, 0)
    twice = np.where(double_round & (shift > 31), 1 << 30, 0)
    reach = [widest * abs(int(m)) + int(r) for m, r in zip(multiplier, twice, strict=True)]
    bounds = (max(-lows, highs) + 2) << max(place, int(shift.max()))
    early = room if max(reach) << int(room.max()) < 1 << 61 and bounds < 1 << 61 else np.zeros_like(room)

    y = k.mul(k.cast(x, i64), k.row(multiplier << early, i64))
    if twice.any():
        y = k.add(y, k.mul(k.cast(k.emit(Sign, [x]), i64), k.row(twice << early, i64)))
    y, base = _clamped_sum(
        k, y, shift + early, [v << int(e) for v, e in zip(reach, early, strict=True)], lows, highs, place
    )
    if (room > early).any():
        y = k.mul(y, k.row(np.int64(1) << (room - early), i64))
    word = k.cast(high_part(k, y, i16 if place == 48 else i32), i32)
    down = np.maximum(shift - place, 0)
    base = squeezed(base + s.zero_out)
    uniform = (down == down[0]).all() and base.ndim == 0
    if not uniform:
        word = restore(k, word, x.type.shape)
    if down.any():
        word = right_shift(k, word, k.row(down))
    if base.any():
        word = k.add(word, base)
    return restore(k, word, x.type.shape) if uniform else word


def _clamped_sum(
    k: Tflite, y: Value, shift: np.ndarray, reach: list[int], lows: int, highs: int, place: int
) -> tuple[Value, np.ndarray]:
    """(y + half) clamped to the sums whose quotient by 2^shift is in [lows, highs], less base * 2^shift; and base,
    int64 [C].

    |y| is at most `reach` per channel.
    """
    shifts = [int(v) for v in np.broadcast_to(shift, len(reach))]
    half = [1 << (t - 1) for t in shifts]
    least = [min(max(lows, (h - r) >> t), highs) for h, r, t in zip(half, reach, shifts, strict=True)]
    low = [v << t for v, t in zip(least, shifts, strict=True)]
    high = [min(((highs + 1) << t) - 1, h + r) for h, r, t in zip(half, reach, shifts, strict=True)]
    below = any(v > h - r for v, h, r in zip(low, half, reach, strict=True))
    above = any(v < h + r for v, h, r in zip(high, half, reach, strict=True))
    zero = np.zeros(len(reach), np.int64)
    if not below and not above:
        return k.add(y, k.row(half, i64)), zero
    widest = max(max(b - a, b - h + r) for a, b, h, r in zip(low, high, half, reach, strict=True))
    if widest > _I63:  # the clamp of a RESCALE that leaves nothing but 0 and 1
        y = k.add(y, k.row(half, i64))
        return k.maximum(k.minimum(y, k.row(high, i64)), k.row(low, i64)), zero
    y = k.sub(k.row([b - h for b, h in zip(high, half, strict=True)], i64), y, "RELU")
    y = k.sub(k.row([b - a for a, b in zip(low, high, strict=True)], i64), y, "RELU")
    if (highs - lows + 1) << place > _I63:
        return k.add(y, k.row(low, i64)), zero
    return y, np.asarray(least, np.int64)


By: TypeAlias = Callable[[Tflite, Value, Scaling[FixedPoint], _Searched | None], Value | None]

FORMS: Final[tuple[By, ...]] = (_constant, _unscaled, _by_division, _wide)
"""The forms of a RESCALE, the best one first: its result, zero point included, or None.

Divisions are searched for all RESCALEs of a function at once, before the first form is tried (`_requantizations`): one
search on arrays costs far less than one for each. A form before `_by_division` does not spare that search.
"""


# --- what wraps


@lowering(RescaleI64)
def rescale_i64(op: RescaleI64, k: Tflite) -> Value:
    """The high word of (x m + 2^((s - 1) mod 64)) 2^(32 - s).

    For a shift of more than 32, the upper bits of that word. Factors are taken modulo 2^64, as the product is: of 2^(32
    - s) only the lower bits of the word above count.
    """
    x = k.value(op.input)
    multiplier, shift = (np.atleast_1d(v).astype(np.int64) for v in (op.multiplier, op.shift))
    up, down = np.maximum(32 - shift, 0), np.maximum(shift - 32, 0)
    half = np.left_shift(np.int64(1), (shift - 1) & 63)
    y = k.mul(k.cast(x, i64), k.row(multiplier << up, i64))
    y = k.add(y, k.row(half << up, i64))
    word = restore(k, high_part(k, y, i32), x.type.shape)
    return right_shift(k, word, k.row(down)) if down.any() else word


@lowering(RoundingDivideByPot)
def rounding_divide(op: RoundingDivideByPot, k: Tflite) -> Value:
    """(x + 2^(e-1) - [x < 0]) >> e, for int64: times 2^(32-e), of which the upper word is the quotient."""
    x, exponent, shape = k.value(op.input), op.exponent, op.output.type.shape
    negative = k.cast(k.greater(0, x), i64)
    scaled = k.mul(k.sub(x, negative), 1 << (32 - exponent))
    word = high_part(k, k.add(scaled, 1 << 31), i32)
    return restore(k, k.cast(word, op.output.type.storage), shape)
