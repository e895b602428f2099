"""Convolutions and products of float32: what the float fallback computes between casts, and TOSA's on floats.

Quantized constants are dequantized. Sources: kernels/conv.cc, depthwise_conv.cc, fully_connected.cc, reduce.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tflq.analysis.hybrid import BLOCKS, BLOCKS_REMEDY, REMEDY, rounding_of
from tflq.dialects.onnx.movement import ReduceSum
from tflq.dialects.tfl.convolution import BatchMatMul, Conv2D, DepthwiseConv2D, FullyConnected
from tflq.dialects.tfl.reduction import Mean
from tflq.errors import Refused
from tflq.ir.core import Op, Value
from tflq.ir.types import UniformQuantizedSubChannelType, f32, i4, parameters
from tflq.numerics.convolution import window
from tflq.onnx.lowering.arithmetic import activated
from tflq.onnx.lowering.context import Onnx, lowering, static
from tflq.onnx.lowering.held import Form, Held, turned
from tflq.onnx.lowering.movement import numbers


@lowering(Conv2D)
def convolve(op: Conv2D, t: Onnx) -> Held:
    weights = turned(t, factor(op, t, op.filter), first=True)
    channels, inside = (op.input.type.shape or (None,))[-1], (op.filter.type.shape or (None,))[-1]
    if not channels or not inside:
        raise Refused("the number of channels is not known")
    return _convolved(op, t, weights, channels // inside)


@lowering(DepthwiseConv2D)
def convolve_depthwise(op: DepthwiseConv2D, t: Onnx) -> Held:
    """Weights [1, height, width, channels * multiplier] as [channels * multiplier, 1, height, width]."""
    (channels,) = static((op.input.type.shape or (None,))[-1:])
    return _convolved(op, t, t.transpose(factor(op, t, op.filter), (3, 0, 1, 2)), channels)


def _convolved(op: Conv2D | DepthwiseConv2D, t: Onnx, weights: Value, group: int) -> Held:
    if op.output.type.storage != f32:
        raise Refused(f"a convolution of plain {op.output.type.storage}")
    x = t.held(op.input).get(t, Form(f32, first=True))
    kernel = static(weights.type.shape)[2:]
    strides, dilations = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    pads = padding((op.input.type.shape or ())[1:3], kernel, strides, dilations, op.padding)
    bias = None if op.bias is None else real(t, op.bias)
    y = real_sum(op, t.conv(x, weights, bias, strides=strides, pads=pads, dilations=dilations, group=group))
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
    y = real_sum(op, t.matmul(rows, t.transpose(factor(op, t, op.weights), (1, 0))))
    y = y if op.bias is None else t.add(y, t.value(op.bias))
    y = activated(t, y, op.fused_activation_function)
    if shape is None:
        raise Refused("the rank that it makes is not known")
    return t.made(t.reshape(y, shape), op.output)


@lowering(BatchMatMul)
def batch_matmul(op: BatchMatMul, t: Onnx) -> Held:
    if not op.output.type.storage.is_float:
        raise Refused("BATCH_MATMUL of plain integers")
    x, y = _adjoint(t, t.value(op.lhs), op.adj_x), _adjoint(t, factor(op, t, op.rhs), op.adj_y)
    return t.made(real_sum(op, t.matmul(x, y)), op.output)


def _adjoint(t: Onnx, x: Value, adjoint: bool) -> Value:
    *outer, rows, columns = range(len(x.type.shape or ()))
    return t.transpose(x, (*outer, columns, rows)) if adjoint else x


@lowering(Mean)
def mean(op: Mean, t: Onnx) -> Held:
    """The sum divided by the number of elements."""
    if op.output.type.storage != f32:
        raise Refused(f"MEAN of plain {op.output.type.storage}")
    rank = len(op.input.type.shape or ())
    axes = sorted({a % rank for a in numbers(op.axes)})
    count = prod(static(tuple((op.input.type.shape or ())[a] for a in axes)))
    total = real_sum(op, t.reduce(ReduceSum, t.value(op.input), axes, keep=op.keep_dims))
    return t.made(t.div(total, t.like(count, total)), op.output)


def real(t: Onnx, operand: Value) -> Value:
    """An operand in float32; constants that are stored in integers are cast and scaled."""
    if not operand.type.quantized:
        return t.value(operand)
    scale, zero_point = parameters(operand.type)
    axis = getattr(operand.type.element, "axis", 0)
    rank = len(operand.type.shape or ())
    if isinstance(operand.type.element, UniformQuantizedSubChannelType):
        return _of_blocks(t, operand, operand.type.element)
    shape = [-1 if i == axis else 1 for i in range(rank)] if np.size(scale) > 1 else []
    stored = t.stored(operand.array.astype(np.int64), f32)
    if np.any(zero_point):
        stored = t.sub(stored, t.constant(np.reshape(zero_point, shape), f32))
    return t.mul(stored, t.constant(np.reshape(scale, shape), f32))


def _of_blocks(t: Onnx, operand: Value, element: UniformQuantizedSubChannelType) -> Value:
    """A constant with a scale per block: each dim is that of the blocks and that within one."""
    shape = static(operand.type.shape)
    sizes = [dict(zip(element.axes, element.block_sizes, strict=True)).get(axis, dim) for axis, dim in enumerate(shape)]
    split = [n for dim, size in zip(shape, sizes, strict=True) for n in (dim // size, size)]
    per_block = [n for dim, size in zip(shape, sizes, strict=True) for n in (dim // size, 1)]
    if element.zero_points.any() or any(dim % size for dim, size in zip(shape, sizes, strict=True)):
        raise Refused(f"the blocks of '{operand.name}' are not whole, or have zero points")
    stored = t.reshape(t.stored(operand.array.astype(np.int64), f32), split)
    return t.reshape(t.mul(stored, t.constant(element.scales.reshape(per_block), f32)), shape)


def factor(op: Op, t: Onnx, operand: Value) -> Value:
    """Weights in float32. Of quantized ones a warning says how far the product is from the hybrid kernel's."""
    if not operand.type.quantized:
        return t.value(operand)
    if isinstance(operand.type.element, UniformQuantizedSubChannelType):
        if not (isinstance(op, FullyConnected) and operand.type.storage == i4):
            raise Refused(f"the kernel finds no scale of '{operand.name}', which has one per block")
        t.warn(BLOCKS.format(operand.name), "inexact", BLOCKS_REMEDY)
    t.warn(rounding_of(op, "ONNX's operators"), "inexact", REMEDY)
    return real(t, operand)


def real_sum(op: Op, y: Value) -> Value:
    """A sum of real numbers, which a runtime takes in an order of its own: it is exact in none. That of a hybrid
    operator is another one than the kernel's, too."""
    assert y.producer is not None
    y.producer.info = {"sums": "hybrid" if any(v.type.quantized for v in op.reads) else "real"}
    return y
