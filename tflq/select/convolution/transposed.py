"""tosa.transpose_conv2d as a convolution whose output channels are the positions of a stride cell, then moved apart.

The full result at f = q * s + r (r < s) is sum_t x[q - t] * w[t * s + r]: for each r a convolution of x with every
s-th row of the filter. All s_h * s_w of them are one convolution with filters of ceil(k / s) taps; its channels
(r_h, r_w, o) are interleaved by RESHAPE, TRANSPOSE, RESHAPE, and out_pad crops the rest.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.convolution import TransposeConv2D
from tflq.ir.core import Value, constant
from tflq.select.convolution.conv2d import convolve
from tflq.select.im2col import Geometry
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


@lowering(TransposeConv2D)
def transpose_conv2d(op: TransposeConv2D, k: Kernels) -> Value:
    """The convolution, interleaved and cropped."""
    x, weights, bias = k.value(op.input), k.value(op.weight), k.value(op.bias)
    outputs, kernel_h, kernel_w, _ = (d or 0 for d in weights.type.shape or ())
    batch, height, width, _ = x.type.shape or (None,) * 4
    _, out_h, out_w, _ = (d or 0 for d in op.output.type.shape or ())
    stride_h, stride_w = op.stride
    top, _, left, _ = op.out_pad
    taps_h, above, below, skip_h = _placed(kernel_h, stride_h, top, height or 0, out_h)
    taps_w, before, after, skip_w = _placed(kernel_w, stride_w, left, width or 0, out_w)

    cell, taps = (stride_h, stride_w), (taps_h, taps_w)
    if weights.is_constant:
        filters = constant(_cells(weights.array, cell, taps, op.weight_zp))
    else:
        filters = _gathered_cells(k, weights, cell, taps, op.weight_zp)
    tiled = _tiled(k, bias, stride_h * stride_w)
    geometry = Geometry((taps_h, taps_w), (above, below, before, after), (1, 1), (1, 1))
    cells = convolve(k, op, x, filters, tiled, geometry)

    _, rows, columns, _ = geometry.output(x.type.shape, 0) or ()
    rows, columns = rows or 0, columns or 0
    if (stride_h, stride_w) != (1, 1):
        lead = None if batch is None else batch * rows
        apart = k.refold(cells, (lead, columns, stride_h, stride_w * outputs))
        cells = k.refold(k.transpose(apart, (0, 2, 1, 3)), (batch, rows * stride_h, columns * stride_w, outputs))
    if (rows * stride_h, columns * stride_w) == (out_h, out_w):
        return cells
    ends = (0, skip_h + out_h, skip_w + out_w, 0)
    shape = op.output.type.shape
    return k.strided_slice(cells, (0, skip_h, skip_w, 0), ends, (1, 1, 1, 1), shape, begin_mask=0b1001, end_mask=0b1001)


def _placed(kernel: int, stride: int, out_pad: int, size: int, out: int) -> tuple[int, int, int, int]:
    """One dim: taps per output, padding before and after the input, outputs to skip."""
    taps = -(-kernel // stride)
    extra = -(-max(out_pad, 0) // stride)
    skip = extra * stride - out_pad
    after = max(-(-(skip + out) // stride) - size - extra, 0)
    return taps, taps - 1 + extra, after, skip


def _cells(weights: np.ndarray, stride: tuple[int, int], taps: tuple[int, int], fill: int) -> np.ndarray:
    """Filters [s_h * s_w * O, T_h, T_w, I] of [O, KH, KW, I]; taps beyond the filter are its zero point."""
    outputs, kernel_h, kernel_w, inputs = weights.shape
    full = np.full((outputs, taps[0] * stride[0], taps[1] * stride[1], inputs), fill, weights.dtype)
    full[:, :kernel_h, :kernel_w] = weights
    apart = full.reshape(outputs, taps[0], stride[0], taps[1], stride[1], inputs)[:, ::-1, :, ::-1]
    return np.ascontiguousarray(apart.transpose(2, 4, 0, 1, 3, 5)).reshape(-1, *taps, inputs)


def _gathered_cells(k: Kernels, weights: Value, stride: tuple[int, int], taps: tuple[int, int], fill: int) -> Value:
    """`_cells` of filters that are computed."""
    outputs, kernel_h, kernel_w, inputs = (d or 0 for d in weights.type.shape or ())
    count, places = kernel_h * kernel_w, stride[0] * stride[1]
    rows = k.reshape(weights, (outputs, count, inputs))
    if taps[0] * taps[1] * places > count:
        beyond = k.constant(np.full((outputs, 1, inputs), fill), weights.type.storage)
        rows = k.concatenation([rows, beyond], 1, (outputs, count + 1, inputs))
    order = _cells(np.arange(count).reshape(1, kernel_h, kernel_w, 1), stride, taps, count)
    apart = k.gather(rows, k.constant(order.reshape(-1)), 1)
    apart = k.transpose(k.reshape(apart, (outputs, places, taps[0] * taps[1], inputs)), (1, 0, 2, 3))
    return k.reshape(apart, (places * outputs, *taps, inputs))


def _tiled(k: Kernels, bias: Value, count: int) -> Value:
    """The bias, `count` times."""
    if bias.is_constant:
        return constant(np.tile(bias.array, count))
    size = (bias.type.shape or (0,))[0] or 0
    return k.concatenation([bias] * count, 0, (size * count,))
