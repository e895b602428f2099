"""Lowering of pooling: the builtins, which are right on plain integers and do not count padding, as TOSA.

TFLite gives the padding a name. Where it has none, the maximum is one of padded elements, and the average a sum of
the window's elements, divided. An average with zero points is one of int16, which holds x - input_zp.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.tfl import pooling as tfl
from tflq.dialects.tfl.arithmetic import Div
from tflq.dialects.tfl.unary import Sign
from tflq.dialects.tosa.pooling import AvgPool2D, MaxPool2D, Pool
from tflq.ir.core import Value
from tflq.ir.types import TensorType, f32, i16, i32
from tflq.numerics.convolution import window
from tflq.numerics.pooling import window_counts
from tflq.select.im2col import Geometry, pad_spatial, tap_sum
from tflq.select.lowering import Kernels, lowering
from tflq.select.rescale.integer import clamped
from tflq.select.twins import moved

__all__: list[str] = []


@lowering(MaxPool2D)
def max_pool(op: MaxPool2D, k: Kernels) -> Value:
    padding = _padding(op)

    def greatest(x: Value, _: int) -> Value:
        if padding is not None:
            return _builtin(op, k, tfl.MaxPool2D, x, padding)
        storage = x.type.storage
        lowest = -np.inf if storage.is_float else storage.minimum
        return _builtin(op, k, tfl.MaxPool2D, pad_spatial(k, x, op.pad, lowest), "VALID")

    return moved(k, k.value(op.input), greatest)


@lowering(AvgPool2D)
def average_pool(op: AvgPool2D, k: Kernels) -> Value:
    padding, storage = _padding(op), op.output.type.storage
    x = k.value(op.input)
    zero_in, zero_out = op.input_zp, op.output_zp
    if not zero_in and not zero_out and padding is not None:
        return _builtin(op, k, tfl.AveragePool2D, x, padding)
    if padding is None:
        mean = _divided(op, k, x, zero_in)
    else:
        centred = k.add(k.cast(x, i16), k.constant(-zero_in, i16))
        mean = _builtin(op, k, tfl.AveragePool2D, centred, padding)
    if storage.is_float:
        return mean
    least, most = (v - zero_in for v in (storage.minimum, storage.maximum))
    low, high = (np.asarray(v - zero_out) for v in (storage.minimum, storage.maximum))
    return k.cast(clamped(k, k.cast(mean, i32), low, high, least, most, zero_out), storage)


def _builtin(op: Pool, k: Kernels, kind: type[Operator], x: Value, padding: str) -> Value:
    (kernel_h, kernel_w), (stride_h, stride_w) = op.kernel, op.stride
    return k.emit(
        kind,
        [x],
        TensorType(op.output.type.shape, x.type.storage),
        padding=padding,
        stride_w=stride_w,
        stride_h=stride_h,
        filter_width=kernel_w,
        filter_height=kernel_h,
        fused_activation_function="NONE",
    )


def _divided(op: AvgPool2D, k: Kernels, x: Value, zero_point: int) -> Value:
    """The sum of each window over the number of its elements that are not padding: half away from zero in i32, or
    the quotient of floats."""
    element = f32 if x.type.storage.is_float else i32
    sizes = [d or 0 for d in (x.type.shape or ())[1:3]]
    geometry = Geometry(op.kernel, op.pad, op.stride, (1, 1))
    padded = pad_spatial(k, x, op.pad, zero_point)
    wide = k.cast(padded, element)
    if zero_point:
        wide = k.sub(wide, k.constant(zero_point, element))
    total = tap_sum(k, wide, geometry, lambda v, _: v, fold=1, element=element)
    count = window_counts(sizes, op.kernel, op.stride, op.pad)[..., None]
    if element == i32:
        total = k.add(total, k.mul(k.emit(Sign, [total]), k.constant(count // 2)))
    divisor = k.constant(count, element)
    return k.emit(Div, [total, divisor], total.type, fused_activation_function="NONE")


def _padding(op: Pool) -> str | None:
    """The name of the padding, None if it has none. Without any, VALID is SAME."""
    if not any(op.pad):
        return "VALID"
    sizes = (op.input.type.shape or (None,) * 4)[1:3]
    for size, kernel, stride, pad in zip(sizes, op.kernel, op.stride, (op.pad[:2], op.pad[2:]), strict=True):
        same = window(size, kernel, stride, 1, "SAME")
        if same is None or (same.before, same.after) != tuple(pad):
            return None
    return "SAME"
