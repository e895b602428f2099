"""Casts between element types, and between numbers and stored integers.

A cast that changes no number needs no operator: the tensor is held in the forms that it has. What a float leaves an
integer type with is saturated before CAST, which must not be given more than the type holds.
Sources: kernels/cast.cc, quantize.cc, dequantize.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.quant import Dcast, Qcast, Truncate
from tflq.dialects.tfl.casts import Cast as TflCast
from tflq.dialects.tfl.casts import Dequantize
from tflq.dialects.tosa.movement import Cast
from tflq.formats.onnx import dialect as onnx
from tflq.formats.onnx.context import Onnx, OnnxTensor, Result, lowering
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, f32, i1, i32, i64, parameters


@lowering(Cast)
def cast(op: Cast, t: Onnx) -> Result:
    """A float is rounded half to even and saturates."""
    x, to = op.input, op.result.type.storage
    if x.type.storage.is_float and to.is_integer:
        return t.elementwise(lambda v: saturated(t, t.round_half_even(v), to), [x], op.result)
    return _converted(t, x, op.result)


@lowering(TflCast)
def kernel_cast(op: TflCast, t: Onnx) -> Result:
    """The kernel's: floats lose their fraction; int32 saturates, NaN is its largest."""
    x, to = op.input, op.result.type.storage
    if x.type.storage.is_float and to.is_integer:
        if to != i32:
            raise Refused(f"a cast of floats to {to}, which wraps")

        def emit(v: Value) -> Value:
            large = t.greater_or_equal(v, t.like(2.0**31, v))
            none = t.either(large, t.emit(onnx.IsNaN, [v]))
            inside = t.where(none, t.like(0, v), t.maximum(v, t.like(-(2.0**31), v)))
            return t.where(none, t.constant(i32.maximum, i32), t.cast(inside, i32))

        return t.elementwise(emit, [x], op.result, x.type.storage)
    return _converted(t, x, op.result)


@lowering(Truncate)
def truncate(op: Truncate, t: Onnx) -> OnnxTensor:
    """CAST loses the fraction."""
    return t.elementwise(lambda v: saturated(t, v, op.result.type.storage), [op.input], op.result)


def saturated(t: Onnx, x: Value, to: ScalarType) -> Value:
    """A float's integer part in a type: beyond it its nearest end, NaN as 0."""
    if to.bits > 32:
        raise Refused(f"a float as {to}")
    number = t.where(t.emit(onnx.IsNaN, [x]), t.like(0, x), x)
    if to.bits < 32:
        return t.cast(t.clip(number, to.minimum, to.maximum), i32)
    large = t.greater_or_equal(number, t.like(float(to.maximum + 1), x))
    inside = t.where(large, t.like(0, x), t.maximum(number, t.like(float(to.minimum), x)))
    return t.where(large, t.constant(to.maximum, i32), t.cast(inside, i32))


def _converted(t: Onnx, x: Value, result: Value) -> Result:
    """Between integers, which wrap, truth values and floats."""
    to = result.type.storage
    if i1 in (x.type.storage, to) or to.is_float:
        if to == i1 and x.type.storage != i1:
            return t.elementwise(lambda v: t.invert(t.equal(v, t.like(0, v))), [x], result)
        return t.bind(t.cast(t.value(x), to), result)
    low, high = t.bounds(x)
    if to.minimum <= low and high <= to.maximum:
        return t.tensor(x)
    return t.bind(t.cast(t.integers(x, i64 if x.type.storage.bits > 32 else i32), to), result)


# Stored integers and the numbers that they stand for.


@lowering(Dcast)
def dequantize(op: Dcast, t: Onnx) -> Value:
    return _real(t, op.input, op.result)


@lowering(Dequantize)
def kernel_dequantize(op: Dequantize, t: Onnx) -> Value:
    """Of float16 a cast, of integers with parameters as `Dcast`."""
    if op.input.type.quantized:
        return _real(t, op.input, op.output)
    if op.input.is_constant:
        return t.constant(op.input.array, f32)
    return t.cast(t.value(op.input), f32)


def _real(t: Onnx, x: Value, result: Value) -> Value:
    """(x - zero point) * scale."""
    scale, zero_point = parameters(x.type)
    if result.type.storage != f32:
        raise Refused(f"real numbers in {result.type.storage}")
    if np.size(zero_point) == 1:
        number = t.whole(x, int(np.reshape(zero_point, -1)[0]))
    else:
        number = t.sub(t.whole(x), t.constant(zero_point, f32))
    return t.mul(number, t.constant(scale, f32))


@lowering(Qcast)
def quantize(op: Qcast, t: Onnx) -> OnnxTensor:
    """clamp(round(x / scale) + zero point); the quotient is rounded half away from zero, as the kernels do, or half to
    even."""
    element = op.result.type.element
    scale, zero_point = parameters(op.result.type)
    if op.rounding not in ("half_away", "half_even", None) or op.sum_rounding or op.input.type.storage != f32:
        raise Refused(f"a quotient rounded {op.sum_rounding or op.rounding}")
    low, high = element.storage_min, element.storage_max  # type: ignore[union-attr]
    if not i32.minimum <= low <= high <= i32.maximum:
        raise Refused(f"a quotient in {op.result.type.storage}, which int32 does not hold")

    def emit(x: Value) -> Value:
        y = t.div(x, t.constant(scale, f32))
        # beyond 2^31 the kernels' conversion gives the smallest int32, and its sum with the zero point wraps
        fits = t.less(t.abs(y), t.constant(2.0**31, f32))
        whole = half_away(t, y) if op.rounding == "half_away" else t.round_half_even(y)
        counts = t.clip(whole, -(2.0**30), 2.0**30)
        total = t.add(t.cast(counts, i32), t.constant(np.asarray(zero_point, np.int32), i32))
        if op.rounding is None:
            return t.clip(total, low, high)
        wrapped = (np.asarray(zero_point, np.int64) - (1 << 31)).astype(np.int32)
        return t.clip(t.where(fits, total, t.constant(wrapped, i32)), low, high)

    return t.elementwise(emit, [op.input], op.result)


def half_away(t: Onnx, x: Value) -> Value:
    """A float rounded to nearest, half away from zero: the size less its integer part is exact."""
    size = t.abs(x)
    whole = t.floor(size)
    up = t.cast(t.greater_or_equal(t.sub(size, whole), t.like(0.5, x)), x.type.storage)
    rounded = t.add(whole, up)
    return t.where(t.below_zero(x), t.negative(rounded), rounded)
