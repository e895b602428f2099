"""Requantization: what it computes, limbs for what float32 and int32 do not hold, lines in float32, and which of
these is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias, TypeGuard

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.quant import RescaleF32, RescaleF64, RescaleFloat, RescaleI64, RescaleMean, RoundingDivideByPot
from tflq.dialects.tosa.elementwise import Clamp
from tflq.dialects.tosa.movement import Rescale
from tflq.formats.onnx.casts import half_away
from tflq.formats.onnx.context import EXACT, Onnx, OnnxTensor, channel_row, lowering, static
from tflq.formats.onnx.form_ops import OnnxOps
from tflq.formats.onnx.limbs import limbs_of, plus, product, shifted_right, split
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, f32, f64, i32, i64, ui64
from tflq.numerics.convolution import divided_multiplier
from tflq.numerics.fixed_point import Multiplier
from tflq.numerics.requantize.climb import climbs_of
from tflq.numerics.requantize.falling import Clipped
from tflq.numerics.requantize.float_forms import FloatForm, Prepare
from tflq.numerics.requantize.rounded import Rounded
from tflq.numerics.requantize.scaling import Bounds, Factor, FixedPoint, Float32, Float64, Range, Scaling
from tflq.numerics.requantize.split import Split

# What is computed, whatever computes it: numbers, and what is known of them.


MOST: Final = 1 << 47
"""Sums are within it: those of 64 bits stand for TOSA's, of 48."""


class Site(NamedTuple):
    """The operand of a requantization and its result, in the integer form."""

    x: Value
    result: Value


def scaling_of(t: Onnx, op: Rescale | RescaleFloat) -> Scaling[Factor]:
    """The scaling of an op, and of the CLAMP if only it reads the op. Bounds of x - zero_in are those of all channels
    or of each, one for each index of the last dim."""
    storage = op.output.type.storage
    zero_in = op.input_zp if isinstance(op, Rescale) else 0
    low, high = (v - zero_in for v in t.channel_bounds(op.input))
    if op.input_range is not None:
        low, high = np.maximum(low, op.input_range[0]), np.minimum(high, op.input_range[1])
    clamp = t.only_user(op.output, Clamp)
    least, most = (storage.minimum, storage.maximum) if clamp is None else (clamp.min_val, clamp.max_val)
    factor: Factor = op.factor
    if isinstance(factor, FixedPoint):
        multiplier, shift, double_round = factor.numbers
        shift = np.where(multiplier == 0, shift.max(initial=1, where=multiplier != 0), shift)  # the result is 0
        factor = FixedPoint(multiplier, shift, double_round)
    result = Range(max(least, storage.minimum), min(most, storage.maximum))
    return Scaling(factor, zero_in, op.output_zp, Bounds(np.minimum(low, high), high), result)


class _Rounded(NamedTuple):
    """Numbers of fixed point for each channel, as Python's integers.

    half: half a level. second: rounding twice adds it from 0 up, and subtracts it below. least, most: bounds of the
    level, before it is saturated.
    """

    half: np.ndarray
    second: np.ndarray
    least: np.ndarray
    most: np.ndarray

    @classmethod
    def of(cls, s: Scaling[FixedPoint]) -> _Rounded:
        multiplier, shift, double_round = s.factor.numbers
        second = np.where((shift > 31) & double_round, 1 << 30, 0).astype(object)
        half = np.asarray([1 << int(n) >> 1 for n in shift], object)
        low, high = s.accumulator.range
        wide, places = multiplier.astype(object), shift.astype(object)
        first = (max(low, -MOST) * wide + half - second) >> places
        last = (min(high, MOST) * wide + half + second) >> places
        return cls(half, second, np.minimum(first, last), np.maximum(first, last))

    def ends(self, zero_out: int) -> Range:
        """The least and the greatest result, before it is saturated."""
        return Range(int(min(self.least)) + zero_out, int(max(self.most)) + zero_out)

    def fit_int32(self, s: Scaling[FixedPoint]) -> bool:
        """Whether int32 holds the numbers, and the levels."""
        low, high = s.accumulator.range
        numbers = low + min(s.zero_in, 0), high + max(s.zero_in, 0)
        return all(-(1 << 31) < n < 1 << 31 for n in (*numbers, *self.ends(s.zero_out), *self.ends(0)))


# Products of limbs, on float32 and int32 alone.


_MOST_LIMBS: Final = 5
"""Of a multiplier: the shifts of its channels may differ by the bits that it has less."""

Row: TypeAlias = Callable[[np.ndarray], Value]


def is_fixed(s: Scaling[Factor]) -> TypeGuard[Scaling[FixedPoint]]:
    """Whether the factor has a multiplier and a shift."""
    return isinstance(s.factor, FixedPoint)


def by_limbs(t: Onnx, at: Site, s: Scaling[Factor]) -> OnnxTensor | None:
    """(x - zero_in) * multiplier, rounded and shifted; channels whose shifts are less have multipliers that are as much
    larger."""
    if not is_fixed(s) or not (numbers := _Rounded.of(s)).fit_int32(s):
        return None
    places = int(s.factor.shift.max())
    up = (places - s.factor.shift).astype(object)
    limbs = limbs_of(s.factor.multiplier.astype(object) << up)
    if len(limbs) > _MOST_LIMBS:
        return None
    layout = t.layout([at.x], at.result)

    def row(numbers: np.ndarray) -> Value:
        return channel_row(t, numbers, f32, layout)

    low, high = s.accumulator.range
    element = f32 if max(-low, high) < EXACT and t.is_exact(at.x) else i32
    x = t.operand(at.x, element, layout, s.zero_in)
    sums = product(t, split(t, x, low, high), [row(limb) for limb in limbs])
    sums = _rounded(t, sums, x, (numbers.half << up, numbers.second << up), row, signed=low < 0)
    y = shifted_right(t, sums, places)
    y = t.add(y, t.constant(s.zero_out, i32)) if s.zero_out else y
    least, most = numbers.ends(s.zero_out)
    y = t.clip(y, *s.result) if least < s.result.low or most > s.result.high else y
    return t.bind(y, at.result, first=layout.first).within(*s.result)


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


# Forms in float32 that are proven equal with MUL and ADD rounded separately or once, so that they are exact in every
# runtime that computes in float32.
#
#     SUB | a CONV's bias, CLIP, MUL, ADD, FLOOR                              `Clipped`
#     RELU of a CONV of the other sign, MUL, ADD, RELU, FLOOR                 `Falling`, for levels from 0 on
#     SUB, CLIP; MUL, FLOOR; MUL, SUB; MUL, ADD, MUL, ADD, FLOOR, ADD         `Split`
#
# ONNX Runtime and OpenVINO multiply a constant that follows a CONV into its weights. The CLIP or RELU stands between.


_LEVELS = 256
"""Levels of a result that are searched for lines."""
LINES: Final[tuple[type[FloatForm], ...]] = (Clipped, Split)
"""Forms in float32, the best one first."""


def by_lines(t: Onnx, at: Site, s: Scaling[Factor]) -> OnnxTensor | None:
    """The first form in float32 that is proven."""
    if not 0 < s.result.high - s.result.low < _LEVELS or not s.factor.rises:
        return None
    climbs = list(climbs_of(s))
    for form in LINES:
        for climb in climbs:
            fit = form.of_constants(t.remembered(form.constants, *climb[:5]))
            if fit is not None:
                return _emitted(t, at, s, fit)
    return None


def _emitted(t: Onnx, at: Site, s: Scaling[Factor], fit: FloatForm) -> OnnxTensor:
    layout = t.layout([at.x], at.result)
    ops = OnnxOps(t, layout)
    y, falling = None, fit.falling(s.levels.low)
    if falling is not None:
        x = _of_convolution(t, at, s, falling.prepare())
        y = None if x is None else falling.apply(t.relu(x), ops)
    if y is None:
        x = _of_convolution(t, at, s, fit.prepare())
        y = fit.apply_to_whole(t.operand(at.x, f32, layout, s.zero_in), ops) if x is None else fit.apply(x, ops)
    result = t.bind(y, at.result, offset=s.zero_out + fit.offset(s.levels.low), first=layout.first)
    result.low, result.high = s.result
    return result


def _of_convolution(t: Onnx, at: Site, s: Scaling[Factor], prepare: Prepare) -> Value | None:
    """The sum of a CONV with a bias and weights that prepare it; None if it is not one's."""
    again = t.tensor(at.x).again
    return None if again is None or s.zero_in else again(prepare.add, prepare.negate)


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
_NO_FORM: Final = "convert it to TFLite, or for another kernel set"

By: TypeAlias = "Callable[[Onnx, Site, Scaling[Factor]], OnnxTensor | None]"


@lowering(Rescale, RescaleF64, RescaleF32)
def rescale(op: Rescale | RescaleFloat, t: Onnx) -> OnnxTensor:
    if isinstance(op, Rescale) and op.rounding is not None:
        raise Refused(f"a rescaling that is rounded {op.rounding}")
    return requantized(t, Site(op.input, op.output), scaling_of(t, op))


def requantized(t: Onnx, at: Site, scaling: Scaling[Factor]) -> OnnxTensor:
    """The result of a requantization, by the first form that applies."""
    result = next((result for form in FORMS if (result := form(t, at, scaling)) is not None), None)
    if result is None:
        raise Refused("no form of a product and a sum in float32 is proven equal to it", _NO_FORM)
    return result


def by_integers(t: Onnx, at: Site, s: Scaling[Factor]) -> OnnxTensor | None:
    """In int64. By how many levels the totals are raised before the shift comes back with the zero point."""
    if not is_fixed(s):
        return None
    layout = t.layout([at.x], at.result)

    def row(numbers: np.ndarray, element: ScalarType = i64) -> Value:
        return channel_row(t, numbers, element, layout)

    x = t.operand(at.x, i64, layout, s.zero_in)
    numbers = _raised(s)
    places = row(s.factor.shift, ui64)
    total = t.add(t.mul(x, row(s.factor.multiplier)), _raise(t, s.factor.shift, numbers, row))
    if (numbers.second != 0).any() and s.accumulator.low.min() < 0:
        less = row(_low_word(-2 * numbers.second))
        total = t.add(total, t.where(t.below_zero(x), less, t.like(0, less)))
    shifted = t.bit_shift(t.cast(total, ui64), places, "RIGHT")
    least, most = numbers.least + s.zero_out, numbers.most + s.zero_out
    narrow = max(map(abs, (*(most - least), *least, *most))) < 1 << 31
    element = i32 if narrow else i64
    y = t.add(t.cast(shifted, element), row(_low_word(least), element))
    if min(least) < s.result.low or max(most) > s.result.high:
        y = t.clip(y, *s.result)
    return t.bind(y, at.result, first=layout.first).within(*s.result)


def _raised(s: Scaling[FixedPoint]) -> _Rounded:
    """Numbers with one `least` for all channels where 64 bits hold it."""
    numbers = _Rounded.of(s)
    least, most = numbers.least, numbers.most
    if (max(most) - min(least) + 1) << int(s.factor.shift.max()) < _TWO_63:
        return numbers._replace(least=np.full_like(least, min(least)))
    return numbers


def _raise(t: Onnx, shift: np.ndarray, numbers: _Rounded, row: Callable[..., Value]) -> Value:
    """Half a level, what rounding twice adds, and the levels that totals are raised by. Where these are the same for
    all channels, it is computed from the places when a runtime loads the file."""
    odd, places = 1 - 2 * numbers.least, shift.astype(object)
    second, several = numbers.second, (places != places[0]).any()
    if not several or (odd != odd[0]).any() or min(places) < 1 or (second != second[0]).any():
        return row(_low_word(numbers.half + second - (numbers.least << places)))
    bits = t.bit_shift(t.constant(_low_word(odd[:1])[0], ui64), row(shift - 1, ui64), "LEFT")
    return t.add(t.cast(bits, i64), t.constant(int(second[0]), i64))


def _low_word(numbers: np.ndarray) -> np.ndarray:
    """Integers of any size modulo 2^64, as int64."""
    return np.asarray([((int(n) + _TWO_63) % (2 * _TWO_63)) - _TWO_63 for n in numbers], np.int64)


def by_doubles(t: Onnx, at: Site, s: Scaling[Factor]) -> OnnxTensor | None:
    """round_half_away(double(x) * scale), in float64."""
    if not isinstance(s.factor, Float64):
        return None
    layout = t.layout([at.x], at.result)
    x = t.operand(at.x, i64 if at.x.type.storage == i64 else i32, layout)
    product = t.mul(t.cast(x, f64), channel_row(t, s.factor.scale, f64, layout))
    counts = t.clip(half_away(t, product), *s.levels)
    result = t.bind(t.cast(counts, f32), at.result, offset=s.zero_out, first=layout.first)
    return result.within(*s.result)


def by_rounding(t: Onnx, at: Site, s: Scaling[Factor]) -> OnnxTensor | None:
    """A factor in float32 as the kernel has it. A sum after the product is left to lines: runtimes may round both
    together."""
    if not isinstance(s.factor, Float32) or s.factor.after is not None:
        return None
    fit = Rounded.of(s)
    return None if fit is None else _emitted(t, at, s, fit)


FORMS: Final[tuple[By, ...]] = (by_rounding, by_lines, by_limbs, by_integers, by_doubles)
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
    factor = FixedPoint(np.asarray([mantissa], np.int64), np.asarray([31 - left], np.int64))
    result = Range(storage.minimum, storage.maximum)
    scaling = Scaling(factor, 0, op.output_zp, Bounds(*t.channel_bounds(op.sums)), result)
    return requantized(t, Site(op.sums, op.output), scaling)


@lowering(RoundingDivideByPot)
def rounding_divide(op: RoundingDivideByPot, t: Onnx) -> OnnxTensor:
    """x / 2^exponent, half away from zero: with half of it added, less one below 0, and shifted."""
    x = t.integers(op.input, i64)
    if not op.exponent:
        return t.bind(x, op.output)
    half = 1 << (op.exponent - 1)
    up = t.where(t.below_zero(x), t.constant(half - 1, i64), t.constant(half, i64))
    return t.bind(t.cast(t.floor_shift(t.add(x, up), op.exponent), i32), op.output)
