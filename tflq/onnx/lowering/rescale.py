"""Requantization: a sum of products in the scale of the result, rounded as the kernels round, and saturated.

`requantized` is the one place that chooses how. `FORMS` are tried in turn; each answers None where it does not apply.
The last one applies always, in int64, which ONNX Runtime computes exactly:

    total = (x - zero) * M + 2^(s - 1)        with two roundings 2^30 more, or from -1 down 2^30 less
    y     = total >> s                        BITSHIFT of the total less the least that it can be, which is not negative

Sources: kernels/internal/common.cc (MultiplyByQuantizedMultiplier), TOSA 1.0 specification, RESCALE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from tflq.dialects.ext import RescaleF64, RescaleI64, RescaleMean, RoundingDivideByPot
from tflq.dialects.tosa.movement import Rescale
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, f32, f64, i32, i64, ui64
from tflq.numerics.convolution import divided_multiplier
from tflq.numerics.fixed_point import Multiplier
from tflq.onnx.lowering.casts import half_away
from tflq.onnx.lowering.context import Onnx, lowering, static
from tflq.onnx.lowering.held import Held

_TWO_47, _TWO_63 = 1 << 47, 1 << 63


class Scaling(NamedTuple):
    """A requantization of an operand: (x - zero_in) * multiplier / 2^shift, rounded, plus zero_out, saturated to [least,
    most]. multiplier, shift: int64 [1] or one for each index of the last dim. low, high: bounds of x - zero_in."""

    x: Value
    result: Value
    multiplier: np.ndarray
    shift: np.ndarray
    double_round: bool
    zero_in: int
    zero_out: int
    low: int
    high: int
    least: int
    most: int


By: TypeAlias = Callable[[Onnx, Scaling], "Held | None"]


@lowering(Rescale)
def rescale(op: Rescale, t: Onnx) -> Held:
    if op.rounding is not None:
        raise Refused(f"a rescaling that is rounded {op.rounding}")
    low, high = t.bounds(op.input)
    if op.input_range is not None:
        low, high = max(low, op.input_range[0] + op.input_zp), min(high, op.input_range[1] + op.input_zp)
    storage = op.output.type.storage
    scaling = Scaling(
        x=op.input,
        result=op.output,
        multiplier=op.multiplier.astype(np.int64),
        shift=op.shift.astype(np.int64),
        double_round=op.rounding_mode == "DOUBLE_ROUND" and op.scale32,
        zero_in=op.input_zp,
        zero_out=op.output_zp,
        low=low - op.input_zp,
        high=high - op.input_zp,
        least=storage.minimum,
        most=storage.maximum,
    )
    return requantized(t, scaling)


def requantized(t: Onnx, scaling: Scaling) -> Held:
    """The result of a requantization, by the first form that applies."""
    return next(made for form in FORMS if (made := form(t, scaling)) is not None)


def by_integers(t: Onnx, s: Scaling) -> Held:
    """In int64. What each channel's totals are raised by before the shift comes back with the zero point."""
    rank = len(s.result.type.shape or ())
    first = t.channels_first([s.x], rank)

    def row(numbers: np.ndarray, element: ScalarType = i64) -> Value:
        return channel_row(t, numbers, element, rank, first=first)

    x = t.operand(s.x, i64, rank, first=first, zero_point=s.zero_in)
    half, below = _halves(s)
    multiplier, shift = s.multiplier.astype(object), s.shift.astype(object)
    least = (max(s.low, -_TWO_47) * multiplier + np.minimum(half, below)) >> shift
    most = (min(s.high, _TWO_47) * multiplier + np.maximum(half, below)) >> shift
    up = row(_low_word(half - (least << shift)))
    if (below != half).any() and s.low < 0:
        up = t.where(t.below_zero(x), row(_low_word(below - (least << shift))), up)
    total = t.add(t.mul(x, row(s.multiplier)), up)
    shifted = t.bit_shift(t.cast(total, ui64), row(s.shift.astype(np.uint64), ui64), "RIGHT")
    narrow = max(map(abs, (*(most - least), *(least + s.zero_out), *(most + s.zero_out)))) < 1 << 31
    element = i32 if narrow else i64
    y = t.add(t.cast(shifted, element), row(_low_word(least + s.zero_out), element))
    if min(least) + s.zero_out < s.least or max(most) + s.zero_out > s.most:
        y = t.clip(y, s.least, s.most)
    return t.made(y, s.result, first=first)


def _halves(s: Scaling) -> tuple[np.ndarray, np.ndarray]:
    """What is added before the shift: from 0 up, and below."""
    half = (np.ones_like(s.shift) << s.shift) >> 1
    second = np.where((s.shift > 31) & s.double_round, 1 << 30, 0)
    return (half + second).astype(object), (half - second).astype(object)


def _low_word(numbers: np.ndarray) -> np.ndarray:
    """Integers of any size modulo 2^64, as int64."""
    return np.asarray([((int(n) + _TWO_63) % (2 * _TWO_63)) - _TWO_63 for n in numbers], np.int64)


def channel_row(t: Onnx, numbers: np.ndarray, element: ScalarType, rank: int, *, first: bool) -> Value:
    """A constant of one number, or of one for each channel."""
    row = np.atleast_1d(numbers)
    if (row == row[0]).all():
        return t.constant(row[0], element)
    return t.constant(row.reshape(-1, *(1,) * (rank - 2)) if first else row, element)


FORMS: Final[tuple[By, ...]] = (by_integers,)
"""How a requantization can be computed, the best one first."""


# The rescalings that TOSA lacks.


@lowering(RescaleF64)
def rescale_f64(op: RescaleF64, t: Onnx) -> Held:
    """saturate(round_half_away(double(x) * scale) + output_zp), in float64."""
    storage, rank = op.output.type.storage, len(op.output.type.shape or ())
    first = t.channels_first([op.input], rank)
    x = t.operand(op.input, i64 if op.input.type.storage == i64 else i32, rank, first=first)
    product = t.mul(t.cast(x, f64), channel_row(t, op.scale, f64, rank, first=first))
    low, high = storage.minimum - op.output_zp, storage.maximum - op.output_zp
    counts = t.cast(t.clip(half_away(t, product), low, high), f32)
    return t.made(counts, op.output, offset=op.output_zp, first=first)


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
    low, high = t.bounds(op.sums)
    row = np.asarray([mantissa], np.int64), np.asarray([31 - left], np.int64)
    return requantized(
        t, Scaling(op.sums, op.output, *row, True, 0, op.output_zp, low, high, storage.minimum, storage.maximum)
    )


@lowering(RoundingDivideByPot)
def rounding_divide(op: RoundingDivideByPot, t: Onnx) -> Held:
    """x / 2^exponent, half away from zero: with half of it added, less one below 0, and shifted."""
    x = t.integers(op.input, i64)
    if not op.exponent:
        return t.made(x, op.output)
    half = 1 << (op.exponent - 1)
    up = t.where(t.below_zero(x), t.constant(half - 1, i64), t.constant(half, i64))
    return t.made(t.cast(t.floor_shift(t.add(x, up), op.exponent), i32), op.output)
