"""CONV_2D and DEPTHWISE_CONV_2D on int8, uint8 and int16 with 8-bit weights.

    result = clamp(scale(bias[o] + sum (x - x_zp) * (w - w_zp)) + zp)      padding adds nothing

`scale` is fixed-point: per channel by double products for int8 and int16, one per layer by the legacy product for
uint8. The int8 and int16 kernels take no zero point of the weights. A grouped CONV_2D is one convolution per group,
or a depthwise one where a group has one input channel. Sources: kernels/conv.cc, kernels/depthwise_conv.cc,
kernels/internal/reference/conv.h, depthwiseconv_uint8.h, integer_ops/conv.h, integer_ops/depthwise_conv.h.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, Shape, UniformQuantizedType, i4, i8, i16, ui8
from tflq.legalize.reference.convolution.same_padding import pad_same
from tflq.legalize.reference.generic.accumulate import (
    IGNORED_ZERO_POINT,
    Sums,
    Terms,
    accumulator,
    bias_of,
    bounds_of,
    scales_of,
    unused_zero_point,
    viewed,
    weight_zero_point,
)
from tflq.legalize.reference.generic.rescaled import fixed
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule
from tflq.numerics.convolution import Window, double_scales, legacy_scale, window

__all__ = ["conv_2d_sums", "depthwise_sums"]

_WEIGHTS = {i8: (i8, i4), ui8: (ui8,), i16: (i8, i4)}


@rule(Conv2D, DepthwiseConv2D)
def convolution(op: Conv2D | DepthwiseConv2D, b: RuleBuilder) -> Answer:
    """tosa.conv2d or tosa.depthwise_conv2d, tosa.rescale, tosa.clamp."""
    x, weights, bias, result = op.input, op.filter, op.bias, op.result
    depthwise = isinstance(op, DepthwiseConv2D)
    source, target = x.type.element, result.type.element
    if not isinstance(source, UniformQuantizedType) or not isinstance(target, UniformQuantizedType):
        raise NotApplicable("the input or the result is not quantized per layer")
    if source.storage not in _WEIGHTS or target.storage != source.storage:
        raise NotApplicable(f"no kernel for {source.storage} input and {target.storage} result")
    packed = depthwise and (source.storage, weights.type.storage) == (i16, i4)  # which the kernel does not unpack
    if packed or weights.type.storage not in _WEIGHTS[source.storage]:
        raise NotApplicable(f"no kernel for {source.storage} input and {weights.type.storage} weights")
    if weights.type.rank != 4 or not weights.type.is_static or weights.type.shape is None:
        raise NotApplicable("the weights' shape is not known")
    weight_scales = scales_of(weights)
    channels = weights.type.shape[3 if depthwise else 0] or 0
    if weight_scales is None or weight_scales.size not in (1, channels):
        raise NotApplicable(f"the weights do not have 1 or {channels} scales")
    if source.storage == ui8 and weight_scales.size > 1:
        raise NotApplicable("uint8 weights are quantized per axis")
    if source.storage == i16 and (source.zero_point or target.zero_point):
        raise NotApplicable("int16 with a zero point other than 0")
    acc = accumulator(op, bias)
    if source.storage == ui8:
        scales = np.asarray([legacy_scale(source.scale, float(weight_scales[0]), target.scale)])
    else:
        scales = double_scales(source.scale, weight_scales, target.scale)
    weight_zp = weight_zero_point(weights) if source.storage == ui8 else 0
    terms = Terms(b.value(weights), bias_of(b, bias, channels, acc), source.zero_point, weight_zp, acc)
    sums = depthwise_sums(op, b, terms) if isinstance(op, DepthwiseConv2D) else conv_2d_sums(op, b, terms)
    bounds = bounds_of(source, weights, (1, 2) if depthwise else (1, 2, 3), weight_zp, terms.bias)
    answer = fixed(b, sums.value, scales, target, op.fused_activation_function, bounds)
    ignored = weight_zp == 0 and unused_zero_point(weights)
    return answer.rewritten(None, IGNORED_ZERO_POINT if ignored else "")


def conv_2d_sums(op: Conv2D, b: RuleBuilder, terms: Terms) -> Sums:
    """CONV_2D with weights [O, KH, KW, I]."""
    x, weights = b.value(op.input), terms.weights
    if x.type.rank != 4 or x.type.shape is None or x.type.shape[3] is None:
        raise NotApplicable("the input's rank is not 4, or its channels are not known")
    outputs, kernel_h, kernel_w, inputs = (d or 0 for d in weights.type.shape or ())
    depth = x.type.shape[3]
    if not inputs or not depth or depth % inputs or outputs % (depth // inputs):
        raise NotApplicable(f"{depth} input channels and {outputs} output channels do not make groups of {inputs}")
    groups = depth // inputs
    if groups == 1:
        return Sums(_convolved(op, b, terms, x, weights, terms.bias))
    if inputs == 1:
        shape = (kernel_h, kernel_w, depth, outputs // depth)
        if weights.is_constant:
            taps = b.constant(np.moveaxis(weights.array[..., 0], 0, -1).reshape(shape), _unpacked(weights))
        else:
            rows = b.reshape(weights, (outputs, kernel_h, kernel_w))
            taps = b.reshape(b.transpose(rows, (1, 2, 0)), shape)
        return Sums(_convolved(op, b, terms, x, taps, terms.bias, depthwise=True))
    return Sums(_grouped(op, b, terms, x, groups))


def depthwise_sums(op: DepthwiseConv2D, b: RuleBuilder, terms: Terms) -> Sums:
    """DEPTHWISE_CONV_2D with weights [1, KH, KW, C * M]; output channel c * M + m reads input channel c."""
    x, weights = b.value(op.input), terms.weights
    if x.type.rank != 4 or x.type.shape is None or x.type.shape[3] is None:
        raise NotApplicable("the input's rank is not 4, or its channels are not known")
    one, kernel_h, kernel_w, outputs = (d or 0 for d in weights.type.shape or ())
    depth = x.type.shape[3]
    if one != 1 or not depth or outputs % depth:
        raise NotApplicable(f"{outputs} output channels are no multiple of {depth} input channels")
    taps = viewed(b, weights, (kernel_h, kernel_w, depth, outputs // depth))
    return Sums(_convolved(op, b, terms, x, taps, terms.bias, depthwise=True))


def _convolved(
    op: Conv2D | DepthwiseConv2D,
    b: RuleBuilder,
    terms: Terms,
    x: Value,
    weights: Value,
    bias: Value,
    *,
    depthwise: bool = False,
) -> Value:
    """The accumulator, with the operator's window."""
    shape = x.type.shape or (None,) * 4
    kernel = [d or 0 for d in (weights.type.shape or ())[slice(2) if depthwise else slice(1, 3)]]
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    windows = [
        window(size, k, s, d, op.padding) for size, k, s, d in zip(shape[1:3], kernel, stride, dilation, strict=True)
    ]
    made: Shape = (shape[0], *(w.output if w else None for w in windows), (bias.type.shape or ())[0])
    pad = _pad(windows)
    if pad is None:
        extents = [(size - 1) * step + 1 for size, step in zip(kernel, dilation, strict=True)]
        x, pad = pad_same(b, x, extents, stride, terms.input_zp), (0, 0, 0, 0)
    return b.conv2d(
        x,
        weights,
        bias,
        made,
        pad=pad,
        stride=stride,
        dilation=dilation,
        input_zp=terms.input_zp,
        weight_zp=terms.weight_zp,
        acc=terms.acc,
        depthwise=depthwise,
    )


def _pad(windows: Sequence[Window | None]) -> tuple[int, ...] | None:
    """Before and after per dim; None where that depends on a size that is not known."""
    known = [w for w in windows if w is not None]
    return tuple(p for w in known for p in (w.before, w.after)) if len(known) == len(windows) else None


def _unpacked(weights: Value) -> ScalarType:
    """The type of the weights' elements once they are an array."""
    return i8 if weights.type.storage.bits < 8 else weights.type.storage


def _grouped(op: Conv2D, b: RuleBuilder, terms: Terms, x: Value, groups: int) -> Value:
    """One convolution per group of channels, concatenated."""
    weights, bias = terms.weights, terms.bias
    batch, height, width, depth = x.type.shape or (None,) * 4
    inputs, outputs = (depth or 0) // groups, (weights.type.shape or (0,))[0] or 0
    parts: list[Value] = []
    for group in range(groups):
        start, size = (0, 0, 0, group * inputs), (batch, height, width, inputs)
        part = b.slice(x, start, size)
        first, count = group * outputs // groups, outputs // groups
        filters, offset = _rows(b, weights, first, count, _unpacked(weights)), _rows(b, bias, first, count, terms.acc)
        parts.append(_convolved(op, b, terms, part, filters, offset))
    return b.concat(parts, 3)


def _rows(b: RuleBuilder, x: Value, first: int, count: int, storage: ScalarType) -> Value:
    """So many of a tensor's rows."""
    if x.is_constant:
        return b.constant(x.array[first : first + count], storage)
    shape = x.type.shape or ()
    start, size = (first, *[0] * (len(shape) - 1)), (count, *shape[1:])
    return b.slice(x, start, size)
