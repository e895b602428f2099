"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR, which resize stored integers, whatever their parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.dialects.quant import RoundingDivideByPot
from tflq.dialects.tfl import pooling as tfl
from tflq.dialects.tfl.arithmetic import Add, Mul
from tflq.dialects.tfl.pooling import ResizeBilinear, ResizeNearestNeighbor
from tflq.dialects.tosa.movement import Resize
from tflq.ir.ops import Value
from tflq.ir.types import TensorType, f32, i8, i16, i32, i64, ui8
from tflq.legalize.probing import gather_along
from tflq.legalize.rescaled import element, line, shape_of
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.reference import FixedTaps
from tflq.numerics.resize import (
    Sampling,
    float_taps,
    integer_steps,
    is_copy,
    nearest_steps,
    rational_steps,
    uint8_is_rational,
)
from tflq.numerics.resize import taps as taps_of

# RESIZE_BILINEAR of int8 and int16 where sizes are known only when the model runs, by the kernel's arithmetic.
#
#     scale   (1024 size + out / 2) / out; with corners aligned and out > 1:
#             (1024 (size - 1) + (out - 1) / 2) / (out - 1)
#     p       o scale (+ scale / 2 - 512 with half pixel centers), for each output o
#     result  ((x[y0] (1024 - fy) + x[y1] fy)[x0] (1024 - fx) + (...)[x1] fx) / 2^20, rounded half away from zero;
#             lower = max(p >> 10, 0), upper = min((p + 1023) >> 10, size - 1), f = p - 1024 lower
#
# RANGE counts the outputs, from the size that the operator is given, so the result is as static as the original's.
# Where scale is rounded up so far that the kernel reads beyond the last element (outputs of more than 1024), the last
# is taken. Source: ResizeBilinearInteger, kernels/internal/reference/resize_bilinear.h.


@dataclass(frozen=True, slots=True)
class _Taps:
    """The two indices of each output, and how much the upper one weighs, in 1/1024: i32 [out]."""

    lower: Value
    upper: Value
    weight: Value


def _weighted_sums(op: ResizeBilinear, b: RuleBuilder) -> Value:
    """x [N, H, W, C] resized to `size` (i32 [2]): 2^20 times the result, i32 for int8 and i64 for int16."""
    x, size = b.value(op.input), b.value(op.size)
    shape, flags = shape_of(b, x, 4), (op.align_corners, op.half_pixel_centers)
    rows, columns = (_taps(b, element(b, shape, axis + 1), element(b, size, axis), *flags) for axis in range(2))
    tall = _interpolated(b, b.cast(x, i32), rows, 1)
    return _interpolated(b, b.cast(tall, i64) if x.type.storage == i16 else tall, columns, 2)


def _taps(b: RuleBuilder, size: Value, out: Value, align_corners: bool, half_pixel_centers: bool) -> _Taps:
    scale = _ratio(b, size, out)
    if align_corners:
        aligned = _ratio(b, b.sub(size, 1), b.maximum(b.sub(out, 1), 1))
        scale = b.select(b.greater(out, 1), aligned, scale)
    position = b.mul(line(b, out), scale)
    if half_pixel_centers:
        position = b.add(position, b.sub(_half(b, scale), 512))
    last = b.sub(size, 1)
    lower = b.minimum(b.maximum(b.arithmetic_right_shift(position, 10), 0), last)
    upper = b.minimum(b.arithmetic_right_shift(b.add(position, 1023), 10), last)
    return _Taps(lower, upper, b.sub(position, b.mul(lower, 1024)))


def _ratio(b: RuleBuilder, size: Value, out: Value) -> Value:
    """size / out in 1/1024, rounded to nearest."""
    return b.int_div(b.add(b.mul(size, 1024), _half(b, out)), out)


def _interpolated(b: RuleBuilder, x: Value, taps: _Taps, axis: int) -> Value:
    """Both elements of each output along an axis, weighted, and added."""
    count = (taps.weight.type.shape or (None,))[0]
    upper = b.cast(b.reshape(taps.weight, (count, *(1,) * (3 - axis))), x.type.storage)
    lower = b.sub(1024, upper)
    pairs = (taps.lower, lower), (taps.upper, upper)
    return b.add(*(b.mul(gather_along(b, x, index, axis), weight) for index, weight in pairs))


def _half(b: RuleBuilder, x: Value) -> Value:
    """Half of a number that is not negative."""
    return b.arithmetic_right_shift(x, 1)


# RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR, which work on stored integers and ignore scales and zero points.
#
#     int8, int16   RESIZE in steps of 1/1024, divided by 2^20 and rounded half away from zero
#     uint8         a (1 - fy) (1 - fx) + b fy (1 - fx) + c (1 - fy) fx + d fy fx + 0.5 in float32, truncated;
#                   in integers where that is proven to be RESIZE by the ratio of the sizes, divided and rounded
#     nearest       one element
#
# Sources: kernels/resize_bilinear.cc, kernels/resize_nearest_neighbor.cc; the arithmetic is in
# `tflq.numerics.convolution`.


_MOST_POSITIONS = 1 << 16
"""Rows or columns of a result whose places are looked at one by one."""
_RESIZE_RAW = "the kernel resizes the stored integers, though source and result have different quantization parameters"
_FLOAT = "computed in float32 as the kernel does: at these sizes no integer form is proven equal"


@rule(ResizeBilinear)
def resize_bilinear(op: ResizeBilinear, b: RuleBuilder) -> Answer:
    """result = the four elements around each position, weighted."""
    x, size = op.input, op.size
    height, width = _plane(op)
    if not size.is_constant or height is None or width is None:
        return _of_any_size(op, b)
    flags = op.align_corners, op.half_pixel_centers
    source, out = (height, width), (int(size.array[0]), int(size.array[1]))
    if min(source) < 1 or min(out) < 1:
        raise NotApplicable("there are no elements to resize")
    if max(out) > _MOST_POSITIONS:
        return _of_any_size(op, b)
    warning = _RESIZE_RAW if x.type.element != op.result.type.element else ""
    taps = [
        b.kernel_set.bilinear(n, o, align_corners=flags[0], half_pixel=flags[1])
        for n, o in zip(source, out, strict=True)
    ]
    if taps[0] is not None and taps[1] is not None:
        steps = [rational_steps(n, o, *flags) for n, o in zip(source, out, strict=True)]
        return Rewritten([_by_taps(b, b.value(x), out, taps[0], taps[1], *steps)], warning=warning)
    if x.type.storage == ui8 and not _has_integer_form(source, out, *flags):
        return Rewritten([_in_float(b, b.value(x), source, out, *flags)], _FLOAT, warning)
    steps_of = rational_steps if x.type.storage == ui8 else integer_steps
    rows, columns = (steps_of(n, o, *flags) for n, o in zip(source, out, strict=True))
    if rows is None or columns is None:
        raise NotApplicable("at these sizes the kernel reads beyond the last row or column")
    if is_copy(rows, height, out[0]) and is_copy(columns, width, out[1]):
        copy = _resize(b, b.value(x), source, out, rows, columns, "NEAREST_NEIGHBOR")
        return Rewritten([copy], warning=warning)
    acc = _resize(b, b.value(x), source, out, rows, columns, "BILINEAR")
    return Rewritten([_divided(b, acc, x, rows.n * columns.n)], warning=warning)


def _of_any_size(op: ResizeBilinear, b: RuleBuilder) -> Answer:
    """`resize_bilinear` where the size of the operand or of the result is not known, or the result very large."""
    x, size = op.input, op.size
    reason = f"the size of '{x.name}' or of the result is not known"
    if x.type.storage == ui8:
        raise NotApplicable(reason, f"{reason}, and the kernel computes in float32: the result can be two counts away")
    if size.type.storage != i32 or size.type.shape != (2,):
        raise NotApplicable(reason)
    result = b.restated(_divided(b, _weighted_sums(op, b), x, 1 << 20), op.result.type.shape)
    return Rewritten([result], warning=_RESIZE_RAW if x.type.element != op.result.type.element else "")


@rule(ResizeNearestNeighbor)
def resize_nearest(op: ResizeNearestNeighbor, b: RuleBuilder) -> Answer:
    """result = the nearest element; by the kernel where sizes are not known, or TOSA would take another element."""
    x, size = op.input, op.size
    height, width = _plane(op)
    warning = _RESIZE_RAW if x.type.element != op.result.type.element else ""
    if size.is_constant and height and width and (size.array > 0).all():
        flags, out = (op.align_corners, op.half_pixel_centers), (int(size.array[0]), int(size.array[1]))
        few = max(out) <= _MOST_POSITIONS
        rows, columns = (
            nearest_steps(n, o, *flags) if few else None for n, o in zip((height, width), out, strict=True)
        )
        if rows is not None and columns is not None:
            nearest = _resize(b, b.value(x), (height, width), out, rows, columns, "NEAREST_NEIGHBOR")
            return Rewritten([nearest], warning=warning)
    resized = b.emit(type(op), [b.value(x), b.value(size)], op.output.type.stripped(), **op.attributes)
    return Rewritten([resized], warning=warning)


def _plane(op: tfl.Resize) -> tuple[int | None, int | None]:
    """Height and width of the operand; NotApplicable where no rule resizes it."""
    source, target = op.input.type, op.output.type
    if source.storage != target.storage or source.storage not in (i8, ui8, i16):
        raise NotApplicable(f"no kernel resizes {source.storage} to {target.storage}")
    if source.shape is None or len(source.shape) != 4:
        raise NotApplicable("the operand's rank is not known to be 4")
    return source.shape[1], source.shape[2]


def _has_integer_form(size: tuple[int, int], out: tuple[int, int], *flags: bool) -> bool:
    """Whether the uint8 kernel's result is RESIZE by the ratio of the sizes, within int32."""
    rows, columns = (rational_steps(n, o, *flags) for n, o in zip(size, out, strict=True))
    return 256 * rows.n * columns.n < 1 << 31 and uint8_is_rational(size, out, *flags)


def _resize(
    b: RuleBuilder, x: Value, size: tuple[int, int], out: tuple[int, int], rows: Sampling, columns: Sampling, mode: str
) -> Value:
    """tosa.resize; BILINEAR widens: i32 for 8 bits, i64 (TOSA's i48) for 16."""
    kind = x.type.element if mode != "BILINEAR" else i64 if x.type.storage == i16 else i32
    batch, channels = (x.type.shape or (None,))[0], (x.type.shape or (None,))[-1]
    return b.emit(
        Resize,
        [x],
        TensorType((batch, *out, channels), kind),
        scale=(rows.n, rows.d, columns.n, columns.d),
        offset=(rows.offset, columns.offset),
        border=(rows.border(size[0], out[0]), columns.border(size[1], out[1])),
        mode=mode,
    )


def _divided(b: RuleBuilder, acc: Value, x: Value, divisor: int) -> Value:
    """acc / divisor, rounded half away from zero, in x's storage type."""
    storage = x.type.storage
    if storage == i16:
        return b.emit(RoundingDivideByPot, [acc], i16, exponent=divisor.bit_length() - 1)
    if storage == i8:
        acc = b.add(acc, b.arithmetic_right_shift(acc, 31))  # a half below zero goes down, too
    if divisor > 1:
        acc = b.add(acc, divisor // 2)
        if divisor & (divisor - 1):
            acc = b.int_div(acc, divisor)
        else:
            acc = b.arithmetic_right_shift(acc, divisor.bit_length() - 1)
    return b.cast(acc, storage)


def _by_taps(
    b: RuleBuilder,
    x: Value,
    out: tuple[int, int],
    rows: FixedTaps,
    columns: FixedTaps,
    down: Sampling,
    across: Sampling,
) -> Value:
    """Weighted sums, rounded half up to 8 bits: by RESIZE, where weights are those of its steps. Else columns first,
    once for each row that is read, then rows; sums stay below 2^31."""
    height, width = (n or 0 for n in x.type.dims[1:3])
    if _are_steps(rows, down, height) and _are_steps(columns, across, width):
        if is_copy(down, height, out[0]) and is_copy(across, width, out[1]):
            return _resize(b, x, (height, width), out, down, across, "NEAREST_NEIGHBOR")
        total = _resize(b, x, (height, width), out, down, across, "BILINEAR")
        shift = (down.n * across.n).bit_length() - 1
    else:
        read, places = np.unique(np.concatenate(rows[:2]), return_inverse=True)
        if read.size < height:
            lower, upper = np.split(places, 2)
            x, rows = gather_along(b, x, read.astype(np.int32), 1), FixedTaps(lower, upper, rows.weight)
        total, shift = _weighted(b, _weighted(b, b.cast(x, i32), columns, 2), rows, 1), 22
    total = b.arithmetic_right_shift(b.add(total, 1 << (shift - 1)), shift)
    return b.cast(total, x.type.storage)


def _are_steps(taps: FixedTaps, steps: Sampling, size: int) -> bool:
    """Whether RESIZE by some steps reads elements as they are weighted, in parts of a power of two."""
    lower, upper, fraction = taps_of(steps, size, taps.lower.size)
    weight, parts = np.where(taps.lower == taps.upper, 0, taps.weight), np.where(lower == upper, 0, fraction)
    same = (lower == taps.lower) & ((upper == taps.upper) | (weight == 0)) & (parts * 2048 == weight * steps.n)
    return bool(same.all()) and steps.n & (steps.n - 1) == 0


def _weighted(b: RuleBuilder, x: Value, taps: FixedTaps, axis: int) -> Value:
    """2^11 times the elements between others along an axis, i32."""
    weight = taps.weight.astype(np.int32).reshape(-1, *(1,) * (3 - axis))
    first, second = (gather_along(b, x, v.astype(np.int32), axis) for v in taps[:2])
    return b.add(b.mul(first, b.constant(2048 - weight)), b.mul(second, b.constant(weight)))


def _in_float(b: RuleBuilder, x: Value, size: tuple[int, int], out: tuple[int, int], *flags: bool) -> Value:
    """The uint8 kernel's own float32 operations, in its order, on whole tensors."""
    one = np.float32(1)
    y0, y1, fy = float_taps(size[0], out[0], *flags)
    x0, x1, fx = float_taps(size[1], out[1], *flags)
    real = b.cast(x, f32)

    def weighted(value: Value, index: np.ndarray, axis: int, weight: np.ndarray) -> Value:
        rows = gather_along(b, value, index, axis)
        factor = b.constant(weight.reshape(-1, *(1,) * (3 - axis)), f32)
        return b.emit(Mul, [rows, factor], rows.type, fused_activation_function="NONE")

    def added(left: Value, right: Value) -> Value:
        return b.emit(Add, [left, right], left.type, fused_activation_function="NONE", pot_scale_int16=False)

    upper, lower = weighted(real, y0, 1, one - fy), weighted(real, y1, 1, fy)
    total = weighted(upper, x0, 2, one - fx)
    total = added(total, weighted(lower, x0, 2, one - fx))
    total = added(total, weighted(upper, x1, 2, fx))
    total = added(total, weighted(lower, x1, 2, fx))
    return b.truncate(added(total, b.constant(np.float32(0.5), f32)), ui8)
