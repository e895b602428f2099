"""TRANSPOSE_CONV on int8, uint8 and int16 with int8 weights.

Each input element adds its products with the filter to the output at stride * position - padding; what falls outside is
dropped; then

    result = clamp(scale(bias[o] + sum (x - x_zp) * (w - w_zp)) + zp)

with the scales of CONV_2D. The output's size is an operand. Sources: kernels/transpose_conv.cc,
internal/reference/transpose_conv.h, integer_ops/transpose_conv.h.
"""

from __future__ import annotations

import numpy as np

from tflq.analysis.sizes import known_elements
from tflq.dialects.tfl.convolution import TransposeConv
from tflq.dialects.tosa.convolution import TransposeConv2D
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, ui8
from tflq.legalize.reference.generic.accumulate import (
    IGNORED_ZERO_POINT,
    Sums,
    Terms,
    accumulator,
    bias_of,
    bounds_of,
    scales_of,
    unused_zero_point,
    weight_zero_point,
)
from tflq.legalize.reference.generic.rescaled import fixed
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule
from tflq.numerics.convolution import double_scales, legacy_scale, window

__all__ = ["transpose_conv_sums"]

_WEIGHTS = {i8: i8, ui8: ui8, i16: i8}


@rule(TransposeConv)
def transpose_conv(op: TransposeConv, b: RuleBuilder) -> Answer:
    """tosa.transpose_conv2d, tosa.rescale, tosa.clamp."""
    weights, x, bias, result = op.filter, op.input, op.bias, op.result
    source, target = x.type.element, result.type.element
    if not isinstance(source, UniformQuantizedType) or not isinstance(target, UniformQuantizedType):
        raise NotApplicable("the input or the result is not quantized per layer")
    storage = source.storage
    if _WEIGHTS.get(storage) != weights.type.storage or target.storage != storage:
        raise NotApplicable(
            f"no kernel for {storage} input, {weights.type.storage} weights and {target.storage} result"
        )
    if storage == i16 and (source.zero_point or target.zero_point):
        raise NotApplicable("int16 with a zero point other than 0")
    if weights.type.rank != 4 or not weights.type.is_static:
        raise NotApplicable("the weights' shape is not known")
    outputs = (weights.type.shape or (0,))[0] or 0
    weight_scales = scales_of(weights)
    if weight_scales is None or weight_scales.size not in (1, outputs) or (storage == ui8 and weight_scales.size > 1):
        raise NotApplicable(f"the weights do not have the scales that a kernel takes ({outputs} output channels)")
    acc = accumulator(op, bias)
    weight_zp = weight_zero_point(weights) if storage == ui8 else 0
    terms = Terms(b.value(weights), bias_of(b, bias, outputs, acc), source.zero_point, weight_zp, acc)
    sums = transpose_conv_sums(op, b, terms)
    if storage == ui8:
        scales = np.asarray([legacy_scale(source.scale, float(weight_scales[0]), target.scale)])
    else:
        scales = double_scales(source.scale, weight_scales, target.scale)
    bounds = bounds_of(source, weights, (1, 2, 3), weight_zp, terms.bias)
    answer = fixed(b, sums.value, scales, target, op.fused_activation_function, bounds)
    ignored = storage != ui8 and unused_zero_point(weights)
    return answer.rewritten(None, IGNORED_ZERO_POINT if ignored else "")


def transpose_conv_sums(op: TransposeConv, b: RuleBuilder, terms: Terms) -> Sums:
    """TRANSPOSE_CONV with weights [O, KH, KW, I]."""
    size, x = op.output_shape, b.value(op.input)
    sizes = known_elements(size)
    if sizes is None or len(sizes) != 4 or None in sizes[1:]:
        raise NotApplicable(f"the result's height and width, in '{size.name}', are not known")
    if x.type.rank != 4 or x.type.shape is None or None in x.type.shape[1:]:
        raise NotApplicable("the input's shape is not known")
    outputs, kernel_h, kernel_w, inputs = (d or 0 for d in terms.weights.type.shape or ())
    out_h, out_w, out_c = (d or 0 for d in sizes[1:])
    batch, in_h, in_w, depth = x.type.shape
    stride_h, stride_w = op.stride_h, op.stride_w
    rows = window(out_h, kernel_h, stride_h, 1, op.padding)
    columns = window(out_w, kernel_w, stride_w, 1, op.padding)
    if (
        rows is None
        or columns is None
        or (rows.output, columns.output) != (in_h, in_w)
        or (out_c, depth) != (outputs, inputs)
    ):
        raise NotApplicable(
            f"an input of {in_h} x {in_w} x {depth} does not make a result of {out_h} x {out_w} x {out_c}"
        )
    sums = b.emit(
        TransposeConv2D,
        [x, terms.weights, terms.bias],
        TensorType((batch, out_h, out_w, outputs), terms.acc),
        out_pad=(
            *_out_pad(in_h or 0, out_h, kernel_h, stride_h, rows.before),
            *_out_pad(in_w or 0, out_w, kernel_w, stride_w, columns.before),
        ),
        stride=(stride_h, stride_w),
        input_zp=terms.input_zp,
        weight_zp=terms.weight_zp,
    )
    return Sums(sums)


def _out_pad(inputs: int, outputs: int, kernel: int, stride: int, before: int) -> tuple[int, int]:
    """TOSA's out_pad of one dim: what the full result gains on either side; less than 0, loses."""
    return -before, outputs - ((inputs - 1) * stride + kernel) + before
