"""RESCALE on integer builtins, in the first form that is proven exact for the operator at hand, the cheapest first;
ext.rescale_i64, ext.rounding_divide_by_pot, ext.rescale_mean, ext.rescale_f64.

    division   trunc((a x + sign(x) c) / b) in int32, proven at every threshold (`numerics.division_fit`)
    wide       (x M + rounding) in int64, clamped, and its high word; exact for every RESCALE

ext.rescale_i64 is the product in int64, which wraps as it does, shifted so that the word asked for is the high one.

Clamps are subtractions with a fused RELU where they cannot overflow: hi - relu(hi - x) is min(x, hi), 0.3 ns per
element against 1.6 of MINIMUM. Figures of all forms: `cost.py`. Formulas: `numerics/fixed_point.py`, TOSA 1.0
specification, RESCALE.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from tflq.analysis.known import Range
from tflq.base.errors import Reason, UnsupportedError
from tflq.dialects.builder import squeezed
from tflq.dialects.quant import RescaleF64, RescaleI64, RescaleMean, RoundingDivideByPot
from tflq.dialects.tfl.arithmetic import FloorMod, Sign
from tflq.dialects.tfl.pooling import Sum
from tflq.dialects.tfl.shape import Shape
from tflq.dialects.tosa.convolution import Conv2D, DepthwiseConv2D
from tflq.dialects.tosa.elementwise import Clamp
from tflq.dialects.tosa.movement import Rescale
from tflq.formats.tflite.lowering.lowering import Kernels, lowering
from tflq.formats.tflite.lowering.shifts import high_part, restore, right_shift
from tflq.ir.core import Value
from tflq.ir.types import TensorType, i16, i32, i64
from tflq.numerics.division_fit import Division, fit_division, rescale_divisions
from tflq.numerics.staircase import Staircase, float_staircase, rescale_staircase

if TYPE_CHECKING:
    from tflq.numerics.division_fit import LongProduct, WideProduct


_I31 = (1 << 31) - 1
_I62, _I63 = 1 << 62, (1 << 63) - 1
_Climb: TypeAlias = tuple[Staircase, Division | None]
_Requantized: TypeAlias = tuple["_Scaling", Clamp | None, _Climb | None]
_TOGETHER = 1 << 16  # channels whose divisions are looked for in one go


class _Scaling(NamedTuple):
    """One requantization: its numbers, the input's range without zero point, and the results it may give."""

    multiplier: np.ndarray  # int64 [1 or C]
    shift: np.ndarray  # int64 [1 or C]
    double_round: bool
    output_zp: int
    low: int  # of the result, zero point included
    high: int
    least: int  # of the input
    most: int

    @property
    def is_one(self) -> bool:
        """Whether it is a scale of 1 on integers that are small enough to be clamped as they are."""
        return max(-self.least, self.most) < 1 << 24 and bool((self.multiplier == 1 << self.shift).all())

    @property
    def may_divide(self) -> bool:
        """Whether the division form comes into question: few levels, and 0 maps to 0."""
        few = self.high - self.low <= 255 and self.low <= self.output_zp <= self.high
        return few and bool((self.multiplier >= 0).all())

    @property
    def key(self) -> Hashable:
        """A key that is equal for equal scalings."""
        return self.multiplier.tobytes(), self.shift.tobytes(), *self[2:]

    @property
    def bottom(self) -> int:
        """The lowest level it climbs to, less the zero point."""
        return self.low - self.output_zp + 1


@lowering(Rescale)
def rescale(op: Rescale, k: Kernels) -> Value:
    """saturate(apply_scale(x - input_zp) + output_zp), with the clamp that follows it, if one does."""
    x = k.value(op.input)
    storage = x.type.storage
    s, clamp, climb = k.once(_requantizations).get(op) or _requantized([op], k)[op]
    if storage.bits < 32:
        x = k.cast(x, i32)
    if op.input_zp:
        x = k.sub(x, op.input_zp)
    y = filled(k, x, s.low) if s.low == s.high else None
    y = y or _unscaled(k, x, s) or _by_division(k, x, s, climb) or _wide(k, x, s)
    y = k.cast(y, op.output.type.storage)
    return k.fuse(clamp, y) if clamp else y


def _requantizations(k: Kernels) -> dict[Rescale, _Requantized]:
    """`_requantized` of the RESCALEs of a function together, since it takes many small steps on arrays. With float32,
    those of convolutions are left out: they are requantized in float32 as a rule, or else one by one."""
    ops = [op for op in k.source if isinstance(op, Rescale)]
    if k.mac == "float32":
        outputs = {op.output for op in k.source if isinstance(op, (Conv2D, DepthwiseConv2D))}
        ops = [op for op in ops if op.input not in outputs]
    return _requantized(ops, k)


def _requantized(ops: list[Rescale], k: Kernels) -> dict[Rescale, _Requantized]:
    """The numbers of each RESCALE, and the clamp that is part of it.

    If it may be a division, also its staircase, and the division that equals it on all its inputs, if there is one.
    """
    scalings = {op: _scaling(op, k) for op in ops}
    different: dict[Hashable, _Scaling] = {}  # strips of one result have equal ones
    for op, (s, _) in scalings.items():
        if op.input.type.storage.bits <= 32 and s.low < s.high and not s.is_one and s.may_divide:
            different.setdefault(s.key, s)
    alike: dict[tuple[int, bool], list[_Scaling]] = defaultdict(list)
    for s in different.values():
        alike[s.high - s.low, s.double_round].append(s)
    climbs: dict[Hashable, _Climb] = {}
    for group in alike.values():
        parts = np.cumsum([s.multiplier.size for s in group]) // _TOGETHER
        for part in np.unique(parts):
            some = [s for s, at in zip(group, parts, strict=True) if at == part]
            climbs |= zip([s.key for s in some], _climbs(some, k), strict=True)
    return {op: (s, clamp, climbs.get(s.key)) for op, (s, clamp) in scalings.items()}


def _scaling(op: Rescale, k: Kernels) -> tuple[_Scaling, Clamp | None]:
    """The numbers of a RESCALE, and the clamp that is part of it."""
    low, high, clamp = result_range(op, k)
    least, most = input_range(op, k)
    double_round = op.rounding_mode == "DOUBLE_ROUND" and op.scale32
    multiplier, shift = op.multiplier.astype(np.int64), op.shift.astype(np.int64)
    return _Scaling(multiplier, shift, double_round, op.output_zp, low, high, least, most), clamp


def _climbs(scalings: list[_Scaling], k: Kernels) -> list[_Climb]:
    """The staircases and divisions of scalings that have as many levels and the same rounding."""
    multiplier, shift = (np.concatenate([getattr(s, name) for s in scalings]) for name in ("multiplier", "shift"))
    sizes = np.asarray([s.multiplier.size for s in scalings])
    bottom, least, most = (np.repeat([getattr(s, n) for s in scalings], sizes) for n in ("bottom", "least", "most"))
    count, double_round = scalings[0].high - scalings[0].low, scalings[0].double_round
    first, step, proven, *numbers = k.remembered(
        rescale_divisions, bottom, count, multiplier, shift, double_round, least, most, sizes
    )
    stairs = rescale_staircase(bottom, count, multiplier, shift, double_round=double_round, steps=(first, step))
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    divisions = [
        Division(*(v[part] for v in numbers)) if sure else None for sure, part in zip(proven, parts, strict=True)
    ]
    return list(zip(map(stairs.of, parts), divisions, strict=True))


def input_range(op: Rescale | RescaleF64, k: Kernels) -> tuple[int, int]:
    """Bounds of the operand less its zero point: those noted on the op (`input_range`), else those that follow."""
    zero = op.input_zp if isinstance(op, Rescale) else 0
    if op.input_range:
        return int(op.input_range[0]) - zero, int(op.input_range[1]) - zero
    least, most = k.ranges.of(op.input)
    widest = 1 << 47  # TOSA's widest accumulator; TFLite's int64 ones hold no more, unless that is noted
    return max(least, -widest) - zero, min(most, widest - 1) - zero


def result_range(op: Rescale | RescaleF64, k: Kernels) -> tuple[int, int, Clamp | None]:
    """Bounds of the result, and the clamp that sets them, if the only reader is a clamp."""
    storage = op.output.type.storage
    clamp = k.only_user(op.output, Clamp)
    if clamp is None:
        return storage.minimum, storage.maximum, None
    return clamp.min_val, clamp.max_val, clamp


def filled(k: Kernels, x: Value, value: int) -> Value:
    """A tensor of x's shape, whatever that is when the model runs, with one value, as a clamp to one number leaves
    it."""
    return k.add(k.mul(x, 0), value)


def _unscaled(k: Kernels, x: Value, s: _Scaling) -> Value | None:
    """A scale of 1: only other zero points and a clamp."""
    low, high = (np.asarray(v - s.output_zp) for v in (s.low, s.high))
    return clamped(k, x, low, high, s.least, s.most, s.output_zp) if s.is_one else None


# --- division


def _by_division(k: Kernels, x: Value, s: _Scaling, climb: _Climb | None) -> Value | None:
    """The division form, or None where it has no proof: the result in int32, zero point included."""
    if x.type.storage != i32 or climb is None:
        return None
    return divide(k, x, *climb, s.least, s.most, s.output_zp)


def divide(
    k: Kernels, x: Value, stairs: Staircase, fit: Division | None, least: int, most: int, output_zp: int
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
        fit = fit_division(stairs, first, last)
        if fit is None:
            return None
        x = clamped(k, x, first, last, least, most)
    numerator = k.mul(x, k.row(fit.a))
    if bottom > 0:  # everything below zero gives the least result
        numerator = k.add(numerator, k.row(fit.c), "RELU")
    else:
        numerator = k.add(numerator, k.mul(k.emit(Sign, [x]), k.row(fit.c)))
    y = k.div(numerator, k.row(fit.b))
    if not bounded:
        reach = int(np.ceil(max(-least, most) / float(stairs.step.min()))) + 1
        y_least = 0 if bottom > 0 else -reach
        return clamped(k, y, np.asarray(bottom - 1), np.asarray(top), y_least, reach, output_zp)
    return k.add(y, output_zp) if output_zp else y


def clamped(k: Kernels, x: Value, low: np.ndarray, high: np.ndarray, least: int, most: int, offset: int = 0) -> Value:
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


def _wide(k: Kernels, x: Value, s: _Scaling) -> Value:
    """The int64 form: x M + rounding, clamped where nothing overflows yet, and its high word.

    A shift of 32 or 48 is a word of the sum; a smaller one is made up to that by a factor, in the multiplier if there
    is room for it, else after the clamp; a larger one leaves a RIGHT_SHIFT.
    """
    lows, highs = s.low - s.output_zp, s.high - s.output_zp
    place = 48 if 32 < s.shift.max() <= 48 and highs - lows < 1 << 14 else 32
    room = np.maximum(place - s.shift, 0)
    twice = np.where(s.double_round & (s.shift > 31), 1 << 30, 0)
    widest = max(-s.least, s.most)
    reach = [widest * abs(int(m)) + int(r) for m, r in zip(s.multiplier, twice, strict=True)]
    bounds = (max(-lows, highs) + 2) << max(place, int(s.shift.max()))
    early = room if max(reach) << int(room.max()) < 1 << 61 and bounds < 1 << 61 else np.zeros_like(room)

    y = k.mul(k.cast(x, i64), k.row(s.multiplier << early, i64))
    if twice.any():
        y = k.add(y, k.mul(k.cast(k.emit(Sign, [x]), i64), k.row(twice << early, i64)))
    shift = s.shift + early
    y, base = _clamped_sum(k, y, shift, [v << int(e) for v, e in zip(reach, early, strict=True)], lows, highs, place)
    if (room > early).any():
        y = k.mul(y, k.row(np.int64(1) << (room - early), i64))
    word = k.cast(high_part(k, y, i16 if place == 48 else i32), i32)
    down = np.maximum(s.shift - place, 0)
    base = squeezed(base + s.output_zp)
    uniform = (down == down[0]).all() and base.ndim == 0
    if not uniform:
        word = restore(k, word, x.type.shape)
    if down.any():
        word = right_shift(k, word, k.row(down))
    if base.any():
        word = k.add(word, base)
    return restore(k, word, x.type.shape) if uniform else word


def _clamped_sum(
    k: Kernels, y: Value, shift: np.ndarray, reach: list[int], lows: int, highs: int, place: int
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


# --- what wraps


@lowering(RescaleI64)
def rescale_i64(op: RescaleI64, k: Kernels) -> Value:
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
def rounding_divide(op: RoundingDivideByPot, k: Kernels) -> Value:
    """(x + 2^(e-1) - [x < 0]) >> e, for int64: times 2^(32-e), of which the upper word is the quotient."""
    x, exponent, shape = k.value(op.input), op.exponent, op.output.type.shape
    negative = k.cast(k.greater(0, x), i64)
    scaled = k.mul(k.sub(x, negative), 1 << (32 - exponent))
    word = high_part(k, k.add(scaled, 1 << 31), i32)
    return restore(k, k.cast(word, op.output.type.storage), shape)


# ext.rescale_mean: the multiplier of a mean over a number of elements that is known when the model runs.
#
# SHAPE and GATHER read the sizes that may change, when an interpreter allocates; what follows is on a few numbers.
#
#     f      how many of 2, 4, 8 ... the count reaches
#     M      floor(multiplier 2^f / count), byte by byte from the top: each is how many of 1, 2 ... 255, times its place
#            and the count, the rest of the dividend reaches
#     e      f - shift if that is not negative, else the sums are multiplied by 2^(shift - f) first, within int32
#     result two high words: of 2 x M + 2^31, then of (y - [y < 0 and e > 0]) 2^(32 - e) + 2^31
#
# What depends only on f is an entry of a table. Source: QuantizedMeanOrSum, kernels/internal/reference/reduce.h.


_BYTES = (24, 16, 8, 0)
"""Places of the bytes of a multiplier, the highest first."""


@lowering(RescaleMean)
def rescale_mean(op: RescaleMean, k: Kernels) -> Value:
    """saturate(sums * M / 2^31 / 2^e + output_zp)."""
    to = op.output.type.storage
    x, values = k.value(op.sums), k.value(op.values)
    folded = np.arange(min(31, 32 + op.shift))
    count = _count(k, values, op.axes)
    f = _logarithm(k, count, folded.size)
    multiplier = _quotient(k, _entry(k, op.multiplier << folded, f), count)

    down = folded - op.shift
    if op.shift > 0:
        x = k.mul(x, k.gather(k.constant(np.left_shift(1, np.maximum(-down, 0))), f))
    down = np.maximum(down, 0)
    y = k.add(k.mul(k.cast(x, i64), k.add(multiplier, multiplier)), 1 << 31)
    y = k.cast(restore(k, high_part(k, y, i32), x.type.shape), i64)
    negative = k.mul(k.cast(k.greater(0, y), i64), _entry(k, down > 0, f))
    y = k.mul(k.sub(y, negative), _entry(k, np.left_shift(np.int64(1), 32 - down), f))
    y = restore(k, high_part(k, k.add(y, 1 << 31), i32), x.type.shape)
    low, high = (np.asarray(v - op.output_zp) for v in (to.minimum, to.maximum))
    return k.cast(clamped(k, y, low, high, -1 << 30, 1 << 30, op.output_zp), to)


def _count(k: Kernels, values: Value, axes: tuple[int, ...]) -> Value:
    """The number of elements along the axes. The first dim counts as one that may change."""
    dims = values.type.dims
    shape = k.emit(Shape, [values], TensorType((len(dims),), i32), out_type="INT32")
    count = None
    for axis in axes:
        if dims[axis] is None or axis == 0:
            size = k.gather(shape, k.constant(axis))
            count = size if count is None else k.mul(count, size)
    rest = int(np.prod([dims[axis] or 1 for axis in axes if axis], dtype=np.int64))
    if count is None:
        return k.constant(rest)
    return count if rest == 1 else k.mul(count, np.asarray(rest))


def _logarithm(k: Kernels, count: Value, entries: int) -> Value:
    """floor(log2(count)), at most entries - 1."""
    if entries == 1:
        return k.constant(0)
    return _reached(k, k.cast(count, i64), k.constant(np.left_shift(np.int64(1), np.arange(1, entries)), i64))


def _quotient(k: Kernels, dividend: Value, divisor: Value) -> Value:
    """floor(dividend / divisor), of at most 31 bits: int64."""
    divisor, quotient = k.cast(divisor, i64), None
    for place in _BYTES:
        steps = k.mul(divisor, np.arange(1, 128 if place == 24 else 256, dtype=np.int64) << place)
        digit = k.mul(k.cast(_reached(k, dividend, steps), i64), 1 << place)
        quotient = digit if quotient is None else k.add(quotient, digit)
        if place:
            dividend = k.sub(dividend, k.mul(digit, divisor))
    assert quotient is not None
    return quotient


def _reached(k: Kernels, x: Value, steps: Value) -> Value:
    """Number of the steps, in a row, that x reaches."""
    return k.reduce(Sum, k.cast(k.greater_equal(x, steps), i32), [0], keep_dims=False)


def _entry(k: Kernels, table: np.ndarray, index: Value) -> Value:
    return k.gather(k.constant(table, i64), index)


# ext.rescale_f64 is the requantization of FULLY_CONNECTED's reference kernels, in float64:
#
#     saturate(round_half_away(double(x - input_zp) * scale) + output_zp)        scale: float64 [1 or C], positive
#
# It becomes a division where that is proven, else a product of two limbs in int64, or, for sums of more than 31 bits
# and scales far apart, a product in limbs of both (`numerics.division_fit`). Source:
# kernels/internal/reference/integer_ops/fully_connected.h.


_THRESHOLDS_A_UNIT: Final = 20
"""A unit of `Searches`: 2^20 thresholds of a product by doubles."""


@lowering(RescaleF64)
def rescale_f64(op: RescaleF64, k: Kernels) -> Value:
    scale = np.atleast_1d(np.asarray(op.scale, np.float64))
    low, high, clamp = result_range(op, k)
    least, most = input_range(op, k)
    output_zp = op.output_zp
    x = k.value(op.input)
    if x.type.storage.bits < 32:
        x = k.cast(x, i32)
    y = filled(k, x, low) if low == high else None
    if y is None and x.type.storage == i32 and high - low <= 255 and low <= output_zp <= high:
        stairs, ones = float_staircase(low - output_zp + 1, high - low, scale), np.ones(scale.shape, np.int64)
        y = divide(k, x, stairs, fit_division(stairs, least * ones, most * ones), least, most, output_zp)
    if y is None:
        lows, highs = low - output_zp, high - output_zp
        y, (below, above) = _product(op, k, x, scale, (lows, highs), (least, most))
        y = clamped(k, y, np.asarray(lows), np.asarray(highs), below, above, output_zp)
    y = k.cast(y, op.output.type.storage)
    return k.fuse(clamp, y) if clamp else y


def _product(
    op: RescaleF64, k: Kernels, x: Value, scale: np.ndarray, levels: Range, bounds: Range
) -> tuple[Value, Range]:
    """The product in 64 bits, rounded, in int32, and its range: a step of x can pass several levels."""
    from tflq.numerics.division_fit import fit_long_product, fit_wide_product

    beyond = int(scale.max()) + 1 if scale.max() > 1 else 0
    units = (levels[1] - levels[0]) * scale.size >> _THRESHOLDS_A_UNIT
    fit = k.searched(units, fit_long_product, scale, *levels, *bounds)
    if fit is not None:
        return _long_product(k, x, fit, *bounds), (levels[0] - beyond, levels[1] + beyond)
    wide = fit_wide_product(scale, *levels, *bounds)
    if wide is None:
        what = f"64 bits do not hold the product with a scale of {float(scale.max())!r}"
        raise UnsupportedError(
            Reason.at(op.location, what, value=float(scale.max()), remedy="quantize it with a smaller scale")
        )
    reach = max(-levels[0], levels[1]) + beyond + 2
    return _wide_product(k, k.cast(x, i64), wide, *bounds), (-reach, reach)


def _long_product(k: Kernels, x: Value, fit: LongProduct, least: int, most: int) -> Value:
    """The two limbs; the result in int32."""
    x = clamped(k, k.cast(x, i64), fit.first, fit.last, least, most)
    below = k.mul(x, k.row(fit.low, i64))
    if fit.correction:
        sign = k.cast(k.emit(Sign, [k.cast(x, i32)], x.type.with_element(i32)), i64)  # SIGN has int32 only
        below = k.add(below, k.mul(sign, fit.correction))
    below = k.cast(restore(k, high_part(k, below, i32), x.type.shape), i64)
    total = k.add(k.add(k.mul(x, k.row(fit.high, i64)), below), 1 << (fit.shift - 1))
    return _right_shifted(k, total, fit.shift)


def _wide_product(k: Kernels, x: Value, fit: WideProduct, least: int, most: int) -> Value:
    """The limbs of both, the product's last place found in tables of its integer part; the result in int32."""
    from tflq.numerics.division_fit import LIMB, PART

    x = clamped(k, x, fit.first, fit.last, least, most)
    sign = k.minimum(k.maximum(x, -1), 1)
    x = k.mul(x, sign)
    if fit.left.any():
        x = k.mul(x, k.row(np.int64(1) << fit.left, i64))
    lower = k.emit(FloorMod, [x, k.constant(1 << LIMB, i64)])

    def shifted(x: Value) -> Value:
        """floor(x / 2^LIMB) of an int64 of 60 bits at most."""
        word = high_part(k, k.mul(x, 1 << (32 - LIMB)), i32)
        return k.cast(restore(k, word, x.type.shape), i64)

    upper = shifted(k.sub(x, lower))
    high, low = (k.row(limb, i64) for limb in (fit.high, fit.low))
    above, between = k.mul(upper, high), k.add(k.mul(upper, low), k.mul(lower, high))
    whole = _right_shifted(k, k.add(above, shifted(between)), fit.shift)
    entries = [k.constant(table, i64) for table in fit.halves]
    last = k.constant((1 << PART) - 1)
    half = k.add(
        k.gather(entries[0], k.minimum(whole, last)), k.gather(entries[1], right_shift(k, whole, k.constant(PART)))
    )
    between = k.add(between, shifted(k.add(k.mul(lower, low), half)))
    total = k.add(k.add(above, shifted(between)), 1 << (fit.shift - 1))
    return k.mul(_right_shifted(k, total, fit.shift), k.cast(sign, i32))


def _right_shifted(k: Kernels, total: Value, shift: int) -> Value:
    """floor(total / 2^shift), in int32."""
    shape = total.type.shape
    if shift < 32:
        total = k.mul(total, 1 << (32 - shift))
    word = high_part(k, total, i32)
    if shift > 32:
        word = k.right_shift(word, shift - 32)
    return restore(k, word, shape)
