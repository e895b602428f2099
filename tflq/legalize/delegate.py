"""Nodes that the XNNPACK delegate takes from TFLite's interpreter, and the words by which kernel sets name an operator.

The delegate takes operators on 8 bits with one scale and a zero point within the type, whose constants are static, and
whose ratios of scales are within its kernels' bounds. It looks at each node alone. What it leaves runs TFLite's
optimized kernels. Source: tflite/delegates/xnnpack/xnnpack_delegate.cc, in the conditions of VisitNode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tflq.dialects.tfl.activation import Elu, LeakyRelu, Logistic, Tanh
from tflq.dialects.tfl.arithmetic import Add, Mul, Sub
from tflq.dialects.tfl.casts import Quantize
from tflq.dialects.tfl.convolution import BatchMatMul, Conv2D, DepthwiseConv2D, FullyConnected, TransposeConv
from tflq.dialects.tfl.pooling import Mean, ReduceMax, ReduceMin, ResizeBilinear, Sum
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType, f32, i8, i16, i32, ui8
from tflq.numerics.fixed_point import checked_log2
from tflq.numerics.xnnpack import LARGEST_FACTOR

_ACTIVATIONS: Final = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
"""Fused ones that are bounds."""


def is_delegated(op: Op) -> bool:
    """Whether the delegate takes an operator."""
    takes = _TAKES.get(type(op))
    return takes is not None and getattr(op, "fused_activation_function", "NONE") in _ACTIVATIONS and takes(op)


def words_of(op: Op) -> list[str]:
    """An operator with its types, as `KernelSet.inexact` names it."""
    name, operands = op.name.removeprefix("tfl.").upper(), op.present_operands
    if not operands or not op.results:
        return []
    first = op.input if isinstance(op, TransposeConv) else operands[0]
    x, y = first.type.storage, op.results[0].type.storage
    words = [f"{name} of {x}", f"{name} of {x} to {y}"]
    if isinstance(op, (Conv2D, DepthwiseConv2D, FullyConnected, TransposeConv)):
        words += [f"{name} of {x} {more}" for more in _more_words(op)]
    if isinstance(op, (Logistic, Tanh)) and _is_power_of_two(op.input):
        words.append(f"{name} of {x} with a scale of a power of two")
    if isinstance(op, Add) and not all(v.type.is_static for v in op.tensors):
        shifted = op.pot_scale_int16 and all(map(_is_power_of_two, op.tensors))
        words += [] if shifted else [f"{name} of {x} without a known size"]
    return words


def _is_power_of_two(value: Value) -> bool:
    """Whether the one scale of a tensor is a power of two."""
    element = value.type.element
    return isinstance(element, UniformQuantizedType) and checked_log2(element.scale) is not None


def _more_words(op: Conv2D | DepthwiseConv2D | FullyConnected | TransposeConv) -> list[str]:
    """Words of sums of products, by which TFLite chooses among its optimized kernels."""
    words, filters = [], _weights(op).type.shape or (None,) * 4
    if isinstance(op, DepthwiseConv2D):
        channels = filters[3]
    else:
        channels, declared = filters[0], op.quantized_bias_type
        connected = isinstance(op, FullyConnected) and _weights(op).type.storage is not i16
        undeclared = connected and op.bias is None and declared != "INT64"
        words += ["with sums of i32"] if declared == "INT32" or undeclared else []
    if isinstance(op, Conv2D) and (op.input.type.shape or filters)[3] in (None, filters[3]):
        words.append("without groups")
    return [*words, "with 8 channels or more"] if channels is None or channels >= 8 else words


def _weights(op: Conv2D | DepthwiseConv2D | FullyConnected | TransposeConv) -> Value:
    return op.weights if isinstance(op, FullyConnected) else op.filter


def _byte(value: Value) -> UniformQuantizedType | None:
    """The type of a tensor of 8 bits with one scale; None of others."""
    element = value.type.element
    if not isinstance(element, UniformQuantizedType) or _axis_of_one_scale(value):
        return None
    return element if element.storage in (i8, ui8) else None


def _axis_of_one_scale(value: Value) -> int:
    """The `quantized_dimension` of a tensor with one scale, which no other kernel reads."""
    return int(value.info.get("quantized_dimension", value.info.get("axis_of_one_scale", 0)))


def _bytes(*values: Value) -> list[UniformQuantizedType]:
    """The types of tensors, if all are of 8 bits with one scale and of one storage type; else none."""
    elements = [e for e in map(_byte, values) if e is not None]
    return elements if len(elements) == len(values) and len({e.storage for e in elements}) == 1 else []


def _ratio(x: UniformQuantizedType, y: UniformQuantizedType) -> float:
    with np.errstate(all="ignore"):
        return float(np.float32(x.scale) / np.float32(y.scale))


def _sums_products(op: Conv2D | DepthwiseConv2D | FullyConnected | TransposeConv) -> bool:
    weights = _weights(op)
    bias, types = op.bias, _bytes(op.input, op.result)
    if not types or not weights.is_constant or "sparsity" in weights.info:
        return False
    if isinstance(op, TransposeConv) and not (op.output_shape.is_constant and _paddings_fit(op)):
        return False
    if bias is None:
        if isinstance(op, (Conv2D, DepthwiseConv2D)):
            return False
    elif not bias.is_constant or bias.type.storage is not i32 or not bias.type.quantized:
        return False
    return _weights_fit(op, weights, *types)


def _paddings_fit(op: TransposeConv) -> bool:
    """Whether a kernel of the delegate has TRANSPOSE_CONV's paddings. With SAME its strides are at most the filter's
    size, and the input's size follows from the result's. With VALID the filter fits into the result."""
    sizes, kernels = op.output_shape.array.tolist()[1:3], op.filter.array.shape[1:3]
    if op.padding == "VALID":
        return all(kernel <= size for kernel, size in zip(kernels, sizes, strict=True))
    strides, dims = (op.stride_h, op.stride_w), (op.input.type.shape or (None,) * 4)[1:3]
    return all(
        kernel >= stride and dim in (None, -(-size // stride))
        for kernel, stride, dim, size in zip(kernels, strides, dims, sizes, strict=True)
    )


def _weights_fit(op: Op, weights: Value, x: UniformQuantizedType, y: UniformQuantizedType) -> bool:
    element = weights.type.element
    if isinstance(element, UniformQuantizedPerAxisType):
        axis = 3 if isinstance(op, DepthwiseConv2D) else 0
        if element.storage is not i8 or (element.scales.size > 1 and element.axis != axis):
            return False
        scales = element.scales
    elif isinstance(element, UniformQuantizedType):
        if element.storage is ui8 and _axis_of_one_scale(weights):
            return False
        scales = np.asarray([element.scale], np.float32)
        if element.storage is i8 and element.zero_point and not isinstance(op, TransposeConv):
            return False
    else:
        return False
    if element.storage not in (i8, ui8) or (element.storage is ui8) != (x.storage is ui8):
        return False
    if isinstance(op, FullyConnected) and weights.type.rank != 2:
        return False
    if not scales.size:
        return True
    with np.errstate(all="ignore"):
        return bool(np.float32(x.scale) * scales.max() / np.float32(y.scale) < LARGEST_FACTOR)


def _adds(op: Add | Sub) -> bool:
    types = _bytes(op.lhs, op.rhs, op.result)
    return bool(types) and all(2.0**-10 <= _ratio(x, types[2]) < 256 for x in types[:2])


def _multiplies(op: Mul) -> bool:
    types = _bytes(op.lhs, op.rhs, op.result)
    if not types:
        return False
    x, y, result = (np.float32(e.scale) for e in types)
    with np.errstate(all="ignore"):
        return bool(2.0**-16 <= x * y / result < 256)


def _leaks(op: LeakyRelu) -> bool:
    types = _bytes(op.input, op.result)
    if not types:
        return False
    above = _ratio(*types)
    below = float(np.float32(above) * np.float32(op.alpha))
    return 2.0**-8 <= above <= 128 and -127.99609375 <= below <= 128 and abs(below) >= 2.0**-8


def _quantizes(op: Quantize) -> bool:
    if op.input.type.storage is f32:
        return _byte(op.result) is not None
    types = _bytes(op.input, op.result)
    return bool(types) and 2.0**-8 <= _ratio(*types) <= 128


def _reduces(op: Mean | Sum | ReduceMax | ReduceMin) -> bool:
    return bool(_bytes(op.input, op.result)) and op.axes.is_constant and op.axes.array.size > 0


def _resizes(op: ResizeBilinear) -> bool:
    return _byte(op.input) is not None and op.size.is_constant


def _looks_up(op: Logistic | Tanh | Elu) -> bool:
    types = _bytes(op.input, op.result)
    return bool(types) and (not isinstance(op, Elu) or types[0].storage is i8)


def _multiplies_matrices(op: BatchMatMul) -> bool:
    types = _bytes(op.lhs, op.rhs, op.result)
    return bool(types) and types[0].storage is i8 and types[1].zero_point == 0


_TAKES: Final[Mapping[type[Op], Callable[[Any], bool]]] = {
    **dict.fromkeys((Conv2D, DepthwiseConv2D, FullyConnected, TransposeConv), _sums_products),
    **dict.fromkeys((Add, Sub), _adds),
    Mul: _multiplies,
    LeakyRelu: _leaks,
    Quantize: _quantizes,
    **dict.fromkeys((Mean, Sum, ReduceMax, ReduceMin), _reduces),
    ResizeBilinear: _resizes,
    **dict.fromkeys((Logistic, Tanh, Elu), _looks_up),
    BatchMatMul: _multiplies_matrices,
}
"""Whether the delegate takes a node. Movers of elements compute the same in both."""
