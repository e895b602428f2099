"""Operators on real numbers as the one operator that compilers look for, where the lowering on float32 has others."""

from __future__ import annotations

from math import prod

from tflq.dialects.onnx import elementwise as onnx
from tflq.dialects.onnx.convolution import Gemm
from tflq.dialects.onnx.movement import ReduceMean
from tflq.dialects.tfl import activation as tfl
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.tfl.convolution import FullyConnected
from tflq.dialects.tfl.reduction import Mean
from tflq.errors import Refused
from tflq.onnx.lowering.context import Onnx, static
from tflq.onnx.lowering.held import Held
from tflq.onnx.lowering.movement import numbers
from tflq.onnx.qdq.engine import pattern


@pattern(Quantize, Dequantize)
def cast(op: Quantize | Dequantize, t: Onnx) -> Held:
    """The casts are all of it."""
    return t.held(op.input)


@pattern(FullyConnected)
def fully_connected(op: FullyConnected, t: Onnx) -> Held:
    """GEMM of rows and of the weights as they are stored."""
    shape, depth = op.output.type.shape, static((op.weights.type.shape or ())[1:])
    if shape is None or op.weights_format != "DEFAULT":
        raise Refused("a FULLY_CONNECTED with shuffled weights, or whose rank is not known")
    rows = t.reshape(t.value(op.input), (None, *depth) if None in shape else (prod(static(shape[:-1])), *depth))
    bias = [] if op.bias is None else [t.value(op.bias)]
    y = t.emit(Gemm, [rows, t.value(op.weights), *bias], transB=1)
    return t.made(t.reshape(y, shape), op.output)


@pattern(Mean)
def mean(op: Mean, t: Onnx) -> Held:
    """REDUCEMEAN."""
    rank = len(op.input.type.shape or ())
    axes = sorted({a % rank for a in numbers(op.axes)})
    return t.made(t.reduce(ReduceMean, t.value(op.input), axes, keep=op.keep_dims), op.output)


@pattern(tfl.Softmax)
def softmax(op: tfl.Softmax, t: Onnx) -> Held:
    x = t.value(op.input)
    x = x if op.beta == 1 else t.mul(x, t.like(op.beta, x))
    return t.made(t.emit(onnx.Softmax, [x], axis=-1), op.result)


@pattern(tfl.LeakyRelu)
def leaky_relu(op: tfl.LeakyRelu, t: Onnx) -> Held:
    return t.elementwise(lambda x: t.emit(onnx.LeakyRelu, [x], alpha=op.alpha), [op.input], op.result)


@pattern(tfl.Prelu)
def prelu(op: tfl.Prelu, t: Onnx) -> Held:
    return t.elementwise(lambda x, alpha: t.emit(onnx.PRelu, [x, alpha]), [op.input, op.alpha], op.result)


@pattern(tfl.HardSwish)
def hard_swish(op: tfl.HardSwish, t: Onnx) -> Held:
    return t.elementwise(lambda x: t.emit(onnx.HardSwish, [x]), [op.input], op.result)
