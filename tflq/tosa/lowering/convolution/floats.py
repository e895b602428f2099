"""CONV_2D, DEPTHWISE_CONV_2D, CONV_3D, TRANSPOSE_CONV and FULLY_CONNECTED in float.

TFLite's filters are OHWI as TOSA's, [1, H, W, C * M] for depthwise ones (TOSA: [H, W, C, M]) and DHWIO in CONV_3D
(TOSA: ODHWI). Sources: kernels/conv.cc, depthwise_conv.cc, conv3d.cc, transpose_conv.cc, fully_connected.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.analysis.sizes import known_elements
from tflq.dialects.tfl.convolution import Conv2D, Conv3D, DepthwiseConv2D, TransposeConv
from tflq.dialects.tosa.convolution import Conv3D as TosaConv3D
from tflq.dialects.tosa.convolution import TransposeConv2D
from tflq.errors import Refused
from tflq.ir.core import Op, Value, constant
from tflq.ir.types import Shape, TensorType, f32
from tflq.numerics.convolution import window
from tflq.tosa.lowering.floats.arithmetic import float_activation, need_float
from tflq.tosa.lowering.floats.real_constants import factor, real
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.windows import extents, fitted, same_or_valid

__all__: list[str] = []


@lowering(Conv2D)
def conv_2d(op: Conv2D, t: Tosa) -> Value:
    x, weights = float_operands(op, t, op.input, op.filter, 4)
    outputs, kernel_h, kernel_w, inputs = static_shape(weights)
    depth = (x.type.shape or ())[3]
    if not depth or not inputs or depth % inputs:
        raise Refused(f"{depth} channels do not make groups of {inputs}")
    groups, bias = depth // inputs, float_bias(t, op.bias, outputs)
    if groups == 1:
        return float_activation(t, _planar(op, t, x, weights, bias, (kernel_h, kernel_w)), op.fused_activation_function)
    if not (weights.is_constant and bias.is_constant):
        raise Refused("a grouped convolution with weights or a bias that are not constant")
    if inputs == 1:
        taps = np.moveaxis(weights.array[..., 0], 0, -1).reshape(kernel_h, kernel_w, depth, outputs // depth)
        filters = constant(np.ascontiguousarray(taps))
        return float_activation(
            t, _planar(op, t, x, filters, bias, (kernel_h, kernel_w), depthwise=True), op.fused_activation_function
        )
    parts, made = [], outputs // groups
    for group in range(groups):
        rows, start, size = slice(group * made, (group + 1) * made), group * inputs, (x.type.shape or ())[:3]
        part = t.slice(x, (0, 0, 0, start), (*size, inputs))
        filters, offset = constant(weights.array[rows]), constant(bias.array[rows])
        parts.append(_planar(op, t, part, filters, offset, (kernel_h, kernel_w)))
    return float_activation(t, t.concat(parts, 3), op.fused_activation_function)


@lowering(DepthwiseConv2D)
def depthwise_conv_2d(op: DepthwiseConv2D, t: Tosa) -> Value:
    x, weights = float_operands(op, t, op.input, op.filter, 4, 3)
    one, kernel_h, kernel_w, outputs = static_shape(weights)
    depth = (x.type.shape or ())[3]
    if one != 1 or not depth or outputs % depth:
        raise Refused(f"{outputs} output channels are no multiple of {depth} input channels")
    taps = t.reshape(weights, (kernel_h, kernel_w, depth, outputs // depth))
    bias = float_bias(t, op.bias, outputs)
    return float_activation(
        t, _planar(op, t, x, taps, bias, (kernel_h, kernel_w), depthwise=True), op.fused_activation_function
    )


@lowering(Conv3D)
def conv_3d(op: Conv3D, t: Tosa) -> Value:
    x, weights = float_operands(op, t, op.input, op.filter, 5, 4)
    *kernel, inputs, outputs = static_shape(weights)
    if (x.type.shape or ())[4] != inputs:
        raise Refused(f"filters of {inputs} input channels do not meet those of {x.type}")
    stride = (op.stride_d, op.stride_h, op.stride_w)
    dilation = (op.dilation_d_factor, op.dilation_h_factor, op.dilation_w_factor)
    reach = extents(kernel, dilation)
    pad, sizes = same_or_valid(x, reach, stride, op.padding)
    x, pad = fitted(t, x, reach, stride, pad, sizes)
    order = (4, 0, 1, 2, 3)
    if weights.is_constant:
        filters = constant(np.ascontiguousarray(weights.array.transpose(order)))
    else:
        filters = t.transpose(weights, order)
    type = TensorType(((x.type.shape or ())[0], *sizes, outputs), f32)
    options = {"pad": pad, "stride": stride, "dilation": dilation, "input_zp": 0, "weight_zp": 0}
    return float_activation(
        t,
        t.emit(TosaConv3D, [x, filters, float_bias(t, op.bias, outputs)], type, **options),
        op.fused_activation_function,
    )


@lowering(TransposeConv)
def transpose_conv(op: TransposeConv, t: Tosa) -> Value:
    x, weights = float_operands(op, t, op.input, op.filter, 4)
    outputs, kernel_h, kernel_w, inputs = static_shape(weights)
    size = known_elements(op.output_shape)
    batch, *planes, depth = x.type.shape or ()
    if size is None or len(size) != 4 or None in (*size[1:], *planes) or depth != inputs:
        raise Refused("the height and width of the input or of the result are not known")
    stride = (op.stride_h, op.stride_w)
    out_pad: list[int] = []
    for given, made, kernel, step in zip(planes, size[1:3], (kernel_h, kernel_w), stride, strict=True):
        found = window(made, kernel, step, 1, op.padding)
        if found is None or given is None or made is None or found.output != given:
            raise Refused(f"an input of {given} does not make a result of {made}")
        out_pad += -found.before, made - ((given - 1) * step + kernel) + found.before
    type = TensorType((batch, *size[1:3], outputs), f32)
    options = {"out_pad": tuple(out_pad), "stride": stride, "input_zp": 0, "weight_zp": 0}
    sums = t.emit(TransposeConv2D, [x, weights, float_bias(t, op.bias, outputs)], type, **options)
    return float_activation(t, sums, op.fused_activation_function)


def float_operands(op: Op, t: Tosa, x: Value, weights: Value, rank: int | None, axis: int = 0) -> tuple[Value, Value]:
    """Input and weights in float, whose dim `axis` counts the results; Refused for another rank."""
    need_float(t, op)
    values = real(t, x), factor(op, t, weights, axis)
    if any(v.type.shape is None or (rank is not None and len(v.type.shape) != rank) for v in values):
        raise Refused("the rank of the input or of the weights is not the kernel's, or not known")
    return values


def static_shape(weights: Value) -> tuple[int, ...]:
    if not weights.type.is_static or weights.type.shape is None:
        raise Refused("the weights' shape is not known")
    return tuple(d or 0 for d in weights.type.shape)


def float_bias(t: Tosa, bias: Value | None, outputs: int) -> Value:
    """The bias, zeros if it is left out."""
    return t.constant(np.zeros(outputs), f32) if bias is None else t.reshape(real(t, bias), (outputs,))


def _planar(
    op: Conv2D | DepthwiseConv2D,
    t: Tosa,
    x: Value,
    weights: Value,
    bias: Value,
    kernel: Sequence[int],
    *,
    depthwise: bool = False,
) -> Value:
    """CONV2D or DEPTHWISE_CONV2D with the operator's window."""
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    reach = extents(kernel, dilation)
    pad, sizes = same_or_valid(x, reach, stride, op.padding)
    x, pad = fitted(t, x, reach, stride, pad, sizes)
    shape: Shape = ((x.type.shape or ())[0], *sizes, (bias.type.shape or ())[0])
    return t.conv2d(x, weights, bias, shape, pad=pad, stride=stride, dilation=dilation, acc=f32, depthwise=depthwise)
