"""Convolutions of floats: the builtins, on an input that is padded first where TFLite has no name for its padding.

A CLAMP that is RELU or RELU6, and the only reader of the result, becomes the activation of the builtin.
"""

from __future__ import annotations

from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D
from tflq.dialects.tosa.activation import Clamp
from tflq.dialects.tosa.convolution import Convolution
from tflq.ir.core import Value
from tflq.ir.types import TensorType
from tflq.select.floats import rectifier
from tflq.select.im2col import Geometry
from tflq.select.lowering import Kernels
from tflq.select.mac_float import conv_options, padded_for

__all__ = ["activated", "conv2d_of_floats", "depthwise_of_floats"]


def conv2d_of_floats(k: Kernels, x: Value, weights: Value, bias: Value, geometry: Geometry) -> Value:
    """CONV_2D with weights [O, KH, KW, I]."""
    padded, padding = padded_for(k, x, geometry)
    outputs = (weights.type.shape or (None,))[0]
    type = TensorType(geometry.output(x.type.shape, outputs or 0), x.type.storage)
    options = conv_options(geometry, padding) | {"quantized_bias_type": "FLOAT32"}
    return k.emit(Conv2D, [padded, weights, bias], type, **options)


def depthwise_of_floats(k: Kernels, x: Value, weights: Value, bias: Value, geometry: Geometry) -> Value:
    """DEPTHWISE_CONV_2D with weights [KH, KW, C, M]."""
    padded, padding = padded_for(k, x, geometry)
    *window, depth, multiplier = (d or 0 for d in weights.type.shape or ())
    shape = (1, *window, depth * multiplier)
    if weights.is_constant:
        filters = Value(TensorType(shape, weights.type.element), buffer=weights.buffer)
    else:
        filters = k.reshape(weights, shape)
    type = TensorType(geometry.output(x.type.shape, shape[-1]), x.type.storage)
    options = conv_options(geometry, padding) | {"depth_multiplier": multiplier}
    return k.emit(DepthwiseConv2D, [padded, filters, bias], type, **options)


def activated(k: Kernels, op: Convolution, result: Value) -> Value:
    """`result`, a builtin in the place of `op`; the clamp after it becomes its activation, where it has such a one."""
    clamp, producer = k.only_user(op.output, Clamp), result.producer
    if clamp is None or not isinstance(producer, (Conv2D, DepthwiseConv2D)):
        return result
    name = rectifier(clamp.min_val, clamp.max_val, result.type.storage)
    if name is None:
        return result
    producer.attributes["fused_activation_function"] = name
    return k.fuse(clamp, result)
