"""Operators on real numbers as the one operator that compilers look for, where the lowering on float32 has others."""

from __future__ import annotations

from math import prod

from tflq.dialects.onnx import elementwise as onnx
from tflq.dialects.onnx.convolution import Gemm, Resize
from tflq.dialects.onnx.movement import ReduceMean
from tflq.dialects.tfl import activation as tfl
from tflq.dialects.tfl.casts import Dequantize, Quantize
from tflq.dialects.tfl.convolution import FullyConnected
from tflq.dialects.tfl.joining import Concatenation
from tflq.dialects.tfl.pooling import ResizeBilinear, ResizeNearestNeighbor
from tflq.dialects.tfl.reduction import Mean
from tflq.errors import Refused
from tflq.ir.types import f32
from tflq.numerics.elementwise import BOUNDS
from tflq.onnx.lowering.activation import CLAMPS
from tflq.onnx.lowering.context import Onnx, static
from tflq.onnx.lowering.held import Form, Held
from tflq.onnx.lowering.movement import numbers
from tflq.onnx.qdq.engine import pattern


@pattern(Quantize, Dequantize)
def cast(op: Quantize | Dequantize, t: Onnx) -> Held:
    """The casts are all of it."""
    return t.held(op.input)


@pattern(FullyConnected)
def fully_connected(op: FullyConnected, t: Onnx) -> Held:
    """GEMM of rows and of the weights as they are stored."""
    shape, (depth,) = op.output.type.shape, static((op.weights.type.shape or ())[1:])
    if shape is None or op.weights_format != "DEFAULT":
        raise Refused("a FULLY_CONNECTED with shuffled weights, or whose rank is not known")
    rows = t.value(op.input)
    if len(rows.type.shape or ()) != 2 or rows.type.shape[-1:] != (depth,):  # type: ignore[index]
        rows = t.reshape(rows, (None if None in shape else prod(static(shape[:-1])), depth))
    bias = [] if op.bias is None else [t.value(op.bias)]
    y = t.emit(Gemm, [rows, t.value(op.weights), *bias], transB=1)
    return t.made(y if len(shape) == 2 else t.reshape(y, shape), op.output)


@pattern(Mean)
def mean(op: Mean, t: Onnx) -> Held:
    """REDUCEMEAN; of whole images with channels first, if they lie so."""
    rank = len(op.input.type.shape or ())
    axes = sorted({a % rank for a in numbers(op.axes)})
    held = t.held(op.input)
    if held.first and axes == [*range(1, rank - 1)]:
        x, axes = held.get(t, Form(f32, first=True)), [*range(2, rank)]
        return t.made(t.reduce(ReduceMean, x, axes, keep=op.keep_dims), op.output, first=op.keep_dims)
    return t.made(t.reduce(ReduceMean, t.value(op.input), axes, keep=op.keep_dims), op.output)


@pattern(Concatenation)
def concatenate(op: Concatenation, t: Onnx) -> Held:
    """CONCAT; with channels first, if all operands lie so."""
    helds = [t.held(v) for v in op.operands if v is not None]
    rank = len(op.output.type.shape or ())
    axis, first = op.axis % rank, rank > 2 and all(held.first for held in helds)
    if first:
        axis = {0: 0, rank - 1: 1}.get(axis, axis + 1)
    xs = [held.get(t, Form(f32, first=first)) for held in helds]
    return t.made(t.concat(xs, axis), op.output, first=first)


@pattern(tfl.Softmax)
def softmax(op: tfl.Softmax, t: Onnx) -> Held:
    x = t.value(op.input)
    x = x if op.beta == 1 else t.mul(x, t.like(op.beta, x))
    return t.made(t.emit(onnx.Softmax, [x], axis=-1), op.result)


@pattern(*CLAMPS)
def clamp(op: tfl.ScaledActivation, t: Onnx) -> Held:
    """RELU or CLIP."""
    low, high = BOUNDS[CLAMPS[type(op)]]
    if low is None or high is None:
        return t.elementwise(t.relu, [op.input], op.output)
    return t.elementwise(lambda x: t.clip(x, low, high), [op.input], op.output)


@pattern(tfl.LeakyRelu)
def leaky_relu(op: tfl.LeakyRelu, t: Onnx) -> Held:
    return t.elementwise(lambda x: t.emit(onnx.LeakyRelu, [x], alpha=op.alpha), [op.input], op.result)


@pattern(tfl.Prelu)
def prelu(op: tfl.Prelu, t: Onnx) -> Held:
    return t.elementwise(lambda x, alpha: t.emit(onnx.PRelu, [x, alpha]), [op.input, op.alpha], op.result)


@pattern(tfl.HardSwish)
def hard_swish(op: tfl.HardSwish, t: Onnx) -> Held:
    return t.elementwise(lambda x: t.emit(onnx.HardSwish, [x]), [op.input], op.result)


@pattern(ResizeBilinear, ResizeNearestNeighbor)
def resize(op: ResizeBilinear | ResizeNearestNeighbor, t: Onnx) -> Held:
    """RESIZE. TFLite rounds the place of a nearest element up from the middle, or down where no flag is set."""
    place = "align_corners" if op.align_corners else "half_pixel" if op.half_pixel_centers else "asymmetric"
    mode = "linear" if isinstance(op, ResizeBilinear) else "nearest"
    nearest = "floor" if place == "asymmetric" else "round_prefer_ceil"
    batch, height, width, channels = static(op.output.type.shape)
    sizes = t.vector([batch, channels, height, width])
    x = t.held(op.input).get(t, Form(f32, first=True))
    operands = [x, None, None, sizes]
    y = t.emit(Resize, operands, mode=mode, coordinate_transformation_mode=place, nearest_mode=nearest)
    return t.made(y, op.output, first=True)
