"""CONV_2D and DEPTHWISE_CONV_2D on int8, uint8 and int16 with 8-bit weights.

    result = clamp(scale(bias[o] + sum (x - x_zp) * (w - w_zp)) + zp)      padding adds nothing

`scale` is fixed-point: per channel by double products for int8 and int16, one per layer by the legacy product for
uint8. The int8 and int16 kernels take no zero point of the weights. A grouped CONV_2D is one convolution per group,
or a depthwise one where a group has one input channel. Sources: kernels/conv.cc, kernels/depthwise_conv.cc,
kernels/internal/reference/conv.h, depthwiseconv_uint8.h, integer_ops/conv.h, integer_ops/depthwise_conv.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, Shape, TensorType, UniformQuantizedType, i4, i8, i16, ui8
from tflq.legalize.accumulate import (
    IGNORED_ZERO_POINT,
    accumulator,
    bias_of,
    bounds_of,
    fixed,
    scales_of,
    unused_zero_point,
    viewed,
    weight_zero_point,
)
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.same_padding import pad_same
from tflq.numerics.convolution import Window, double_scales, legacy_scale, window

__all__: list[str] = []

_WEIGHTS = {i8: (i8, i4), ui8: (ui8,), i16: (i8, i4)}


@dataclass(frozen=True, slots=True)
class _Layer:
    """What the two operators have in common, checked."""

    x: UniformQuantizedType
    result: UniformQuantizedType
    weights: Value
    bias: Value | None
    acc: ScalarType
    scales: np.ndarray
    weight_zp: int
    height: Window | None
    width: Window | None

    @property
    def size(self) -> tuple[int | None, int | None]:
        """The output's height and width."""
        return (self.height.output if self.height else None, self.width.output if self.width else None)

    @property
    def pad(self) -> tuple[int, int, int, int] | None:
        """Top, bottom, left, right; None where they depend on a size that is not known."""
        if self.height is None or self.width is None:
            return None
        return (self.height.before, self.height.after, self.width.before, self.width.after)


def _layer(op: Op, channels_axis: int) -> _Layer | NotApplicable:
    """The operator's parameters; `channels_axis` is the weights' output channel axis."""
    x, weights, bias, result = op.operand(0), op.operand(1), op.optional(2), op.result
    source, target = x.type.element, result.type.element
    if not isinstance(source, UniformQuantizedType) or not isinstance(target, UniformQuantizedType):
        return NotApplicable("the input or the result is not quantized per layer")
    if source.storage not in _WEIGHTS or target.storage != source.storage:
        return NotApplicable(f"no kernel for {source.storage} input and {target.storage} result")
    if weights.type.storage not in _WEIGHTS[source.storage]:
        return NotApplicable(f"no kernel for {source.storage} input and {weights.type.storage} weights")
    if x.type.rank != 4 or x.type.shape is None or x.type.shape[3] is None:
        return NotApplicable("the input's rank is not 4, or its channels are not known")
    if weights.type.rank != 4 or not weights.type.is_static or weights.type.shape is None:
        return NotApplicable("the weights' shape is not known")
    weight_scales = scales_of(weights)
    channels = weights.type.shape[channels_axis]
    if weight_scales is None or weight_scales.size not in (1, channels):
        return NotApplicable(f"the weights do not have 1 or {channels} scales")
    if source.storage == ui8 and weight_scales.size > 1:
        return NotApplicable("uint8 weights are quantized per axis")
    if source.storage == i16 and (source.zero_point or target.zero_point):
        return NotApplicable("int16 with a zero point other than 0")
    acc = accumulator(op, bias)
    if isinstance(acc, NotApplicable):
        return acc
    a, padding = op.attributes, op.attributes["padding"]
    height = window(x.type.shape[1], weights.type.shape[1] or 0, a["stride_h"], a["dilation_h_factor"], padding)
    width = window(x.type.shape[2], weights.type.shape[2] or 0, a["stride_w"], a["dilation_w_factor"], padding)
    if source.storage == ui8:
        scales = np.asarray([legacy_scale(source.scale, float(weight_scales[0]), target.scale)])
    else:
        scales = double_scales(source.scale, weight_scales, target.scale)
    weight_zp = weight_zero_point(weights) if source.storage == ui8 else 0
    return _Layer(source, target, weights, bias, acc, scales, weight_zp, height, width)


def _finish(op: Op, b: RuleBuilder, layer: _Layer, sums: Value, axis: tuple[int, ...], bias: Value) -> Answer:
    bounds = bounds_of(layer.x, layer.weights, axis, layer.weight_zp, bias)
    answer = fixed(b, sums, layer.scales, layer.result, op.attributes["fused_activation_function"], bounds)
    if isinstance(answer, NotApplicable):
        return answer
    ignored = layer.weight_zp == 0 and unused_zero_point(layer.weights)
    return Rewritten([answer], warning=IGNORED_ZERO_POINT if ignored else "")


@rule("tfl.conv_2d")
def conv_2d(op: Op, b: RuleBuilder) -> Answer:
    """tosa.conv2d, tosa.rescale, tosa.clamp."""
    layer = _layer(op, 0)
    if isinstance(layer, NotApplicable):
        return layer
    x, weights = b.value(op.operand(0)), b.value(layer.weights)
    outputs, kernel_h, kernel_w, inputs = (d or 0 for d in weights.type.shape or ())
    batch, _, _, depth = x.type.shape or ()
    if not inputs or not depth or depth % inputs or outputs % (depth // inputs):
        return NotApplicable(f"{depth} input channels and {outputs} output channels do not make groups of {inputs}")
    bias = bias_of(b, layer.bias, outputs, layer.acc)
    shape = (batch, *layer.size, outputs)
    groups = depth // inputs
    if groups == 1:
        sums = _convolved(op, b, layer, x, weights, bias, shape)
    elif not (weights.is_constant and bias.is_constant):
        return NotApplicable("grouped convolution with weights or a bias that are not constant")
    elif inputs == 1:
        taps = np.moveaxis(weights.array[..., 0], 0, -1).reshape(kernel_h, kernel_w, depth, outputs // depth)
        sums = _convolved(op, b, layer, x, b.constant(taps, _unpacked(weights)), bias, shape, depthwise=True)
    else:
        sums = _grouped(op, b, layer, x, weights, bias, shape, groups)
    return _finish(op, b, layer, sums, (1, 2, 3), bias)


def _convolved(
    op: Op,
    b: RuleBuilder,
    layer: _Layer,
    x: Value,
    weights: Value,
    bias: Value,
    shape: Shape,
    *,
    depthwise: bool = False,
) -> Value:
    """The accumulator, with the operator's window."""
    a, pad = op.attributes, layer.pad
    stride, dilation = (a["stride_h"], a["stride_w"]), (a["dilation_h_factor"], a["dilation_w_factor"])
    if pad is None:
        kernel = [d or 0 for d in (weights.type.shape or ())][slice(2) if depthwise else slice(1, 3)]
        extents = [(size - 1) * step + 1 for size, step in zip(kernel, dilation, strict=True)]
        x, pad = pad_same(b, x, extents, stride, layer.x.zero_point), (0, 0, 0, 0)
    return b.conv2d(
        x,
        weights,
        bias,
        shape,
        pad=pad,
        stride=stride,
        dilation=dilation,
        input_zp=layer.x.zero_point,
        weight_zp=layer.weight_zp,
        acc=layer.acc,
        depthwise=depthwise,
    )


def _unpacked(weights: Value) -> ScalarType:
    """The type of the weights' elements once they are an array."""
    return i8 if weights.type.storage == i4 else weights.type.storage


def _grouped(
    op: Op,
    b: RuleBuilder,
    layer: _Layer,
    x: Value,
    weights: Value,
    bias: Value,
    shape: tuple[int | None, ...],
    groups: int,
) -> Value:
    """One convolution per group of channels, concatenated."""
    batch, height, width, depth = x.type.shape or (None,) * 4
    inputs, outputs = (depth or 0) // groups, (shape[3] or 0) // groups
    parts: list[Value] = []
    for group in range(groups):
        start, size = (0, 0, 0, group * inputs), (batch, height, width, inputs)
        part = b.emit("tosa.slice", [x], TensorType(size, x.type.element), start=start, size=size)
        rows = slice(group * outputs, (group + 1) * outputs)
        filters, offset = b.constant(weights.array[rows], _unpacked(weights)), b.constant(bias.array[rows], layer.acc)
        parts.append(_convolved(op, b, layer, part, filters, offset, (*shape[:3], outputs)))
    return b.concat(parts, 3, shape)


@rule("tfl.depthwise_conv_2d")
def depthwise_conv_2d(op: Op, b: RuleBuilder) -> Answer:
    """tosa.depthwise_conv2d, tosa.rescale, tosa.clamp; output channel c * M + m reads input channel c."""
    layer = _layer(op, 3)
    if isinstance(layer, NotApplicable):
        return layer
    x, weights = b.value(op.operand(0)), b.value(layer.weights)
    one, kernel_h, kernel_w, outputs = (d or 0 for d in weights.type.shape or ())
    batch, _, _, depth = x.type.shape or ()
    if one != 1 or not depth or outputs % depth:
        return NotApplicable(f"{outputs} output channels are no multiple of {depth} input channels")
    bias = bias_of(b, layer.bias, outputs, layer.acc)
    taps = viewed(b, weights, (kernel_h, kernel_w, depth, outputs // depth))
    shape = (batch, *layer.size, outputs)
    sums = _convolved(op, b, layer, x, taps, bias, shape, depthwise=True)
    return _finish(op, b, layer, sums, (1, 2), bias)
