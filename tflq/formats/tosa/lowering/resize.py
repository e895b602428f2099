"""RESIZE where its scale is within TOSA's limits, else a weighted sum of elements that are GATHERed.

Also the rescalings of ext by a double and by powers of two.

    n <= 2048, d < 16 n, -n <= offset < 16 n, -16 n <= border < n; at level 8k n <= 256 d

for each of rows and columns, sampled at (o * d + offset) / n. Along a dim that has been sampled RESIZE takes each
element. RESIZE_BILINEAR of float32 is RESIZE by the ratio of the sizes; RESIZE_NEAREST_NEIGHBOR takes the elements that
the kernel finds, in its float32. Sources: TOSA 1.0 specification, RESIZE; kernels/resize_bilinear.cc,
kernels/resize_nearest_neighbor.cc; `tflq.numerics.convolution`.

FULLY_CONNECTED's requantization, round_half_away(double(acc) * scale), is

    RESCALE       of acc times an odd factor, proven equal at every level (`numerics.requantize.rescale_fit`)
    comparison    of |acc| with the threshold of a candidate (`numerics.requantize.threshold_line`), else

48-bit sums that are proven to fit int32 are brought there by RESCALE first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.quant import RescaleF32, RescaleF64, RescaleFloat, RoundingDivideByPot
from tflq.dialects.tfl.pooling import ResizeBilinear, ResizeNearestNeighbor
from tflq.dialects.tosa.convolution import Conv2D
from tflq.dialects.tosa.elementwise import Abs, BitwiseNot
from tflq.dialects.tosa.movement import Resize
from tflq.formats.tosa.lowering.context import Tosa, lowering, numbers_of, take
from tflq.formats.tosa.lowering.floats import need_float
from tflq.formats.tosa.lowering.rescale import constant_row, emit_rescale, limited, operand_range, saturated
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, f32, i8, i16, i32, i64
from tflq.numerics.convolution import exact_channel_bounds
from tflq.numerics.fixed_point import Multiplier
from tflq.numerics.requantize.rescale_fit import fit_rescale, saturation_bounds
from tflq.numerics.requantize.scaling import Factor, Float32, Float64
from tflq.numerics.requantize.threshold_line import ThresholdLine, fit_threshold_line
from tflq.numerics.resize import (
    Sampling,
    float_nearest_index,
    float_taps,
    is_copy,
    nearest_index,
    rational_steps,
    steps_of,
    taps,
    within_tosa,
)

_STILL = Sampling(1, 1, 0)
"""Each element as it is."""
_UNIT_48 = np.asarray([1 << 14], np.int64), np.asarray([14], np.int64)
"""Multiplier and shift of a RESCALE of 48 bits by 1."""


@lowering(Resize)
def resize(op: Resize, t: Tosa) -> Value:
    x, shape = t.value(op.input), op.result.type.dims
    steps, sizes, out = steps_of(op.scale, op.offset), _plane(x), _known(shape[1:3])
    if x.type.storage == i16:
        t.need("int16", "RESIZE of int16")
    if op.mode == "NEAREST_NEIGHBOR":
        for axis in (1, 2):
            if not _within(t, steps[axis - 1], sizes[axis - 1], out[axis - 1]):
                x = take(t, x, nearest_index(steps[axis - 1], sizes[axis - 1], out[axis - 1]), axis)
                steps = (_STILL, steps[1]) if axis == 1 else (steps[0], _STILL)
        return _resized(t, x, steps, out, op.mode)
    sums = _weighted(op, x, t)
    offset = t.offset(op.input) * steps[0].n * steps[1].n
    return t.add(sums, t.constant(np.full((1, 1, 1, 1), offset), i32)) if offset else sums


def divided(resized: Resize, exponent: int, t: Tosa) -> Value:
    """RESIZE of int16, whose weights add up to 2^exponent, divided by that and rounded half away from zero: int16.

    RESCALE rounds halves up. RESIZE of ~x makes -acc - 2^exponent, and the complement of that, divided, is acc with
    halves rounded down. The two differ for halves only, and then the upper one is right where it is positive.
    """
    source, scale = t.value(resized.input), resized.scale
    if source.type.storage != i16 or resized.mode != "BILINEAR" or scale[0] * scale[2] != 1 << exponent:
        raise Refused("the divisor of a RESIZE is not the sum of its weights")
    t.need("int16", "RESIZE of int16")
    quotient = Multiplier(1 << 30, 1 - exponent)
    up, down = (t.rescale(_weighted(resized, x, t), quotient, i32) for x in (source, t.emit(BitwiseNot, [source])))
    positive = t.greater(up, t.constant(np.zeros((1, 1, 1, 1)), i32))
    return t.cast(t.select(positive, up, t.emit(BitwiseNot, [down])), i16)


def _weighted(op: Resize, x: Value, t: Tosa) -> Value:
    """The weighted sums of x, of the operator's sizes."""
    steps = list(steps_of(op.scale, op.offset))
    out = _known(op.result.type.dims[1:3])
    for axis, (step, count) in enumerate(zip(steps, out, strict=True), 1):
        size = _plane(x)[axis - 1]
        if not _within(t, step, size, count) and is_copy(step, size, count) and step.n <= 2048:
            x, steps[axis - 1] = take(t, x, nearest_index(step, size, count), axis), Sampling(step.n, step.n, 0)
    if all(_within(t, s, size, o) for s, size, o in zip(steps, _plane(x), out, strict=True)):
        return _resized(t, x, steps, out, "BILINEAR")
    if x.type.storage == i16:
        raise Refused("RESIZE of int16 outside TOSA's limits, and no other operator adds 48 bits")
    sums = x if x.type.storage.is_float else t.cast(x, i32)
    for axis in (1, 2):
        sums = _interpolated(t, sums, steps[axis - 1], out[axis - 1], axis)
    return sums


@lowering(ResizeNearestNeighbor)
def resize_nearest(op: ResizeNearestNeighbor, t: Tosa) -> Value:
    """The elements at the kernel's positions."""
    x, out = t.value(op.input), _size(op)
    flags = op.align_corners, op.half_pixel_centers
    for axis, (size, count) in enumerate(zip(_plane(x), out, strict=True), 1):
        x = take(t, x, float_nearest_index(size, count, *flags), axis)
    return x


@lowering(ResizeBilinear)
def resize_bilinear(op: ResizeBilinear, t: Tosa) -> Value:
    """Of float32."""
    need_float(t, "RESIZE_BILINEAR")
    x, out = t.value(op.input), _size(op)
    if not x.type.storage.is_float:
        raise Refused(f"RESIZE_BILINEAR of plain {x.type.storage}")
    flags = op.align_corners, op.half_pixel_centers
    sizes = _plane(x)
    steps = [rational_steps(n, o, *flags) for n, o in zip(sizes, out, strict=True)]
    if all(_within(t, s, n, o) for s, n, o in zip(steps, sizes, out, strict=True)):
        return _resized(t, x, steps, out, "BILINEAR")
    for axis, (size, count) in enumerate(zip(sizes, out, strict=True), 1):
        lower, upper, fraction = float_taps(size, count, *flags)
        weight = fraction.reshape(-1, *(1,) * (3 - axis))
        x = _mixed(t, x, (lower, upper), (np.float32(1) - weight, weight), axis)
    return x


def _size(op: ResizeBilinear | ResizeNearestNeighbor) -> tuple[int, int]:
    """The height and width that are asked for."""
    return _known(numbers_of(op.size, "size of the result"))


def _known(dims: Sequence[int | None]) -> tuple[int, int]:
    height, width = dims
    if not height or not width:
        raise Refused("the height and width of the result are not known")
    return height, width


def _plane(x: Value) -> tuple[int, int]:
    """Height and width of a tensor of rank 4."""
    shape = x.type.shape
    if shape is None or len(shape) != 4 or not shape[1] or not shape[2]:
        raise Refused("the height and width of what is resized are not known")
    return shape[1], shape[2]


def _within(t: Tosa, steps: Sampling, size: int, out: int) -> bool:
    return within_tosa(steps, size, out, level=t.target.level != "none")


def _resized(t: Tosa, x: Value, steps: Sequence[Sampling], out: tuple[int, int], mode: str) -> Value:
    """RESIZE; no operator if it would take each element as it is."""
    rows, columns = steps
    height, width = _plane(x)
    if mode == "NEAREST_NEIGHBOR" and rows == columns == _STILL and out == (height, width):
        return x
    storage = x.type.storage
    if mode == "BILINEAR" and not storage.is_float:
        storage = i64 if storage == i16 else i32
    return t.emit(
        Resize,
        [x],
        storage,
        scale=(rows.n, rows.d, columns.n, columns.d),
        offset=(rows.offset, columns.offset),
        border=(rows.border(height, out[0]), columns.border(width, out[1])),
        mode=mode,
    )


def _interpolated(t: Tosa, x: Value, steps: Sampling, out: int, axis: int) -> Value:
    """x[lower] * (n - f) + x[upper] * f along a dim; of floats, divided by n."""
    size = x.type.dims[axis] or 0
    lower, upper, fraction = taps(steps, size, out)
    if is_copy(steps, size, out):
        fraction, upper = np.zeros_like(fraction), lower
    weights = np.stack([steps.n - fraction, fraction]).reshape(2, -1, *(1,) * (3 - axis))
    if x.type.storage.is_float:
        weights = weights / np.float32(steps.n)
    return _mixed(t, x, (lower, upper), (weights[0], weights[1]), axis)


def _mixed(
    t: Tosa, x: Value, index: tuple[np.ndarray, np.ndarray], weights: tuple[np.ndarray, np.ndarray], axis: int
) -> Value:
    """Two elements of a dim for each index, weighted and added; only of the first where all others weigh nothing."""
    terms = [
        t.mul(take(t, x, i, axis), t.constant(w[None] if w.ndim == 3 else w[None, None], x.type.storage))
        for i, w in zip(index, weights, strict=True)
        if w.any()
    ]
    return terms[0] if len(terms) == 1 else t.add(*terms)


# Rescalings by a double, and halves away from zero.

_I31 = (1 << 31) - 1


@lowering(RescaleF64, RescaleF32)
def rescale_float(op: RescaleFloat, t: Tosa) -> Value:
    """saturate(round_half_away(acc * scale) + output_zp). 48-bit sums have the shape of the matrix product."""
    scaled = _scaled(op, t)
    shape = op.result.type.shape
    return scaled if shape is None or scaled.type.shape == shape else t.reshape(scaled, shape)


def _scaled(op: RescaleFloat, t: Tosa) -> Value:
    to, zero = t.storage(op.result), t.zero_point(op.result, op.output_zp)
    factor: Factor = op.factor
    lows, highs = to.minimum - zero, to.maximum - zero
    least, most = operand_range(op.input, op.input_range, t)
    x = t.value(op.input)
    if x.type.storage == i64:
        bounds = _channels(op.input, least, most, t)
        x, scale, least, most = _coarse(x, factor.slope, bounds, (lows, highs), t)
        factor = Float64(scale)
    if to == i8 or float(factor.slope.max()) >= 0.5 or isinstance(factor, Float32):
        rescaled = _by_rescale(x, factor, lows, highs, least, most, t, to, zero)
        if rescaled is not None:
            return rescaled
    if isinstance(factor, Float64):
        return _by_comparison(x, factor.scale, max(-lows, highs), least, most, t, to, zero)
    if not isinstance(factor, Float32) or not t.target.has("pro_fp"):
        raise Refused(
            "no RESCALE is proven equal to a product in float32, and the target lacks the profile pro_fp",
            "convert it for another kernel set, or to TFLite or ONNX",
        )
    return _in_float32(x, factor, lows, highs, t, to, zero)


def _in_float32(x: Value, factor: Float32, lows: int, highs: int, t: Tosa, to: ScalarType, zero: int) -> Value:
    """CAST, MUL, CLAMP, CAST: as the kernel computes. CAST rounds to the nearest number, and halves to even."""
    number = t.cast(t.add(x, t.constant(factor.before)) if factor.before else x, f32)
    number = t.mul(number, t.constant(factor.scale[0] if factor.scale.size == 1 else factor.scale, f32))
    if factor.after is not None:
        number = t.add(number, t.constant(factor.after, f32))
    number = t.clamp(number, lows + factor.zero_out, highs + factor.zero_out)
    stored, offset = t.cast(number, i32), zero - factor.zero_out
    return t.cast(t.add(stored, t.constant(offset)) if offset else stored, to)


def _coarse(
    x: Value, scale: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], ends: tuple[int, int], t: Tosa
) -> tuple[Value, np.ndarray, int, int]:
    """A 48-bit sum in int32, without its last bits in channels where it does not fit, and the scale of that. bounds: of
    the sum, int64 [1 or C]. ends: of the result."""
    least, most = bounds
    spare = np.asarray([max(int(n).bit_length() - 31, 0) for n in np.maximum(-least - 1, most)])
    spare = spare[:1] if (spare == spare[0]).all() else spare
    near, far = least >> spare, np.minimum((most >> spare) + (spare > 0), _I31)
    after = scale * 2.0**spare
    if not _same_results(scale, after, spare, (least, most, near, far), ends):
        worst = spare.max()
        t.warn(
            f"the sum has up to {31 + worst + 1} bits; its last {worst} are rounded off before it is scaled, so a "
            "result near the middle between two can be one count off",
            "inexact",
            "allow for the difference, or convert it to TFLite or ONNX",
        )
    unit, shift = _UNIT_48
    narrow = emit_rescale(t, x, unit.repeat(spare.size), shift + spare, i32)
    return narrow, after, int(near.min()), int(far.max())


def _same_results(
    before: np.ndarray, after: np.ndarray, spare: np.ndarray, sums: tuple[np.ndarray, ...], ends: tuple[int, int]
) -> bool:
    """Whether bits that are left out change no result: these are all the same where there are some. sums: the ends of
    each channel's, with those bits and without."""
    rows = np.stack(np.broadcast_arrays(*sums))
    results = np.concatenate([Float64(before).apply(rows[:2]), Float64(after).apply(rows[2:])]).clip(*ends)
    return bool(((results == results[0]) | (spare == 0)).all())


def _channels(source: Value, least: int, most: int, t: Tosa) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of sums, int64 [1 or C]: of each channel where they exceed int32, and weights and bias are constant."""
    op, whole = source.producer, (np.asarray([least]), np.asarray([most]))
    if max(-least - 1, most) <= _I31 or not isinstance(op, Conv2D):
        return whole
    if not (op.weight.is_constant and op.bias.is_constant):
        return whole
    low, high = operand_range(op.input, None, t, op.input_zp)
    weights, bias = op.weight.array, op.bias.array
    return exact_channel_bounds(weights, (1, 2, 3), op.weight_zp, min(low, 0), max(high, 0), bias)


_THRESHOLDS_A_UNIT: Final = 18
"""A unit of `Searches`: 2^18 thresholds, each looked at for several multipliers."""
_LINE_A_UNIT: Final = 20
"""The same of a line, of which most are looked at once."""


def _by_rescale(
    x: Value,
    factor: Factor,
    lows: int,
    highs: int,
    least: int,
    most: int,
    t: Tosa,
    to: ScalarType,
    zero: int,
) -> Value | None:
    """RESCALE, after a factor if need be and, where that is not enough, after a clamp to the bounds beyond which all
    results are equal."""
    units = (highs - lows) * factor.slope.size >> _THRESHOLDS_A_UNIT
    fit = t.searched(units, fit_rescale, factor, lows, highs, least, most)
    if fit is None:
        low, high = saturation_bounds(factor, lows, highs)
        low, high = min(low, 0), max(high, 0)
        nearer = min(max(least, low), high), min(max(most, low), high)
        if nearer == (least, most):
            return None
        fit = t.searched(units, fit_rescale, factor, lows, highs, *nearer)
        if fit is None:
            return None
        x = limited(x, t, low if least < low else None, high if most > high else None)
    if (fit.factor != 1).any():
        x = t.mul(x, constant_row(t, fit.factor))
    return emit_rescale(t, x, fit.multiplier, fit.shift, to, output_zp=zero)


def _by_comparison(
    x: Value, scale: np.ndarray, last: int, least: int, most: int, t: Tosa, to: ScalarType, zero: int
) -> Value:
    """sign(x) (n + (|x| >= T(n + 1))), n from a RESCALE that is never above the result."""
    units = last * scale.size >> _LINE_A_UNIT
    reach = min(max(-least, most), _I31)
    line = t.searched(units, fit_threshold_line, scale, last, reach)
    if line is None and reach == _I31:  # no int32 is beyond it
        reach = _I31 - 1
        ends = Float64(scale).apply(np.asarray([[reach], [1 << 31]])).clip(0, last)
        if (ends[0] == ends[1]).all():
            line = t.searched(units, fit_threshold_line, scale, last, reach)
    if line is None:
        spent = "; searches for one would take longer than a file of this size may" if t.searched.is_spent else ""
        raise Refused(f"no integer form of a scale by a double is proven equal to it{spent}")
    x = limited(x, t, -reach if least < -reach else None, reach if most > reach else None)
    magnitude = t.emit(Abs, [x])
    n = emit_rescale(t, magnitude, line.multiplier, line.shift, i32)
    n = t.minimum(n, constant_row(t, line.last - 1))
    reached = t.cast(t.greater_equal(magnitude, _threshold(line, n, t)), i32)
    y = t.add(n, reached)
    zeros = t.constant(0)
    return saturated(t.select(t.greater(zeros, x), t.sub(zeros, y), y), t, to, zero, last)


def _threshold(line: ThresholdLine, n: Value, t: Tosa) -> Value:
    """T(n + 1)."""
    row = partial(constant_row, t)
    spread = t.mul(n, t.constant(1 << line.spread))
    low = t.mul(t.add(spread, row(line.rest_offset)), row(line.rest), shift=31 + line.spread)
    below = t.add(t.add(t.mul(n, row(line.part)), row(line.part_offset)), low)
    whole = t.add(t.mul(n, row(line.whole)), row(line.whole_offset))
    return t.add(whole, t.arithmetic_right_shift(below, constant_row(t, line.bits)))


@lowering(RoundingDivideByPot)
def rounding_divide_by_pot(op: RoundingDivideByPot, t: Tosa) -> Value:
    """x / 2^exponent of a 48-bit sum, halves away from zero: 1 is taken off negative sums, and halves go up. A RESIZE's
    sum that int32 does not hold is `divided`."""
    exponent, source = int(op.exponent), op.input.producer
    if exponent > 16:
        if source is not None and isinstance(source, Resize):
            return divided(source, exponent, t)
        raise Refused(f"a sum of {16 + exponent} bits, rounded away from zero, has no form in TOSA")
    x = t.value(op.input)
    if x.type.storage == i64:
        x = emit_rescale(t, x, *_UNIT_48, i32)
    if not exponent:
        return t.cast(x, i16)
    if exponent == 16:  # the least int32 has the result of the one after it
        x = limited(x, t, i32.minimum + 1, None)
    x = t.add(x, t.arithmetic_right_shift(x, t.constant(31)))
    y = t.arithmetic_right_shift(x, t.constant(exponent), round=True)
    return t.cast(y, op.result.type.storage)
