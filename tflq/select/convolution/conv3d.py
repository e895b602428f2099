"""tosa.conv3d as a convolution in two dims: the slices along the depth under a filter side by side as channels.

[N, D, H, W, C] -> GATHER along D -> [N, OD, KD, H, W, C] -> TRANSPOSE -> [N OD, H, W, KD C]
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.convolution import Conv3D
from tflq.ir.core import Value, constant
from tflq.ir.types import i8
from tflq.select.convolution.conv2d import convolve
from tflq.select.im2col import Geometry
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


@lowering(Conv3D)
def conv3d(op: Conv3D, k: Kernels) -> Value:
    x, weights, bias = k.value(op.input), k.value(op.weight), k.value(op.bias)
    kernel_d, kernel_h, kernel_w = (d or 0 for d in (weights.type.shape or ())[1:4])
    batch = (x.type.shape or (None,))[0]
    _, _, height, width, channels = (d or 0 for d in x.type.shape or ())
    _, depth, out_h, out_w, outputs = (d or 0 for d in op.output.type.shape or ())
    planes_in_all = None if batch is None else batch * depth
    x = _padded(k, x, op.pad[:2], op.input_zp)
    planes = np.arange(depth)[:, None] * op.stride[0] + np.arange(kernel_d) * op.dilation[0]
    x = k.gather(x, k.constant(planes.reshape(-1)), 1)
    x = k.transpose(k.reshape(x, (planes_in_all, kernel_d, height * width, channels)), (0, 2, 1, 3))
    x = k.reshape(x, (planes_in_all, height, width, kernel_d * channels))
    geometry = Geometry((kernel_h, kernel_w), op.pad[2:], op.stride[1:], op.dilation[1:])
    sums = convolve(k, op, x, _side_by_side(k, weights), bias, geometry)
    return k.reshape(sums, (batch, depth, out_h, out_w, outputs))


def _padded(k: Kernels, x: Value, pad: tuple[int, ...], fill: int) -> Value:
    """x with planes of `fill` before and after."""
    if not any(pad):
        return x
    shape = list(x.type.shape or ())
    shape[1] = (shape[1] or 0) + sum(pad)
    amounts = np.zeros((5, 2), np.int32)
    amounts[1] = pad
    return k.padv2(x, amounts, fill, tuple(shape))


def _side_by_side(k: Kernels, weights: Value) -> Value:
    """[O, KD, KH, KW, C] -> [O, KH, KW, KD C]."""
    outputs, depth, height, width, channels = (d or 0 for d in weights.type.shape or ())
    if weights.is_constant:
        moved = np.ascontiguousarray(weights.array.transpose(0, 2, 3, 1, 4))
        filters = moved.reshape(outputs, height, width, depth * channels)
        return constant(filters, i8 if weights.type.storage.bits < 8 else weights.type.storage)
    flat = k.transpose(k.reshape(weights, (outputs, depth, height * width, channels)), (0, 2, 1, 3))
    return k.reshape(flat, (outputs, height, width, depth * channels))
