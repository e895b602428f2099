"""Requantization: a sum of products in the scale of the result, rounded as the kernels round, and saturated.

`requantized` is the one place that chooses how. `FORMS` are tried in turn; each answers None where it does not apply.
Lines in float32 (`tflq.onnx.lowering.lines`) and limbs
(`tflq.onnx.lowering.limbs`) are exact everywhere. Numbers beyond int32 are left to int64, which ONNX Runtime computes
exactly:

    total = (x - zero) * M + 2^(s - 1)        with two roundings 2^30 more, or from -1 down 2^30 less
    y     = total >> s                        BITSHIFT of the total less the least that it can be, which is not negative

Sources: kernels/internal/common.cc (MultiplyByQuantizedMultiplier), TOSA 1.0 specification, RESCALE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from tflq.dialects.ext import RescaleF64, RescaleI64, RescaleMean, RoundingDivideByPot
from tflq.dialects.tosa.movement import Rescale
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, f32, f64, i32, i64, ui64
from tflq.light import NamedTuple
from tflq.numerics.convolution import divided_multiplier
from tflq.numerics.fixed_point import Multiplier
from tflq.onnx.lowering.casts import half_away
from tflq.onnx.lowering.context import Onnx, lowering, static
from tflq.onnx.lowering.held import Held, channel_row
from tflq.onnx.lowering.limbs import by_limbs
from tflq.onnx.lowering.lines import by_lines
from tflq.onnx.lowering.scaling import Scaling, scaling_of

_TWO_63: Final = 1 << 63

By: TypeAlias = Callable[[Onnx, Scaling], "Held | None"]


@lowering(Rescale, RescaleF64)
def rescale(op: Rescale | RescaleF64, t: Onnx) -> Held:
    if isinstance(op, Rescale) and op.rounding is not None:
        raise Refused(f"a rescaling that is rounded {op.rounding}")
    return requantized(t, scaling_of(t, op))


def requantized(t: Onnx, scaling: Scaling) -> Held:
    """The result of a requantization, by the first form that applies."""
    return next(made for form in FORMS if (made := form(t, scaling)) is not None)


def by_integers(t: Onnx, s: Scaling) -> Held | None:
    """In int64. By how many levels the totals are raised before the shift comes back with the zero point."""
    if s.scale is not None:
        return None
    rank = len(s.result.type.shape or ())
    first = t.channels_first([s.x], rank)

    def row(numbers: np.ndarray, element: ScalarType = i64) -> Value:
        return channel_row(t, numbers, element, rank, first=first)

    x = t.operand(s.x, i64, rank, first=first, zero_point=s.zero_in)
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
    return _limited(t.made(y, s.result, first=first), s)


class _Levels(NamedTuple):
    """Of each channel, as Python's integers: what rounding twice adds from 0 up, and takes off below; the least and the
    greatest level that there can be; the same least one for all where 64 bits hold it."""

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


def _limited(held: Held, s: Scaling) -> Held:
    """The result, with its bounds."""
    held.low, held.high = max(held.low, s.least), min(held.high, s.most)
    return held


def by_doubles(t: Onnx, s: Scaling) -> Held | None:
    """round_half_away(double(x) * scale), in float64."""
    if s.scale is None:
        return None
    rank = len(s.result.type.shape or ())
    first = t.channels_first([s.x], rank)
    x = t.operand(s.x, i64 if s.x.type.storage == i64 else i32, rank, first=first)
    product = t.mul(t.cast(x, f64), channel_row(t, s.scale, f64, rank, first=first))
    counts = t.clip(half_away(t, product), s.least - s.zero_out, s.most - s.zero_out)
    return _limited(t.made(t.cast(counts, f32), s.result, offset=s.zero_out, first=first), s)


FORMS: Final[tuple[By, ...]] = (by_lines, by_limbs, by_integers, by_doubles)
"""How a requantization can be computed, the best one first."""


# The rescalings that TOSA lacks.


@lowering(RescaleI64)
def rescale_i64(op: RescaleI64, t: Onnx) -> Held:
    """The low 32 bits of (x * multiplier + 2^((shift - 1) mod 64)) >> shift, which wraps."""
    shift = op.shift.astype(np.int64)
    half = np.where(shift > 0, np.int64(1) << (np.maximum(shift, 1) - 1), np.iinfo(np.int64).min)
    rows = [v if v.size > 1 else v.reshape(()) for v in (op.multiplier.astype(np.int64), half, shift)]
    total = t.add(t.mul(t.integers(op.input, i64), t.constant(rows[0], i64)), t.constant(rows[1], i64))
    return t.made(t.cast(t.floor_shift(total, rows[2]), i32), op.output)


@lowering(RescaleMean)
def rescale_mean(op: RescaleMean, t: Onnx) -> Held:
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
def rounding_divide(op: RoundingDivideByPot, t: Onnx) -> Held:
    """x / 2^exponent, half away from zero: with half of it added, less one below 0, and shifted."""
    x = t.integers(op.input, i64)
    if not op.exponent:
        return t.made(x, op.output)
    half = 1 << (op.exponent - 1)
    up = t.where(t.below_zero(x), t.constant(half - 1, i64), t.constant(half, i64))
    return t.made(t.cast(t.floor_shift(t.add(x, up), op.exponent), i32), op.output)
