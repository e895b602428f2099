"""TRANSPOSE_CONV2D on integers: types and zero points as for CONV2D, the output exactly what out_pad makes."""

from __future__ import annotations

from math import prod

from tflq.dialects.tosa.convolution import TransposeConv2D
from tflq.ir.core import Value
from tflq.ir.types import TensorType
from tflq.tosa.lowering.convolution import accumulated, bias_like, filters_of, narrowed
from tflq.tosa.lowering.registry import Refused, Tosa, lowering
from tflq.tosa.lowering.wide_weights import side_by_side

__all__: list[str] = []


@lowering(TransposeConv2D)
def transpose_conv2d(op: TransposeConv2D, t: Tosa) -> Value:
    x, (weights, zero_point) = t.value(op.input), filters_of(t, op)
    x, weights = side_by_side(t, x, weights, "transposed convolution")
    _, kernel_h, kernel_w, _ = shape = [d or 0 for d in weights.type.shape or ()]
    top, bottom, left, right = op.out_pad
    if min(top, bottom) <= -kernel_h or min(left, right) <= -kernel_w:
        raise Refused("TOSA takes off less than the filter's size at each edge")
    acc = accumulated(t, op, x, weights, prod(shape[1:]))
    sums = t.emit(
        TransposeConv2D,
        [x, weights, bias_like(t, op.bias, acc)],
        TensorType(op.result.type.shape, acc),
        out_pad=tuple(op.out_pad),
        stride=tuple(op.stride),
        input_zp=t.zero_point(op.input, op.input_zp),
        weight_zp=zero_point,
    )
    return narrowed(t, sums, op.result.type.storage)
