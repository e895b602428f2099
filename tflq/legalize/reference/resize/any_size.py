"""RESIZE_BILINEAR of int8 and int16 where sizes are known only when the model runs, by the kernel's arithmetic.

    scale   (1024 size + out / 2) / out; with corners aligned and out > 1: (1024 (size - 1) + (out - 1) / 2) / (out - 1)
    p       o scale (+ scale / 2 - 512 with half pixel centers), for each output o
    result  ((x[y0] (1024 - fy) + x[y1] fy)[x0] (1024 - fx) + (...)[x1] fx) / 2^20, rounded half away from zero;
            lower = max(p >> 10, 0), upper = min((p + 1023) >> 10, size - 1), f = p - 1024 lower

RANGE counts the outputs, from the size that the operator is given, so the result is as static as the original's. Where
scale is rounded up so far that the kernel reads beyond the last element (outputs of more than 1024), the last is taken.
Source: ResizeBilinearInteger, kernels/internal/reference/resize_bilinear.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tosa.arithmetic import IntDiv
from tflq.ir.core import Value
from tflq.ir.types import TensorType, i16, i32, i64
from tflq.legalize.reference.generic.allocated import element, line, shape_of
from tflq.legalize.rule import RuleBuilder

__all__ = ["weighted_sums"]


@dataclass(frozen=True, slots=True)
class _Taps:
    """The two indices of each output, and how much the upper one weighs, in 1/1024: i32 [out]."""

    lower: Value
    upper: Value
    weight: Value


def weighted_sums(b: RuleBuilder, x: Value, size: Value, *, align_corners: bool, half_pixel_centers: bool) -> Value:
    """x [N, H, W, C] resized to `size` (i32 [2]): 2^20 times the result, i32 for int8 and i64 for int16."""
    shape = shape_of(b, x, 4)
    rows, columns = (
        _taps(b, element(b, shape, axis + 1), element(b, size, axis), align_corners, half_pixel_centers)
        for axis in range(2)
    )
    tall = _interpolated(b, b.cast(x, i32), rows, 1)
    return _interpolated(b, b.cast(tall, i64) if x.type.storage == i16 else tall, columns, 2)


def _taps(b: RuleBuilder, size: Value, out: Value, align_corners: bool, half_pixel_centers: bool) -> _Taps:
    scale, one = _ratio(b, size, out), _number(b, 1)
    if align_corners:
        aligned = _ratio(b, b.sub(size, one), b.maximum(b.sub(out, one), one))
        scale = b.select(b.greater(out, one), aligned, scale)
    position = b.mul(line(b, out), scale)
    if half_pixel_centers:
        position = b.add(position, b.sub(_half(b, scale), _number(b, 512)))
    last, ten = b.sub(size, one), _number(b, 10)
    lower = b.minimum(b.maximum(b.arithmetic_right_shift(position, ten), _number(b, 0)), last)
    upper = b.minimum(b.arithmetic_right_shift(b.add(position, _number(b, 1023)), ten), last)
    return _Taps(lower, upper, b.sub(position, b.mul(lower, _number(b, 1024))))


def _ratio(b: RuleBuilder, size: Value, out: Value) -> Value:
    """size / out in 1/1024, rounded to nearest."""
    total = b.add(b.mul(size, _number(b, 1024)), _half(b, out))
    return b.emit(IntDiv, [total, out], total.type)


def _interpolated(b: RuleBuilder, x: Value, taps: _Taps, axis: int) -> Value:
    """Both elements of each output along an axis, weighted, and added."""
    shape = x.type.shape or ()
    made = TensorType((*shape[:axis], (taps.lower.type.shape or (None,))[0], *shape[axis + 1 :]), x.type.storage)
    count = (taps.weight.type.shape or (None,))[0]
    upper = b.cast(b.reshape(taps.weight, (count, *(1,) * (3 - axis))), x.type.storage)
    lower = b.sub(b.constant(np.asarray(1024), x.type.storage), upper)
    parts = []
    for index, weight in ((taps.lower, lower), (taps.upper, upper)):
        taken = b.emit(Gather, [x, index], made, axis=axis, batch_dims=0)
        parts.append(b.mul(taken, weight))
    return b.add(*parts)


def _half(b: RuleBuilder, x: Value) -> Value:
    """Half of a number that is not negative."""
    return b.arithmetic_right_shift(x, _number(b, 1))


def _number(b: RuleBuilder, number: int) -> Value:
    return b.constant(np.asarray(number))
