"""CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV on int8, uint8 and int16 with weights of up to 8 bits.

    result = clamp(scale(bias[o] + sum (x - x_zp) * (w - w_zp)) + zp)      padding adds nothing

`scale` is fixed-point: per channel by double products for int8 and int16, one per layer by the legacy product for
uint8. The int8 and int16 kernels ignore the weights' zero point; that of CONV_2D refuses one. A grouped CONV_2D is
one convolution per group, or a depthwise one where a group has one input channel. In TRANSPOSE_CONV each input element
adds its products with the filter to the output at stride * position - padding; what falls outside is dropped; the
output's size is an operand.
Sources: kernels/conv.cc, depthwise_conv.cc, transpose_conv.cc; kernels/internal/reference/conv.h,
depthwiseconv_uint8.h, transpose_conv.h, integer_ops/conv.h, depthwise_conv.h, transpose_conv.h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, TransposeConv
from tflq.dialects.tfl.movement import PadV2
from tflq.dialects.tosa import convolution as tosa
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, TensorType, i4, i8, i16, i32, ui8
from tflq.legalize.probing import gather_along, kernel_name, per_layer, symmetric
from tflq.legalize.rescaled import (
    IGNORED_ZERO_POINT,
    Products,
    Sums,
    Terms,
    accumulator,
    bias_of,
    bounds_of,
    crude_bound_limit,
    element,
    has_zero_point,
    line,
    requantize,
    reshape_constant,
    scales_of,
    shape_of,
    sliced,
    weight_zero_point,
)
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule
from tflq.numerics.convolution import window

_Operator: TypeAlias = Conv2D | DepthwiseConv2D | TransposeConv

_WEIGHTS: Final[Mapping[type[_Operator], Mapping[ScalarType, Sequence[ScalarType]]]] = {
    Conv2D: {i8: (i8, i4), ui8: (ui8,), i16: (i8, i4)},
    DepthwiseConv2D: {i8: (i8, i4), ui8: (ui8,), i16: (i8,)},  # on int16 the kernel does not unpack int4
    TransposeConv: {i8: (i8,), ui8: (ui8,), i16: (i8,)},
}
"""The types of weights that kernels take, by the type of the input."""


@rule(Conv2D, DepthwiseConv2D, TransposeConv)
def convolution(op: _Operator, b: RuleBuilder) -> Answer:
    """tosa.conv2d, tosa.depthwise_conv2d or tosa.transpose_conv2d, tosa.rescale, tosa.clamp."""
    x, weights, bias = op.input, op.filter, op.bias
    source, target = per_layer(op, [x, op.result])
    storage, products = source.storage, PRODUCTS[type(op)]
    if weights.type.storage not in _WEIGHTS[type(op)].get(storage, ()) or target.storage != storage:
        types = f"{storage} input, {weights.type.storage} weights and {target.storage} result"
        raise NotApplicable(f"{kernel_name(op)} has no kernel for {types}")
    if weights.type.rank != 4 or not weights.type.is_static or weights.type.shape is None:
        raise NotApplicable("the weights' shape is not known")
    channels, weight_scales = weights.type.shape[products.channels] or 0, scales_of(weights)
    if weight_scales is None or weight_scales.size not in (1, channels):
        raise NotApplicable(f"the weights do not have 1 or {channels} scales")
    if storage == ui8 and weight_scales.size > 1:
        raise NotApplicable("uint8 weights are quantized per axis")
    if storage != ui8 and isinstance(op, Conv2D) and has_zero_point(weights):
        raise NotApplicable(f"{kernel_name(op)} takes no zero point of '{weights.name}' but 0")
    if storage == i16:
        symmetric(op, source, target)
    acc = accumulator(op, bias)
    kernels = b.kernel_set
    scaled_as = kernels.depthwise if isinstance(op, DepthwiseConv2D) else kernels.convolution
    factor = scaled_as(source, weight_scales, target)
    weight_zp = weight_zero_point(weights) if storage == ui8 else 0
    terms = Terms(b.value(weights), bias_of(b, bias, channels, acc), source.zero_point, weight_zp, acc)
    sums = products.sums(op, b, terms)
    crude = crude_bound_limit(b, factor, target)
    bounds = bounds_of(source, weights, products.summed, weight_zp, terms.bias, crude)
    answer = requantize(b, sums.value, factor, target, op.fused_activation_function, bounds)
    ignored = weight_zp == 0 and has_zero_point(weights)
    return answer.rewritten(None, IGNORED_ZERO_POINT if ignored else "")


def _depth(image: Value) -> int:
    """The channels of an NHWC image. NotApplicable if they are not known."""
    shape = image.type.shape
    if shape is None or len(shape) != 4 or shape[3] is None:
        raise NotApplicable("the input's rank is not 4, or its channels are not known")
    return shape[3]


def conv_2d_sums(op: Conv2D, b: RuleBuilder, terms: Terms) -> Sums:
    """CONV_2D with weights [O, KH, KW, I]."""
    x, weights, depth = b.value(op.input), terms.weights, _depth(op.input)
    outputs, kernel_h, kernel_w, inputs = weights.type.sizes
    if not inputs or not depth or depth % inputs or outputs % (depth // inputs):
        raise NotApplicable(f"{depth} input channels and {outputs} output channels do not make groups of {inputs}")
    groups = depth // inputs
    if groups == 1:
        return Sums(_convolved(op, b, terms, x, weights, terms.bias))
    if inputs == 1:
        shape = (kernel_h, kernel_w, depth, outputs // depth)
        if weights.is_constant:
            taps = b.constant(np.moveaxis(weights.array[..., 0], 0, -1).reshape(shape), unpacked(weights))
        else:
            rows = b.reshape(weights, (outputs, kernel_h, kernel_w))
            taps = b.reshape(b.transpose(rows, (1, 2, 0)), shape)
        return Sums(_convolved(op, b, terms, x, taps, terms.bias, depthwise=True))
    return Sums(_grouped(op, b, terms, x, groups))


def depthwise_sums(op: DepthwiseConv2D, b: RuleBuilder, terms: Terms) -> Sums:
    """DEPTHWISE_CONV_2D with weights [1, KH, KW, C * M]; output channel c * M + m reads input channel c."""
    x, weights, depth = b.value(op.input), terms.weights, _depth(op.input)
    one, kernel_h, kernel_w, outputs = weights.type.sizes
    if one != 1 or not depth or outputs % depth:
        raise NotApplicable(f"{outputs} output channels are not a multiple of {depth} input channels")
    taps = reshape_constant(b, weights, (kernel_h, kernel_w, depth, outputs // depth))
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
    kernel = weights.type.sizes[slice(2) if depthwise else slice(1, 3)]
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    windows = [
        window(size, k, s, d, op.padding) for size, k, s, d in zip(shape[1:3], kernel, stride, dilation, strict=True)
    ]
    if any(size and w is not None and w.output == 0 for size, w in zip(shape[1:3], windows, strict=True)):
        raise NotApplicable("the filter does not fit into the input: a result without elements")
    pad = tuple(p for w in windows if w is not None for p in (w.before, w.after))
    if None in windows:
        extents = [(size - 1) * step + 1 for size, step in zip(kernel, dilation, strict=True)]
        x, pad = _pad_same(b, x, extents, stride, terms.input_zp), (0, 0, 0, 0)
    zeros = {"input_zp": terms.input_zp, "weight_zp": terms.weight_zp}
    kind = tosa.DepthwiseConv2D if depthwise else tosa.Conv2D
    result = TensorType((shape[0], *(w.output if w else None for w in windows), bias.type.dims[0]), terms.acc)
    return b.emit(kind, [x, weights, bias], result, pad=pad, stride=stride, dilation=dilation, **zeros)


def unpacked(weights: Value) -> ScalarType:
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
        filters, offset = _rows(b, weights, first, count, unpacked(weights)), _rows(b, bias, first, count, terms.acc)
        parts.append(_convolved(op, b, terms, part, filters, offset))
    return b.concat(parts, 3)


def _rows(b: RuleBuilder, x: Value, first: int, count: int, storage: ScalarType) -> Value:
    """So many of a tensor's rows."""
    if x.is_constant:
        return b.constant(x.array[first : first + count], storage)
    shape = x.type.dims
    start, size = (first, *[0] * (len(shape) - 1)), (count, *shape[1:])
    return b.slice(x, start, size)


# SAME padding of an input whose height or width is known only when the model runs, computed by the model.
#
#     total = max(ceil(size / stride) * stride + extent - stride - size, 0)
#     before = total // 2, after = total - before
#
# `extent` is the filter's, dilation included. Source: kernels/padding.h. With a stride of 1 the total does not depend
# on the size.
#
# Only m = ceil(size / stride) * stride - size, from 0 to stride - 1, matters. It is the length of a
# line: RANGE makes one of ceil(size / stride) elements, another as long as that times the stride, and STRIDED_SLICE
# cuts `size` elements off. SHAPE reads how long the rest is, GATHER takes the amounts for it. An interpreter runs these
# operators (and MUL, CONCATENATION) when it allocates, if their operands are known then. So PADV2 knows its result's
# size, and memory stays static, which it would not with FLOOR_MOD, SUB or MAXIMUM. The rest is longer by one, since an
# empty tensor would have no memory.


_LINE = TensorType((None,), i32)
_ONE = TensorType((1,), i32)


def _pad_same(b: RuleBuilder, x: Value, extents: Sequence[int], strides: Sequence[int], fill: int) -> Value:
    """x [N, H, W, C] with as much of `fill` around it as SAME padding has."""
    batch, *sizes, channels = x.type.shape or (None,) * 4
    shape = shape_of(b, x, 4)
    none = b.constant(np.zeros((1, 2), np.int32))
    amounts = [_amounts(b, shape, axis, e, s) for axis, e, s in zip((1, 2), extents, strides, strict=True)]
    paddings = b.concat([none, *amounts, none], 0)
    grown = [None if s is None or t > 1 else s + e - 1 for s, e, t in zip(sizes, extents, strides, strict=True)]
    padded = TensorType((batch, *grown, channels), x.type.element)
    return b.emit(PadV2, [x, paddings, b.constant(fill, x.type.storage)], padded)


def _amounts(b: RuleBuilder, shape: Value, axis: int, extent: int, stride: int) -> Value:
    """The padding before and after along an axis: [1, 2]."""
    totals = np.maximum(np.arange(stride) + extent - stride, 0)
    pairs = np.stack([totals // 2, totals - totals // 2], 1)
    if stride == 1:
        return b.constant(pairs)
    starts = line(b, element(b, shape, axis), stride)
    whole = b.mul(shape_of(b, starts, 1), [stride])
    longer = b.concat([line(b, element(b, whole, 0)), b.constant([0])], 0)
    size = sliced(b, shape, [axis], [axis + 1], _ONE)
    rest = sliced(b, longer, size, [0], _LINE, end_mask=1)
    rows = b.constant(np.concatenate([pairs[:1], pairs]))
    return gather_along(b, rows, shape_of(b, rest, 1))


def transpose_conv_sums(op: TransposeConv, b: RuleBuilder, terms: Terms) -> Sums:
    """TRANSPOSE_CONV with weights [O, KH, KW, I]."""
    size, x = op.output_shape, b.value(op.input)
    known = b.known_elements(size)
    sizes = None if known is None else known.elements()
    if sizes is None or len(sizes) != 4 or None in sizes[1:]:
        raise NotApplicable(f"the result's height and width, in '{size.name}', are not known")
    if x.type.rank != 4 or x.type.shape is None or None in x.type.shape[1:]:
        raise NotApplicable("the input's shape is not known")
    outputs, kernel_h, kernel_w, inputs = terms.weights.type.sizes
    out_h, out_w, out_c = (d or 0 for d in sizes[1:])
    batch, in_h, in_w, depth = x.type.shape
    stride_h, stride_w = op.stride_h, op.stride_w
    rows = window(out_h, kernel_h, stride_h, 1, op.padding)
    columns = window(out_w, kernel_w, stride_w, 1, op.padding)
    fits = rows is not None and columns is not None and (rows.output, columns.output) == (in_h, in_w)
    if not fits or (out_c, depth) != (outputs, inputs):
        raise NotApplicable(
            f"an input of {in_h} x {in_w} x {depth} does not make a result of {out_h} x {out_w} x {out_c}"
        )
    assert rows is not None
    assert columns is not None
    out_pad = (
        *_out_pad(in_h or 0, out_h, kernel_h, stride_h, rows.before),
        *_out_pad(in_w or 0, out_w, kernel_w, stride_w, columns.before),
    )
    zeros = {"input_zp": terms.input_zp, "weight_zp": terms.weight_zp}
    result = TensorType((batch, out_h, out_w, outputs), terms.acc)
    operands = [x, terms.weights, terms.bias]
    sums = b.emit(tosa.TransposeConv2D, operands, result, out_pad=out_pad, stride=(stride_h, stride_w), **zeros)
    return Sums(sums)


def _out_pad(inputs: int, outputs: int, kernel: int, stride: int, before: int) -> tuple[int, int]:
    """TOSA's out_pad of one dim: how much the full result grows on either side; less than 0, shrinks."""
    return -before, outputs - ((inputs - 1) * stride + kernel) + before


PRODUCTS: Final[Mapping[type[Op], Products]] = {
    Conv2D: Products(0, (1, 2, 3), conv_2d_sums),
    DepthwiseConv2D: Products(3, (1, 2), depthwise_sums),
    TransposeConv: Products(0, (1, 2, 3), transpose_conv_sums),
}
