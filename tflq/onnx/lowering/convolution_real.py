"""Convolutions and products of float32: what the float fallback computes between casts, and TOSA's on floats.

Quantized constants are dequantized. Sources: kernels/conv.cc, depthwise_conv.cc, fully_connected.cc, reduce.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tflq.dialects.onnx.movement import ReduceSum
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected
from tflq.dialects.tfl.reduction import Mean
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.record import parameters
from tflq.ir.types import f32
from tflq.numerics.convolution import window
from tflq.onnx.lowering.arithmetic import activated
from tflq.onnx.lowering.context import Onnx, lowering, static
from tflq.onnx.lowering.held import Form, Held, turned
from tflq.onnx.lowering.movement import numbers


@lowering(Conv2D)
def convolve(op: Conv2D, t: Onnx) -> Held:
    weights = turned(t, real(t, op.filter), first=True)
    channels, inside = (op.input.type.shape or (None,))[-1], (op.filter.type.shape or (None,))[-1]
    if not channels or not inside:
        raise Refused("the number of channels is not known")
    return _convolved(op, t, weights, channels // inside)


@lowering(DepthwiseConv2D)
def convolve_depthwise(op: DepthwiseConv2D, t: Onnx) -> Held:
    """Weights [1, height, width, channels * multiplier] as [channels * multiplier, 1, height, width]."""
    (channels,) = static((op.input.type.shape or (None,))[-1:])
    return _convolved(op, t, t.transpose(real(t, op.filter), (3, 0, 1, 2)), channels)


def _convolved(op: Conv2D | DepthwiseConv2D, t: Onnx, weights: Value, group: int) -> Held:
    if op.output.type.storage != f32:
        raise Refused(f"a convolution of plain {op.output.type.storage}")
    x = t.held(op.input).get(t, Form(f32, first=True))
    kernel = static(weights.type.shape)[2:]
    strides, dilations = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    pads = padding((op.input.type.shape or ())[1:3], kernel, strides, dilations, op.padding)
    bias = None if op.bias is None else real(t, op.bias)
    y = t.conv(x, weights, bias, strides=strides, pads=pads, dilations=dilations, group=group)
    return t.made(activated(t, y, op.fused_activation_function), op.output, first=True)


def padding(
    sizes: Sequence[int | None], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], kind: str
) -> list[int]:
    """What SAME or VALID adds: those before each dim, then those after each."""
    before, after = [], []
    for size, extent, step, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        found = window(size, extent, step, dilation, kind)
        if found is None or found.output is None or size is None:
            raise Refused("the size of an image is not known before a run")
        reach = (found.output - 1) * step + (extent - 1) * dilation + 1
        total = max(reach - size, 0) if kind == "SAME" else 0
        before.append(total // 2)
        after.append(total - total // 2)
    return [*before, *after]


@lowering(FullyConnected)
def fully_connected(op: FullyConnected, t: Onnx) -> Held:
    """Rows by the transpose of the weights."""
    if op.output.type.storage != f32 or op.weights_format != "DEFAULT":
        raise Refused("a FULLY_CONNECTED of plain integers, or with shuffled weights")
    depth, shape = static((op.weights.type.shape or ())[1:]), op.output.type.shape
    rows = t.reshape(t.value(op.input), (None, *depth))
    y = t.matmul(rows, t.transpose(real(t, op.weights), (1, 0)))
    y = y if op.bias is None else t.add(y, t.value(op.bias))
    y = activated(t, y, op.fused_activation_function)
    if shape is None:
        raise Refused("the rank that it makes is not known")
    return t.made(t.reshape(y, shape), op.output)


@lowering(Mean)
def mean(op: Mean, t: Onnx) -> Held:
    """The sum divided by the number of elements."""
    if op.output.type.storage != f32:
        raise Refused(f"MEAN of plain {op.output.type.storage}")
    rank = len(op.input.type.shape or ())
    axes = sorted({a % rank for a in numbers(op.axes)})
    count = prod(static(tuple((op.input.type.shape or ())[a] for a in axes)))
    total = t.reduce(ReduceSum, t.value(op.input), axes, keep=op.keep_dims)
    return t.made(t.div(total, t.like(count, total)), op.output)


def real(t: Onnx, operand: Value) -> Value:
    """An operand in float32; constants that are stored in integers are cast and scaled."""
    if not operand.type.quantized:
        return t.value(operand)
    scale, zero_point = parameters(operand.type)
    axis = getattr(operand.type.element, "axis", 0)
    rank = len(operand.type.shape or ())
    shape = [-1 if i == axis else 1 for i in range(rank)] if np.size(scale) > 1 else []
    stored = t.stored(operand.array.astype(np.int64), f32)
    if np.any(zero_point):
        stored = t.sub(stored, t.constant(np.reshape(zero_point, shape), f32))
    return t.mul(stored, t.constant(np.reshape(scale, shape), f32))
