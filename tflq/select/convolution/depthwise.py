"""tosa.depthwise_conv2d as elementwise products per filter tap.

    sum (x - x_zp) (w - w_zp) = sum x (w - w_zp) - x_zp sum (w - w_zp)

The last term goes into the bias; padding holds x_zp, which makes both sides 0. Rows are multiplied before they are cut
to a tap's place, so that the taps of a column share an operand: of a tensor with one reader the interpreter does MUL in
place, at six times the cost. MUL in int32 takes as long as MUL in int16 and the CAST of its product. Where the channels
are few, several positions make one row of the kernels' broadcast. One input channel with several filters is an
ordinary convolution; several filters per channel repeat the channels by GATHER.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.tosa.convolution import DepthwiseConv2D
from tflq.ir.core import Value, constant
from tflq.ir.types import ScalarType, i32
from tflq.select.convolution.conv2d import conv2d_of
from tflq.select.im2col import Geometry, pad_spatial, tap_sum
from tflq.select.lowering import Kernels, lowering
from tflq.select.sums import fits_int32

__all__: list[str] = []

_ROW = 512
"""Elements from which a longer row of a broadcast gains nothing."""


@lowering(DepthwiseConv2D)
def depthwise_conv2d(op: DepthwiseConv2D, k: Kernels) -> Value:
    """Slices, MUL and ADD per tap, bias."""
    x, weights, bias = k.value(op.input), k.value(op.weight), k.value(op.bias)
    kernel_h, kernel_w, depth, multiplier = (d or 0 for d in weights.type.shape or ())
    geometry = Geometry.of(op, (kernel_h, kernel_w))
    if depth == 1 and weights.is_constant:
        filters = constant(np.ascontiguousarray(np.moveaxis(weights.array, 3, 0)))
        return conv2d_of(k, op, x, filters, bias, geometry)
    if x.type.storage.is_float:
        from tflq.select.convolution.floats import activated, depthwise_of_floats

        return activated(k, op, depthwise_of_floats(k, x, weights, bias, geometry))
    zero_points = (op.input_zp, op.weight_zp)
    acc = op.output.type.storage
    element = i32 if acc == i32 or fits_int32(k, op) else acc
    if k.mac == "float32":
        from tflq.select.convolution.requantized import requantized_depthwise
        from tflq.select.mac_float import float_depthwise

        result = requantized_depthwise(k, op, x, weights, bias, geometry)
        if result is not None:
            return result
        result = float_depthwise(k, x, weights, bias, geometry, zero_points, element)
        if result is not None:
            return k.cast(result, acc)
    if x.type.storage.bits == 8 and weights.is_constant:
        taps = weights.array.reshape(kernel_h * kernel_w, -1).astype(np.int64) - zero_points[1]
        if (np.abs(taps).sum(0) < 1 << 23).all():  # the sum of its products with 8 bits is in int32
            return k.cast(_by_bytes(k, x, taps, multiplier, bias, geometry, zero_points[0]), acc)
    return k.cast(_by_taps(k, x, weights, bias, geometry, zero_points, element), acc)


def _by_bytes(
    k: Kernels, x: Value, filters: np.ndarray, multiplier: int, bias: Value, geometry: Geometry, zero_point: int
) -> Value:
    """8-bit x and known filters [KH * KW, C * M] less their zero point: products and their sum in int32."""
    shape = geometry.output(x.type.shape, filters.shape[1])
    fold = _fold(shape)
    padded = _repeated(k, pad_spatial(k, x, geometry.pad, zero_point), multiplier)
    rows = [k.constant(row) for row in np.tile(filters, (1, fold))]
    for row in rows:
        row.role = "weights"

    def product(x: Value, tap: int) -> Value:
        return k.mul(x, rows[tap])

    total = tap_sum(k, padded, geometry, product, fold=fold, element=i32)
    if fold > 1 and shape is not None:
        total = k.refold(total, shape)
    offset = -zero_point * filters.sum(0)
    if bias.is_constant:
        whole = (bias.array + offset).astype(np.int32)
        return k.add(total, k.constant(whole)) if whole.any() else total
    return k.add(k.add(total, k.constant(offset)), bias)


def _fold(shape: Sequence[int | None] | None) -> int:
    """How many neighbouring positions to treat as one: as many as divide the width and fill a row."""
    if shape is None or shape[1] is None or shape[2] is None or not shape[3]:
        return 1
    return max((f for f in range(1, shape[2] + 1) if shape[2] % f == 0 and f * shape[3] <= _ROW), default=1)


def _by_taps(
    k: Kernels,
    x: Value,
    weights: Value,
    bias: Value,
    geometry: Geometry,
    zero_points: tuple[int, int],
    element: ScalarType,
) -> Value:
    """int16 x, or weights that are not constant or very many: products in `element`."""
    padded = _repeated(k, pad_spatial(k, x, geometry.pad, zero_points[0]), (weights.type.shape or (1,))[-1] or 1)
    wide = k.cast(padded, element)
    if zero_points[0]:
        wide = k.sub(wide, k.constant(np.asarray(zero_points[0]), element))
    rows = _weight_rows(k, weights, zero_points[1], element)

    def product(x: Value, tap: int) -> Value:
        return k.mul(x, rows[tap])

    total = tap_sum(k, wide, geometry, product, fold=1, element=element)
    if bias.is_constant:
        return k.add(total, k.constant(bias.array, element)) if bias.array.any() else total
    return k.add(total, k.cast(bias, element))


def _repeated(k: Kernels, x: Value, multiplier: int) -> Value:
    """Each channel `multiplier` times in a row."""
    if multiplier == 1:
        return x
    channels = (x.type.shape or (0,))[-1] or 0
    return k.gather(x, k.constant(np.repeat(np.arange(channels, dtype=np.int32), multiplier)), axis=3)


def _weight_rows(k: Kernels, weights: Value, weight_zp: int, element: ScalarType) -> list[Value]:
    """The filters less their zero point, per tap: [C * M]."""
    kernel_h, kernel_w, depth, multiplier = (d or 0 for d in weights.type.shape or ())
    positions, channels = kernel_h * kernel_w, depth * multiplier
    if weights.is_constant:
        values = weights.array.reshape(positions, -1).astype(element.dtype) - weight_zp
        return [k.constant(row, element) for row in values]
    wide = k.cast(k.reshape(weights, (positions, channels)), element)
    if weight_zp:
        wide = k.sub(wide, k.constant(np.asarray(weight_zp), element))
    return [
        k.strided_slice(wide, (tap, 0), (tap + 1, channels), (1, 1), (channels,), shrink_axis_mask=1)
        for tap in range(positions)
    ]
