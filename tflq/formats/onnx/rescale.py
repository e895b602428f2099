"""Requantization: what it computes, limbs for what float32 and int32 do not hold, lines in float32, and which of
these is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.quant import RescaleF64, RescaleI64, RescaleMean, RoundingDivideByPot
from tflq.dialects.tosa.elementwise import Clamp
from tflq.dialects.tosa.movement import Rescale
from tflq.formats.onnx.builder import OnnxBuilder
from tflq.formats.onnx.casts import half_away
from tflq.formats.onnx.context import EXACT, Layout, Onnx, OnnxTensor, channel_row, lowering, static
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, f32, f64, i32, i64, ui64
from tflq.numerics.convolution import divided_multiplier
from tflq.numerics.fixed_point import Multiplier
from tflq.numerics.float_falling import (
    ClippedRequantization,
    SplitRequantization,
    clipped_arrays,
    of_split_arrays,
    split_arrays,
)
from tflq.numerics.staircase import float_thresholds, rescale_thresholds

# What is computed, whatever computes it: numbers, and what is known of them.


MOST: Final = 1 << 47
"""Sums are within it: those of 64 bits stand for TOSA's, of 48."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """(x - zero_in) * multiplier / 2^shift, rounded, or round_half_away(double(x) * scale) where there is a scale; plus
    zero_out, saturated to [least, most]. multiplier, shift: int64, scale: float64, [1] or one for each index of the
    last dim. low, high: bounds of x - zero_in, int64, of all channels or of each."""

    x: Value
    result: Value
    multiplier: np.ndarray
    shift: np.ndarray
    scale: np.ndarray | None
    double_round: bool
    zero_in: int
    zero_out: int
    low: np.ndarray
    high: np.ndarray
    least: int
    most: int

    @property
    def rises(self) -> bool:
        """Whether greater numbers give greater results."""
        factor = self.multiplier if self.scale is None else self.scale
        return bool((factor >= 0).all() if self.scale is None else (np.isfinite(factor) & (factor > 0)).all())

    @property
    def slope(self) -> np.ndarray:
        """Levels per unit, float64."""
        return np.ldexp(self.multiplier, -self.shift) if self.scale is None else self.scale

    @property
    def rounding(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers that rounding adds to products, as Python's integers.

        Half a level; and the number that rounding twice adds from 0 up, and subtracts below.
        """
        second = np.where((self.shift > 31) & self.double_round, 1 << 30, 0).astype(object)
        return np.asarray([1 << int(s) >> 1 for s in self.shift], object), second

    @property
    def levels(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest level of each channel that there can be, before they are saturated, as Python's
        integers."""
        multiplier, shift = self.multiplier.astype(object), self.shift.astype(object)
        half, second = self.rounding
        low = (max(int(self.low.min()), -MOST) * multiplier + half - second) >> shift
        high = (min(int(self.high.max()), MOST) * multiplier + half + second) >> shift
        return np.minimum(low, high), np.maximum(low, high)

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest result, before it is saturated."""
        least, most = self.levels
        return int(min(least)) + self.zero_out, int(max(most)) + self.zero_out

    @property
    def fits_int32(self) -> bool:
        """Whether int32 holds the numbers, and the levels."""
        numbers = int(self.low.min()) + min(self.zero_in, 0), int(self.high.max()) + max(self.zero_in, 0)
        return all(-(1 << 31) < n < 1 << 31 for n in (*numbers, *self.ends, *(e - self.zero_out for e in self.ends)))

    def thresholds(self, levels: np.ndarray) -> np.ndarray:
        """The least x - zero_in of each level, which is the result less zero_out: int64 [levels, channels]."""
        if self.scale is not None:
            return float_thresholds(levels, self.scale)
        return rescale_thresholds(levels, self.multiplier, self.shift, double_round=self.double_round)

    def channel_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """low and high, for each channel that has constants or bounds of its own."""
        count = max(self.low.size, self.slope.size)
        low, high = (np.broadcast_to(v, (count,)) for v in (self.low, self.high))
        return low, high


def scaling_of(t: Onnx, op: Rescale | RescaleF64) -> Scaling:
    """The scaling of an op, and of the CLAMP if only it reads the op."""
    storage = op.output.type.storage
    zero_in = op.input_zp if isinstance(op, Rescale) else 0
    low, high = (v - zero_in for v in t.channel_bounds(op.input))
    if op.input_range is not None:
        low, high = np.maximum(low, op.input_range[0]), np.minimum(high, op.input_range[1])
    clamp = t.only_user(op.output, Clamp)
    least, most = (storage.minimum, storage.maximum) if clamp is None else (clamp.min_val, clamp.max_val)
    multiplier, shift, double_round = np.zeros(1, np.int64), np.zeros(1, np.int64), False
    if isinstance(op, Rescale):
        multiplier, shift = op.multiplier.astype(np.int64), op.shift.astype(np.int64)
        shift = np.where(multiplier == 0, shift.max(initial=1, where=multiplier != 0), shift)  # the result is 0
        double_round = op.rounding_mode == "DOUBLE_ROUND" and op.scale32
    return Scaling(
        x=op.input,
        result=op.output,
        multiplier=multiplier,
        shift=shift,
        scale=np.atleast_1d(op.scale) if isinstance(op, RescaleF64) else None,
        double_round=double_round,
        zero_in=zero_in,
        zero_out=op.output_zp,
        low=np.minimum(low, high),
        high=high,
        least=max(least, storage.minimum),
        most=min(most, storage.maximum),
    )


# Products of more than 32 bits and shifts, on float32 and int32 alone, which every runtime computes exactly.
#
# A number is a sum of limbs of 11 bits, x = x0 + x1 2^11 + x2 2^22, each a whole number in float32; the last one has
# the sign. Products of two limbs have 22 bits, so float32 holds the sum of three, with a carry. FLOOR splits:
#
#     int32 into limbs   x2 = floor(float(x) / 2^22), of the rounded x; what is left is exact, and may be below 0
#     total >> s         floors, from limb to limb: floor((c0 + c1 2^11) / 2^22) = floor((c1 + floor(c0 / 2^11)) / 2^11)
#
# What is above the limb that s cuts is added in int32, where the result fits, whatever its parts do.


BITS: Final = 11
_BASE: Final = 1 << BITS
_MOST_LIMBS: Final = 5
"""Of a multiplier: the shifts of its channels may differ by the bits that it has less."""

Limbs: TypeAlias = "list[Value]"
Row: TypeAlias = Callable[[np.ndarray], Value]


def split(b: OnnxBuilder, x: Value, low: int, high: int) -> Limbs:
    """The limbs of whole numbers in float32 or int32, within bounds."""
    if x.type.storage == i32:
        top = b.floor(b.powered(b.cast(x, f32), 2 * BITS))
        rest = b.cast(b.sub(x, b.mul(b.cast(top, i32), b.constant(1 << 2 * BITS, i32))), f32)
        return [*_split(b, rest, 2), top]
    count = 1 + (high >= _BASE or low < -_BASE) + (high >= _BASE**2 or low < -(_BASE**2))
    return _split(b, x, count)


def _split(b: OnnxBuilder, x: Value, count: int) -> Limbs:
    limbs = []
    for _ in range(count - 1):
        up = b.floor(b.powered(x, BITS))
        limbs.append(b.sub(x, b.mul(up, b.like(_BASE, up))))
        x = up
    return [*limbs, x]


def limbs_of(numbers: np.ndarray) -> list[np.ndarray]:
    """The limbs of Python's integers [C], int64 each."""
    rest, limbs = numbers.astype(object), []
    while max(abs(int(n)) for n in rest) > _BASE:
        limbs.append((rest % _BASE).astype(np.int64))
        rest = rest // _BASE
    return [*limbs, rest.astype(np.int64)]


def product(b: OnnxBuilder, x: Limbs, y: Limbs) -> list[Value | None]:
    """The sums of products of limbs, by their weight."""
    sums: list[Value | None] = [None] * (len(x) + len(y) - 1)
    for i, a in enumerate(x):
        for j, c in enumerate(y):
            sums[i + j] = plus(b, sums[i + j], b.mul(a, c))
    return sums


def plus(b: OnnxBuilder, x: Value | None, y: Value | None) -> Value | None:
    if x is None or y is None:
        return x if y is None else y
    return b.add(x, y)


def shifted(b: OnnxBuilder, sums: Sequence[Value | None], places: int) -> Value:
    """The number of these limbs divided by 2^places, rounded down, in int32, which holds it."""
    cut, rest = divmod(places, BITS)
    below: Value | None = None
    for x in sums[:cut]:
        whole = plus(b, x, below)
        below = None if whole is None else b.floor(b.powered(whole, BITS))
    at = plus(b, sums[cut] if cut < len(sums) else None, below)
    total = None if at is None else b.cast(b.floor(b.powered(at, rest)) if rest else at, i32)
    for i, x in enumerate(sums[cut + 1 :], 1):
        if x is not None:
            factor = b.constant(np.int64(1) << (i * BITS - rest), i32)
            total = plus(b, total, b.mul(b.cast(x, i32), factor))
    return b.constant(0, i32) if total is None else total


# Shifts of int32. With x = a 2^16 + c, c from 0 up, x >> s = floor(a 2^(16 - s)) + floor(c / 2^s) for s from 0 to 31:
# the first term is whole where the second one is not 0.


def shift_right(b: OnnxBuilder, x: Value, places: Value) -> Value:
    """int32 by int32 places, rounded down."""
    down = b.gather(b.constant(np.ldexp(1.0, -np.arange(32)), f32), places)
    top = b.floor(b.powered(b.cast(x, f32), 16))
    rest = b.cast(b.sub(x, b.mul(b.cast(top, i32), b.constant(1 << 16, i32))), f32)
    more = b.floor(b.powered(rest, 16))  # where x was rounded
    top, rest = b.add(top, more), b.sub(rest, b.mul(more, b.like(1 << 16, more)))
    upper = b.floor(b.mul(b.mul(top, b.like(1 << 16, top)), down))
    return b.add(b.cast(upper, i32), b.cast(b.floor(b.mul(rest, down)), i32))


def shift_left(b: OnnxBuilder, x: Value, places: Value) -> Value:
    """int32 by int32 places; bits shifted out are lost: a product, which wraps."""
    powers = (np.int64(1) << np.arange(32, dtype=np.int64)).astype(np.int32)
    return b.mul(x, b.gather(b.constant(powers, i32), places))


# Requantization.


def by_limbs(t: Onnx, s: Scaling) -> OnnxTensor | None:
    """(x - zero_in) * multiplier, rounded and shifted; channels whose shifts are less have multipliers that are as much
    larger."""
    if s.scale is not None or not s.fits_int32:
        return None
    places = int(s.shift.max())
    up = (places - s.shift).astype(object)
    factor = s.multiplier.astype(object) << up
    if len(limbs_of(factor)) > _MOST_LIMBS:
        return None
    layout = t.layout([s.x], s.result)

    def row(numbers: np.ndarray) -> Value:
        return channel_row(t, numbers, f32, layout)

    low, high = int(s.low.min()), int(s.high.max())
    element = f32 if max(-low, high) < EXACT and t.is_exact(s.x) else i32
    x = t.operand(s.x, element, layout, s.zero_in)
    sums = product(t, split(t, x, low, high), [row(limb) for limb in limbs_of(factor)])
    half, second = s.rounding
    sums = _rounded(t, sums, x, (half << up, second << up), row, signed=low < 0)
    y = shifted(t, sums, places)
    y = t.add(y, t.constant(s.zero_out, i32)) if s.zero_out else y
    least, most = s.ends
    y = t.clip(y, s.least, s.most) if least < s.least or most > s.most else y
    return t.bind(y, s.result, first=layout.first).within(s.least, s.most)


def _rounded(
    t: Onnx, sums: list[Value | None], x: Value, added: tuple[np.ndarray, np.ndarray], row: Row, *, signed: bool
) -> list[Value | None]:
    """With half a level added, and what rounding twice adds from 0 up and takes off below."""
    half, second = added
    above = limbs_of(half + second)
    rows: list[Value | None] = [row(limb) if limb.any() else None for limb in above]
    if second.any() and signed:
        negative = t.cast(t.below_zero(x), f32)
        down = limbs_of(-2 * second)
        rows += [None] * (len(down) - len(rows))
        rows = [
            plus(t, v, t.mul(negative, row(down[i])) if i < len(down) and down[i].any() else None)
            for i, v in enumerate(rows)
        ]
    sums = sums + [None] * (len(rows) - len(sums))
    return [plus(t, v, rows[i] if i < len(rows) else None) for i, v in enumerate(sums)]


# Lines in float32, where they are proven equal with MUL and ADD rounded separately or once, so that they are exact in
# every runtime that computes in float32.
#
#     SUB | a CONV's bias, CLIP, MUL, ADD, FLOOR                              `tflq.numerics.float_falling`
#     RELU of a CONV of the other sign, MUL, ADD, RELU, FLOOR                 the same, for levels from 0 on
#     SUB, CLIP; MUL, FLOOR; MUL, SUB; MUL, ADD, MUL, ADD, FLOOR, ADD         `tflq.numerics.float_falling`
#
# ONNX Runtime and OpenVINO multiply a constant that follows a CONV into its weights. The CLIP or RELU stands between.


_LEVELS = 256
"""Levels of a result that are searched for lines."""


def by_lines(t: Onnx, s: Scaling) -> OnnxTensor | None:
    """A line that is clipped, or else one in two steps."""
    if not 0 < s.most - s.least < _LEVELS or not s.rises:
        return None
    thresholds, slope = s.thresholds(np.arange(s.least - s.zero_out + 1, s.most - s.zero_out + 1)), s.slope
    low, high = s.channel_bounds()
    ranges = [(low.min(keepdims=True), high.max(keepdims=True))] if slope.size == 1 else []
    if low.size > 1 or not ranges:
        ranges.append((low, high))
    bottom = s.least - s.zero_out
    for fit in (clipped_arrays, split_arrays):
        for bounds in ranges:
            rows = [np.broadcast_to(v, (*v.shape[:-1], bounds[0].size)) for v in (thresholds, slope)]
            arrays = t.remembered(fit, *rows, *bounds, bottom)
            if arrays:
                return _emitted(t, s, arrays, clipped=fit is clipped_arrays)
    return None


def _emitted(t: Onnx, s: Scaling, arrays: tuple[np.ndarray, ...], *, clipped: bool) -> OnnxTensor:
    layout = t.layout([s.x], s.result)
    lines = Lines(t, layout)
    if not clipped:
        split = of_split_arrays(arrays)
        y = lines.split(_less(t, s, split.h, lines), split)
    else:
        line = ClippedRequantization(*arrays)
        falling = _falling(t, s, line.h) if s.least == s.zero_out else None
        y = lines.clipped(_less(t, s, line.h, lines), line) if falling is None else lines.fallen(falling, line)
    result = t.bind(y, s.result, offset=s.zero_out, first=layout.first)
    result.low, result.high = s.least, s.most
    return result


def _less(t: Onnx, s: Scaling, h: np.ndarray, lines: Lines) -> Value:
    """x - zero_in - h: of a CONV in its bias."""
    tensor = t.tensor(s.x)
    again = None if tensor.again is None or s.zero_in else tensor.again(-h, False)
    if again is not None:
        return again
    x = t.operand(s.x, f32, lines.layout, s.zero_in)
    return t.sub(x, lines.row(h)) if h.any() else x


def _falling(t: Onnx, s: Scaling, h: np.ndarray) -> Value | None:
    """relu(h - x) of a CONV, which has weights of the other sign and h in its bias."""
    again = t.tensor(s.x).again
    x = None if again is None or s.zero_in else again(h, True)
    return None if x is None else t.relu(x)


class Lines(NamedTuple):
    """Lines as operators, of tensors of a layout."""

    t: Onnx
    layout: Layout = Layout()

    def row(self, numbers: np.ndarray) -> Value:
        return channel_row(self.t, numbers, f32, self.layout)

    def clip(self, x: Value, low: np.ndarray, high: np.ndarray) -> Value:
        """CLIP; MAX and MIN where the ends differ by channel."""
        if low.size and (low == low[0]).all() and (high == high[0]).all():
            return self.t.clip(x, float(low[0]), float(high[0]))
        return self.t.minimum(self.t.maximum(x, self.row(low)), self.row(high))

    def less(self, x: Value, fit: ClippedRequantization | SplitRequantization) -> Value:
        """The line of x, which its h is taken off."""
        u = self.t.sub(x, self.row(fit.h)) if fit.h.any() else x
        return self.clipped(u, fit) if isinstance(fit, ClippedRequantization) else self.split(u, fit)

    def clipped(self, x: Value, fit: ClippedRequantization) -> Value:
        """floor(clip(x - h, -span, 0) * m + c) of x - h."""
        t = self.t
        u = self.clip(x, -fit.span, np.zeros_like(fit.span))
        return t.floor(t.add(t.mul(u, self.row(fit.m)), self.row(fit.c)))

    def fallen(self, u: Value, fit: ClippedRequantization) -> Value:
        """floor(relu(c - u * m)) of u = relu(h - x)."""
        t = self.t
        return t.floor(t.relu(t.add(t.mul(u, self.row(-fit.m)), self.row(fit.c))))

    def split(self, x: Value, fit: SplitRequantization) -> Value:
        """n + floor((u - n S) m + (n d + c)) of u = clip(x - h) and n = floor(u p)."""
        t = self.t
        u = self.clip(x, fit.low, fit.high)
        n = t.floor(t.mul(u, self.row(fit.p)))
        rest = self.row(fit.c)
        if fit.e is not None:
            rest = t.add(t.mul(t.clip(n, 0, 1), self.row(fit.e)), rest)
        rest = t.add(t.mul(n, self.row(fit.d)), rest)
        r = t.sub(u, t.mul(n, self.row(fit.step)))
        return t.add(n, t.floor(t.add(t.mul(r, self.row(fit.m)), rest)))


# The choice: a sum of products in the scale of the result, rounded as the kernels round, and saturated.
#
# `requantized` is the one place that chooses how. `FORMS` are tried in turn; each answers None where it does not
# apply. Lines and limbs are exact everywhere. Numbers beyond int32 are left to int64, which ONNX Runtime computes
# exactly:
#
#     total = (x - zero) * M + 2^(s - 1)        with two roundings 2^30 more, or from -1 down 2^30 less
#     y     = total >> s                        BITSHIFT of the total less the least that it can be, so not negative
#
# Sources: kernels/internal/common.cc (MultiplyByQuantizedMultiplier), TOSA 1.0 specification, RESCALE.


_TWO_63: Final = 1 << 63

By: TypeAlias = Callable[[Onnx, Scaling], "OnnxTensor | None"]


@lowering(Rescale, RescaleF64)
def rescale(op: Rescale | RescaleF64, t: Onnx) -> OnnxTensor:
    if isinstance(op, Rescale) and op.rounding is not None:
        raise Refused(f"a rescaling that is rounded {op.rounding}")
    return requantized(t, scaling_of(t, op))


def requantized(t: Onnx, scaling: Scaling) -> OnnxTensor:
    """The result of a requantization, by the first form that applies."""
    return next(result for form in FORMS if (result := form(t, scaling)) is not None)


def by_integers(t: Onnx, s: Scaling) -> OnnxTensor | None:
    """In int64. By how many levels the totals are raised before the shift comes back with the zero point."""
    if s.scale is not None:
        return None
    layout = t.layout([s.x], s.result)

    def row(numbers: np.ndarray, element: ScalarType = i64) -> Value:
        return channel_row(t, numbers, element, layout)

    x = t.operand(s.x, i64, layout, s.zero_in)
    levels = _Levels.of(s)
    places = row(s.shift, ui64)
    total = t.add(t.mul(x, row(s.multiplier)), _raise(t, s, levels, row))
    if (levels.second != 0).any() and s.low.min() < 0:
        less = row(_low_word(-2 * levels.second))
        total = t.add(total, t.where(t.below_zero(x), less, t.like(0, less)))
    shifted = t.bit_shift(t.cast(total, ui64), places, "RIGHT")
    least, most = levels.least + s.zero_out, levels.most + s.zero_out
    narrow = max(map(abs, (*(most - least), *least, *most))) < 1 << 31
    element = i32 if narrow else i64
    y = t.add(t.cast(shifted, element), row(_low_word(least), element))
    if min(least) < s.least or max(most) > s.most:
        y = t.clip(y, s.least, s.most)
    return t.bind(y, s.result, first=layout.first).within(s.least, s.most)


class _Levels(NamedTuple):
    """Numbers of each channel, as Python's integers.

    second: rounding twice adds it from 0 up, and subtracts it below. least, most: bounds of the level; one `least` for
    all channels where 64 bits hold it.
    """

    second: np.ndarray
    least: np.ndarray
    most: np.ndarray

    @classmethod
    def of(cls, s: Scaling) -> _Levels:
        (_, second), (least, most) = s.rounding, s.levels
        if (max(most) - min(least) + 1) << int(s.shift.max()) < _TWO_63:
            least = np.full_like(least, min(least))
        return cls(second, least, most)


def _raise(t: Onnx, s: Scaling, levels: _Levels, row: Callable[..., Value]) -> Value:
    """Half a level, what rounding twice adds, and the levels that totals are raised by. Where these are the same for
    all channels, it is computed from the places when a runtime loads the file."""
    odd, shift = 1 - 2 * levels.least, s.shift.astype(object)
    several = (shift != shift[0]).any()
    if not several or (odd != odd[0]).any() or min(shift) < 1 or (levels.second != levels.second[0]).any():
        return row(_low_word(s.rounding[0] + levels.second - (levels.least << shift)))
    bits = t.bit_shift(t.constant(_low_word(odd[:1])[0], ui64), row(s.shift - 1, ui64), "LEFT")
    return t.add(t.cast(bits, i64), t.constant(int(levels.second[0]), i64))


def _low_word(numbers: np.ndarray) -> np.ndarray:
    """Integers of any size modulo 2^64, as int64."""
    return np.asarray([((int(n) + _TWO_63) % (2 * _TWO_63)) - _TWO_63 for n in numbers], np.int64)


def by_doubles(t: Onnx, s: Scaling) -> OnnxTensor | None:
    """round_half_away(double(x) * scale), in float64."""
    if s.scale is None:
        return None
    layout = t.layout([s.x], s.result)
    x = t.operand(s.x, i64 if s.x.type.storage == i64 else i32, layout)
    product = t.mul(t.cast(x, f64), channel_row(t, s.scale, f64, layout))
    counts = t.clip(half_away(t, product), s.least - s.zero_out, s.most - s.zero_out)
    result = t.bind(t.cast(counts, f32), s.result, offset=s.zero_out, first=layout.first)
    return result.within(s.least, s.most)


FORMS: Final[tuple[By, ...]] = (by_lines, by_limbs, by_integers, by_doubles)
"""The forms of a requantization, the best one first."""


# The rescalings that TOSA lacks.


@lowering(RescaleI64)
def rescale_i64(op: RescaleI64, t: Onnx) -> OnnxTensor:
    """The low 32 bits of (x * multiplier + 2^((shift - 1) mod 64)) >> shift, which wraps."""
    shift = op.shift.astype(np.int64)
    half = np.where(shift > 0, np.int64(1) << (np.maximum(shift, 1) - 1), np.iinfo(np.int64).min)
    rows = [v if v.size > 1 else v.reshape(()) for v in (op.multiplier.astype(np.int64), half, shift)]
    total = t.add(t.mul(t.integers(op.input, i64), t.constant(rows[0], i64)), t.constant(rows[1], i64))
    return t.bind(t.cast(t.floor_shift(total, rows[2]), i32), op.output)


@lowering(RescaleMean)
def rescale_mean(op: RescaleMean, t: Onnx) -> OnnxTensor:
    """The number of elements is known, so this is a multiplication by one multiplier, which rounds twice."""
    shape = static(op.values.type.shape)
    count = int(np.prod([shape[axis] for axis in op.axes]))
    mantissa, left = divided_multiplier(Multiplier(op.multiplier, op.shift), count)
    if left > 0:
        raise Refused("a mean whose multiplier is 1 or more")
    storage = op.output.type.storage
    low, high = t.channel_bounds(op.sums)
    row = np.asarray([mantissa], np.int64), np.asarray([31 - left], np.int64)
    ends = storage.minimum, storage.maximum
    return requantized(t, Scaling(op.sums, op.output, *row, None, True, 0, op.output_zp, low, high, *ends))


@lowering(RoundingDivideByPot)
def rounding_divide(op: RoundingDivideByPot, t: Onnx) -> OnnxTensor:
    """x / 2^exponent, half away from zero: with half of it added, less one below 0, and shifted."""
    x = t.integers(op.input, i64)
    if not op.exponent:
        return t.bind(x, op.output)
    half = 1 << (op.exponent - 1)
    up = t.where(t.below_zero(x), t.constant(half - 1, i64), t.constant(half, i64))
    return t.bind(t.cast(t.floor_shift(t.add(x, up), op.exponent), i32), op.output)
