"""Conversions between integers and truth values, from and to floats, and of quantized tensors.

    integers                 narrowing wraps; uint8, less 128, changes its sign bit from or to the same bits of int8
    integer, bool → float    exact, or rounded to nearest by CAST (i32)
    tosa.cast to integers    rounded to nearest, saturated (CAST; half to even on the reference model)
    ext.truncate, tfl.cast   the integer part, saturated (kernels/cast.cc; NaN, the largest integer there, is 0)
    float → bool             whether it is not 0

TOSA casts no bool to a float, and no 48-bit integer to or from one; an int64 that is int32 here is cast as that.

quant.dcast and quant.qcast are the numbers of the DEQUANTIZE and QUANTIZE reference kernels:

    dcast    (q - zero_point) * scale, one rounding to float32: the difference is exact for up to 16 bits
    qcast    clamp(int32(round_half_away(x / scale)) + zero_point), the quotient in float32

TOSA has no division. Where the scale is a power of two, x * (1 / scale) is the quotient. Elsewhere the product is
within 2^-22 of it, relatively, so that only two neighbouring results, m and m + 1, remain, and a comparison of x with
the least float32 number that the kernel rounds to m + 1 decides (`numerics.float_thresholds`, looked up in a constant).
The product need only be right to a quarter of an integer; the comparison is exact.

A quotient beyond int32, or NaN, is the smallest int32 in the kernel, and adding the zero point wraps: such an x is
first replaced by one whose result is the same. Sources: kernels/internal/reference/dequantize.h, quantize.h.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.builder import float_difference, saturated_sum
from tflq.dialects.quant import Dcast, Qcast, Truncate
from tflq.dialects.tfl.casts import Bitcast, Dequantize
from tflq.dialects.tfl.casts import Cast as TflCast
from tflq.dialects.tosa.elementwise import Ceil, Clamp, Floor
from tflq.dialects.tosa.movement import Cast
from tflq.formats.tosa.lowering.context import Tosa, lowering, narrow, signed
from tflq.formats.tosa.lowering.floats import close_quotient, need_float, ratio, rounded_half_away, scalar
from tflq.formats.tosa.lowering.rescale import INTEGERS, UNIT, emit_rescale, plain, sign_changed
from tflq.ir.ops import Value, constant
from tflq.ir.types import ScalarType, f16, f32, i1, i8, i16, i32, i64, parameters, ui8
from tflq.numerics.fixed_point import Rounding
from tflq.numerics.float_basics import quantize_thresholds
from tflq.numerics.unary import distinct

_CASTS = (f32, f16, i8, ui8, i16, i32, i1)
"""The element types that floats are cast from and to."""
_LARGEST_TABLE = 1 << 20


@lowering(Cast, TflCast)
def cast(op: Cast | TflCast, t: Tosa) -> Value | Sequence[Value]:
    """Between integers and truth values; int64 is what it was widened from."""
    source, to = op.input, op.result.type.storage
    storage = source.type.storage
    if storage.is_float or to.is_float:
        return float_cast(op, t)
    if storage not in INTEGERS or to not in INTEGERS:
        raise Refused(f"TOSA has no cast between {storage} and {to}")
    if to == i64:
        return plain(source, t)
    if saturating := _saturating(source, to, t):
        return saturating
    x = narrow(source, t)
    if to == storage:
        return x
    if storage == ui8:
        return _from_uint8(x, to, t)
    return _to_uint8(x, source, t) if to == ui8 else t.cast(x, to)


@lowering(Bitcast)
def bits(op: Bitcast, t: Tosa) -> Value:
    """Between uint8 and int8."""
    source, to = op.input.type.storage, op.result.type.storage
    if {source, to} != {i8, ui8}:
        raise Refused(f"TOSA has no BITCAST of {source} to {to}")
    return sign_changed(t.value(op.input), t)


def _saturating(source: Value, to: ScalarType, t: Tosa) -> Value | None:
    """RESCALE by 1, which saturates, in the place of a CLAMP to the ends of the type."""
    op = source.producer
    if not isinstance(op, Clamp) or source.type.storage != i32 or to not in (i8, ui8, i16):
        return None
    low, high = t.ranges.of(op.input)
    if (op.min_val, op.max_val) != (to.minimum, to.maximum) or low < -(1 << 29) or high >= 1 << 29:
        return None
    return emit_rescale(t, t.value(op.input), *UNIT, signed(to), output_zp=-128 if to == ui8 else 0)


def _from_uint8(x: Value, to: ScalarType, t: Tosa) -> Value:
    if to in (i8, i1):
        return t.cast(sign_changed(x, t), to)
    return emit_rescale(t, x, *UNIT, to, input_zp=-128)


def _to_uint8(x: Value, source: Value, t: Tosa) -> Value:
    low, high = t.ranges.of(source)
    if x.type.storage in (i16, i32) and low >= 0 and high <= ui8.maximum:
        return emit_rescale(t, x, *UNIT, i8, output_zp=-128)
    return sign_changed(t.cast(x, i8), t)


@lowering(Dequantize)
def widened(op: Dequantize, t: Tosa) -> Value:
    """Half precision as float32; of a constant, a constant."""
    source = op.input
    if source.type.storage != f16 or op.result.type.storage != f32:
        raise Refused(f"DEQUANTIZE of {source.type.storage} to {op.result.type.storage} has no form")
    if source.is_constant:
        return constant(source.array.astype(np.float32))
    need_float(t, "DEQUANTIZE")
    return t.cast(t.value(source), f32)


@lowering(Truncate)
def float_cast(op: Truncate | Cast | TflCast, t: Tosa) -> Value:
    """tosa.cast, tfl.cast and ext.truncate from or to a float type."""
    need_float(t, "CAST")
    source, target = op.input, op.result
    x, to = narrow(source, t), target.type.storage
    if x.type.storage not in _CASTS or to not in _CASTS:
        raise Refused(f"TOSA has no cast between {source.type.storage} and {to}")
    if to.is_float:
        return _to_float(t, x, t.offset(source), target)
    if to is i1:
        return t.as_bool(x)
    if not isinstance(op, Cast):
        x = _whole(t, x)
    if to is not ui8:
        return t.cast(x, to)
    inside = t.cast(t.clamp(x, ui8.minimum, ui8.maximum), i32)
    return t.cast(t.sub(inside, t.constant(t.offset(target))), i8)


def _to_float(t: Tosa, x: Value, offset: int, target: Value) -> Value:
    storage = target.type.storage
    if x.type.storage is i1:
        return t.select(x, t.constant(1, storage), t.constant(0, storage))
    x = t.cast(x, storage)
    return t.add(x, scalar(t, offset, x)) if offset else x


def _whole(t: Tosa, x: Value) -> Value:
    """The integer part of a float, as a float."""
    negative = t.greater(scalar(t, 0, x), x)
    return t.select(negative, t.emit(Ceil, [x]), t.emit(Floor, [x]))


# quant.dcast and quant.qcast.


@lowering(Dcast)
def dequantize(op: Dcast, t: Tosa) -> Value:
    """The real values; of a constant, a constant."""
    source = op.input
    if op.result.type.storage != f32:
        raise Refused(f"dequantization to {op.result.type.storage} has no form")
    scale, zero = parameters(source.type)
    if source.is_constant:
        return constant(((source.array.astype(np.int64) - zero).astype(np.float32) * scale).astype(np.float32))
    need_float(t, "DEQUANTIZE")
    x, zero = t.value(source), zero - t.offset(source)
    if x.type.storage.bits <= 16:
        x = t.cast(x, f32)
        x = t.sub(x, t.constant(zero, f32)) if zero.any() else x
    elif zero.any():
        x = float_difference(t, x, t.arithmetic_right_shift(x, 16), zero)
    else:
        x = t.cast(x, f32)
    return t.mul(x, t.constant(scale, f32))


@lowering(Qcast)
def quantize(op: Qcast, t: Tosa) -> Value:
    """The stored integers of float values."""
    need_float(t, "QUANTIZE")
    target, storage = op.result, op.result.type.storage
    if op.input.type.storage != f32:
        raise Refused(f"quantization of {op.input.type.storage} has no form")
    if storage not in (i8, ui8, i16, i32):
        raise Refused(f"TOSA computes no tensor of {storage}")
    scale, zero = parameters(target.type)
    low, high = target.type.element.storage_min, target.type.element.storage_max  # type: ignore[union-attr]
    if np.signbit(scale).any():
        raise Refused(
            f"'{target.name}' has the scale {scale[np.signbit(scale)][0]}, of which TOSA has no quotient",
            "make it positive",
        )
    x = t.value(op.input)
    rounding = op.rounding or "half_even"
    if storage is i32 and rounding != "half_away":
        raise Refused("quantization to i32 rounds half_away only")
    if storage is i32:
        return saturated_sum(t, rounded_half_away(t, close_quotient(t, x, scale)), zero, low, high)
    x = _within_int32(t, x, scale, zero, rounding) if op.rounding else x
    powers = (np.frexp(scale)[0] == 0.5) & (scale >= 2.0**-126) & (scale <= 2.0**126)
    if rounding == "half_away" and powers.all():
        whole = rounded_half_away(t, t.mul(x, t.constant(1 / scale, f32)))
    elif _rows(scale, zero)[0].size * (high - low) > _LARGEST_TABLE:
        if rounding != "half_away":
            raise Refused(f"quantization with this many scales has no form that rounds {rounding}")
        t.note("QUANTIZE with this many scales may round a quotient that is within 2^-24 units of a tie the other way")
        whole = rounded_half_away(t, close_quotient(t, x, scale))
    else:
        index = _climbed(t, x, scale, zero, (low, high), rounding)
        return t.cast(t.add(index, t.constant(low - t.offset(target))), t.storage(target))
    offset = t.offset(target)
    return t.cast(_saturated(t, whole, zero - offset, (low - offset, high - offset)), t.storage(target))


def _within_int32(t: Tosa, x: Value, scale: np.ndarray, zero: np.ndarray, rounding: Rounding) -> Value:
    """x; where the kernel's sum wraps, and for NaN, an infinity with the same result.

    -2^31 + zero_point, wrapped, becomes the type's low end for a zero point from 0 up, and its high end below 0.
    """
    fill = t.constant(np.where(zero < 0, np.inf, -np.inf), f32)
    if (zero >= 0).any():
        top = np.where(zero >= 0, quantize_thresholds(scale, (1 << 31) - zero.astype(np.int64), rounding), np.inf)
        x = t.select(t.greater(t.constant(top, f32), x), x, fill)
    if (zero < 0).any():
        bottom = np.where(zero < 0, quantize_thresholds(scale, -(1 << 31) - zero.astype(np.int64), rounding), -np.inf)
        x = t.select(t.greater_equal(x, t.constant(bottom, f32)), x, fill)
    return x


def _climbed(
    t: Tosa, x: Value, scale: np.ndarray, zero: np.ndarray, bounds: tuple[int, int], rounding: Rounding
) -> Value:
    """The result less its least value, as i32: m from the product, and 1 if x reaches the threshold of m + 1."""
    low, high = bounds
    steps = high - low
    scales, zeros, row = _rows(scale, zero)
    thresholds = quantize_thresholds(scales[:, None], low - zeros[:, None] + np.arange(1, steps + 1), rounding)
    # the middle between two whole numbers, less a quarter at the ends: how CAST rounds ties does not matter
    y = t.sub(ratio(t, x, scale), t.constant(low - zero + 0.5, f32))
    if rounding == "toward_zero":  # from 0 up half a step above, below 0 half a step below
        up = t.greater_equal(x, t.constant(np.float32(0), f32))
        y = t.sub(y, t.select(up, t.constant(np.float32(0.5), f32), t.constant(np.float32(-0.5), f32)))
    index = t.cast(t.clamp(y, -0.25, steps - 0.75), i32)
    place = t.add(index, t.constant(row * steps)) if scales.size > 1 else index
    reached = t.greater_equal(x, t.lookup(constant(thresholds.reshape(-1)), place))
    return t.add(index, t.cast(reached, i32))


def _rows(scale: np.ndarray, zero: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct pairs of scale and zero point, and the number of the pair at each place."""
    scale, zero = np.broadcast_arrays(scale, zero)
    keys, row = distinct(scale.view(np.int32).astype(np.int64) << 32 | (zero.astype(np.int64) + (1 << 31)))
    return (keys >> 32).astype(np.int32).view(np.float32), (keys & 0xFFFFFFFF) - (1 << 31), row.reshape(scale.shape)


def _saturated(t: Tosa, whole: Value, zero: np.ndarray, bounds: tuple[int, int]) -> Value:
    """A whole float plus the zero point, as i32 within bounds; CAST itself saturates at those of i32."""
    if not zero.any() and bounds == (i32.minimum, i32.maximum):
        return t.cast(whole, i32)
    low, high = (_inwards(bound - zero.astype(np.int64), side) for bound, side in zip(bounds, (1, -1), strict=True))
    if (low == low.flat[0]).all() and (high == high.flat[0]).all():
        whole = t.clamp(whole, float(low.flat[0]), float(high.flat[0]))
    else:
        whole = t.minimum(t.maximum(whole, t.constant(low, f32)), t.constant(high, f32))
    return t.add(t.cast(whole, i32), t.constant(zero)) if zero.any() else t.cast(whole, i32)


def _inwards(bound: np.ndarray, side: int) -> np.ndarray:
    """The float32 nearest to a bound that is not beyond it; side 1 for a lower bound, -1 for an upper one."""
    near = bound.astype(np.float32)
    beyond = side * near.astype(np.float64) < side * bound
    return np.where(beyond, np.nextafter(near, np.float32(side * np.inf)), near)
