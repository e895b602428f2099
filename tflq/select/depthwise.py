"""tosa.depthwise_conv2d as elementwise products per filter tap, summed in int32 (int64 where that can overflow).

One input channel with several filters is an ordinary convolution. Several filters per channel repeat the channels by GATHER.
"""

from __future__ import annotations

import numpy as np

from tflq.ir.core import Op, Value, constant
from tflq.ir.types import ScalarType, i32
from tflq.select.convolution import convolve, fits_int32
from tflq.select.im2col import Geometry, pad_spatial, tap_slices
from tflq.select.lowering import Kernels, lowering
from tflq.select.mac_float import float_depthwise

__all__: list[str] = []


@lowering("tosa.depthwise_conv2d")
def depthwise_conv2d(op: Op, k: Kernels) -> Value:
    """Slices, MUL and ADD per tap, bias."""
    x, weights, bias = (k.value(op.operand(i)) for i in range(3))
    kernel_h, kernel_w, depth, multiplier = (d or 0 for d in weights.type.shape or ())
    geometry = Geometry.of(op, (kernel_h, kernel_w))
    if depth == 1 and weights.is_constant:
        filters = constant(np.ascontiguousarray(np.moveaxis(weights.array, 3, 0)))
        return convolve(k, op, x, filters, bias, geometry)
    input_zp, weight_zp = zero_points = (op.attributes["input_zp"], op.attributes["weight_zp"])
    acc = op.result.type.storage
    element = i32 if acc == i32 or fits_int32(k, op) else acc
    if k.mac == "float32":
        result = float_depthwise(k, x, weights, bias, geometry, zero_points, element)
        if result is not None:
            return k.cast(result, acc)
    x = pad_spatial(k, x, geometry.pad, input_zp)
    if multiplier > 1:
        x = k.gather(x, k.constant(np.repeat(np.arange(depth, dtype=np.int32), multiplier)), axis=3)
    x = k.cast(x, element)
    if input_zp:
        x = k.sub(x, k.constant(np.asarray(input_zp), element))
    total: Value | None = None
    for tap, row in zip(tap_slices(k, x, geometry), _rows(k, weights, weight_zp, element), strict=True):
        product = k.mul(tap, row)
        total = product if total is None else k.add(total, product)
    if total is None:
        raise ValueError("a filter without taps")
    if not (bias.is_constant and not bias.array.any()):
        total = k.add(total, k.constant(bias.array, element) if bias.is_constant else k.cast(bias, element))
    return k.cast(total, acc)


def _rows(k: Kernels, weights: Value, weight_zp: int, element: ScalarType) -> list[Value]:
    """The filters' values less their zero point, per tap: [C * M]."""
    kernel_h, kernel_w, depth, multiplier = (d or 0 for d in weights.type.shape or ())
    if weights.is_constant:
        values = weights.array.reshape(kernel_h * kernel_w, -1).astype(element.dtype) - weight_zp
        return [k.constant(row, element) for row in values]
    wide = k.cast(k.reshape(weights, (kernel_h * kernel_w, depth * multiplier)), element)
    if weight_zp:
        wide = k.sub(wide, k.constant(np.asarray(weight_zp), element))
    channels = depth * multiplier
    return [
        k.strided_slice(wide, (tap, 0), (tap + 1, channels), (1, 1), (channels,), shrink_axis_mask=1)
        for tap in range(kernel_h * kernel_w)
    ]
