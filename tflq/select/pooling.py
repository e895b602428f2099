"""Lowering of pooling: the builtins, which are right on plain integers and do not count padding, as TOSA.

TFLite gives the padding a name. Where it has none, the maximum is one of padded elements, and the average a sum of
the window's elements, divided. An average with zero points is one of int16, which holds x - input_zp.
"""

from __future__ import annotations

import functools

import numpy as np

from tflq.dialects.tfl.arithmetic import Div
from tflq.dialects.tfl.unary import Sign
from tflq.dialects.tosa.pooling import AvgPool2D, MaxPool2D
from tflq.ir.core import Op, Value
from tflq.ir.types import TensorType, f32, i16, i32
from tflq.numerics.convolution import window
from tflq.numerics.pooling import window_counts
from tflq.select.im2col import Geometry, pad_spatial, taps
from tflq.select.lowering import Kernels, lowering
from tflq.select.requantize import clamped

__all__: list[str] = []


@lowering(MaxPool2D)
def max_pool(op: MaxPool2D, k: Kernels) -> Value:
    x, padding = k.value(op.input), _padding(op)
    if padding is None:
        storage = x.type.storage
        lowest = -np.inf if storage.is_float else storage.minimum
        x, padding = pad_spatial(k, x, op.pad, lowest), "VALID"
    return _builtin(op, k, "max_pool_2d", x, padding)


@lowering(AvgPool2D)
def average_pool(op: AvgPool2D, k: Kernels) -> Value:
    a, padding, storage = op.attributes, _padding(op), op.result.type.storage
    x = k.value(op.input)
    zero_in, zero_out = a["input_zp"], a["output_zp"]
    if not zero_in and not zero_out and padding is not None:
        return _builtin(op, k, "average_pool_2d", x, padding)
    if padding is None:
        mean = _divided(op, k, x, zero_in)
    else:
        centred = k.add(k.cast(x, i16), k.constant(-zero_in, i16))
        mean = _builtin(op, k, "average_pool_2d", centred, padding)
    if storage.is_float:
        return mean
    least, most = (v - zero_in for v in (storage.minimum, storage.maximum))
    low, high = (np.asarray(v - zero_out) for v in (storage.minimum, storage.maximum))
    return k.cast(clamped(k, k.cast(mean, i32), low, high, least, most, zero_out), storage)


def _builtin(op: Op, k: Kernels, name: str, x: Value, padding: str) -> Value:
    (kernel_h, kernel_w), (stride_h, stride_w) = op.attributes["kernel"], op.attributes["stride"]
    return k.emit(
        f"tfl.{name}",
        [x],
        TensorType(op.result.type.shape, x.type.storage),
        padding=padding,
        stride_w=stride_w,
        stride_h=stride_h,
        filter_width=kernel_w,
        filter_height=kernel_h,
        fused_activation_function="NONE",
    )


def _divided(op: Op, k: Kernels, x: Value, zero_point: int) -> Value:
    """The sum of each window over the number of its elements that are not padding: half away from zero in i32, or
    the quotient of floats."""
    a, element = op.attributes, f32 if x.type.storage.is_float else i32
    sizes = [d or 0 for d in (x.type.shape or ())[1:3]]
    geometry = Geometry(a["kernel"], a["pad"], a["stride"], (1, 1))
    padded = pad_spatial(k, x, a["pad"], zero_point)
    wide = k.cast(padded, element)
    if zero_point:
        wide = k.sub(wide, k.constant(zero_point, element))
    total = functools.reduce(k.add, taps(k, wide, geometry, lambda v, _: v, fold=1, element=element))
    count = window_counts(sizes, a["kernel"], a["stride"], a["pad"])[..., None]
    if element == i32:
        total = k.add(total, k.mul(k.emit(Sign, [total], total.type), k.constant(count // 2)))
    divisor = k.constant(count, element)
    return k.emit(Div, [total, divisor], total.type, fused_activation_function="NONE")


def _padding(op: Op) -> str | None:
    """The name of the padding, None if it has none. Without any, VALID is SAME."""
    a = op.attributes
    if not any(a["pad"]):
        return "VALID"
    sizes = (op.operand(0).type.shape or (None,) * 4)[1:3]
    for size, kernel, stride, pad in zip(sizes, a["kernel"], a["stride"], (a["pad"][:2], a["pad"][2:]), strict=True):
        same = window(size, kernel, stride, 1, "SAME")
        if same is None or (same.before, same.after) != tuple(pad):
            return None
    return "SAME"
