"""Convolutions and products of matrices: sums of products of whole numbers in float32, exact below 2^24; and of real
numbers.

Zero points are taken off before, so that padding is 0. Bounds of all partial sums say whether float32 holds them, in
whatever order they are added. Where it does not, int16 numbers are taken apart, 256 times a signed byte plus an
unsigned one, and the channels of the input into as many runs as it takes; what these give is added in int32 or int64,
as is a bias that float32 sums have no room for. Sources: kernels/conv.cc, depthwise_conv.cc, transpose_conv.cc,
conv3d.cc, fully_connected.cc, batch_matmul.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from tflq.analysis.hybrid import BLOCKS, BLOCKS_REMEDY, REMEDY, rounding_of
from tflq.base.errors import Refused
from tflq.dialects.tfl import convolution as tfl
from tflq.dialects.tosa.convolution import Conv2D, Conv3D, DepthwiseConv2D, MatMul, TransposeConv2D
from tflq.formats.onnx.arithmetic import activated
from tflq.formats.onnx.context import Layout, Onnx, OnnxTensor, TensorForm, channel_row, lowering, static, turned
from tflq.formats.onnx.dialect import ConvTranspose
from tflq.ir.ops import Op, Value
from tflq.ir.types import UniformQuantizedSubChannelType, f32, i4, i32, i64, parameters
from tflq.numerics.convolution import window
from tflq.numerics.float_basics import ProductBounds, signed_sums

Convolution: TypeAlias = Conv2D | Conv3D | DepthwiseConv2D | TransposeConv2D
Apply: TypeAlias = Callable[[Value, Value, "Value | None"], Value]
"""The float32 operator: of an operand, weights and a bias."""

_BYTE = 256


class Operand(NamedTuple):
    """Numbers in float32, and their bounds. axis: the dim that is summed over."""

    value: Value
    low: int
    high: int
    axis: int


class Weights(NamedTuple):
    """Weights in float32: those of some inputs, by a slice; the `signed_sums` of these, [outputs, inputs] or
    [1, inputs]."""

    of: Callable[[slice], Value]
    positive: np.ndarray
    negative: np.ndarray


Pieces: TypeAlias = list[tuple[int, "Operand"]]
"""An operand as a sum of others, each with a factor."""


# Convolutions.


@lowering(Conv2D, Conv3D)
def convolve(op: Conv2D | Conv3D, t: Onnx) -> OnnxTensor:
    """CONV; of windows of one element on images of one MATMUL."""
    spatial = range(1, len(op.weight.type.dims) - 1)
    sizes = [v.type.dims[i] for v in (op.input, op.weight) for i in spatial]
    if all(d == 1 for d in sizes) and not any(op.pad):
        return _rows(op, t)
    weights = _weights(op, t, lambda w: np.moveaxis(w, -1, 1), lambda x: turned(t, x, first=True), 1)
    return _summed(t, op.result, _input(op, t), weights, op.bias, _conv(op, t, 1), first=True)


@lowering(DepthwiseConv2D)
def convolve_depthwise(op: DepthwiseConv2D, t: Onnx) -> OnnxTensor:
    """Weights [height, width, channels, multiplier] as [channels * multiplier, 1, height, width]: all filters have one
    input."""
    *kernel, channels, multiplier = static(op.weight.type.shape)

    def moved(x: Value) -> Value:
        return t.reshape(t.transpose(x, (2, 3, 0, 1)), (channels * multiplier, 1, *kernel))

    def arranged(w: np.ndarray) -> np.ndarray:
        return w.transpose(2, 3, 0, 1).reshape(channels * multiplier, 1, *kernel)

    weights = _weights(op, t, arranged, moved, 1)
    return _summed(t, op.result, _input(op, t), weights, op.bias, _conv(op, t, channels), first=True)


@lowering(TransposeConv2D)
def convolve_transposed(op: TransposeConv2D, t: Onnx) -> OnnxTensor:
    weights = _weights(op, t, lambda w: w.transpose(3, 0, 1, 2), lambda x: t.transpose(x, (3, 0, 1, 2)), 0)
    apply = _transposed(t, op.out_pad, op.stride)
    return _summed(t, op.result, _input(op, t), weights, op.bias, apply, first=True)


def _transposed(t: Onnx, out_pad: Sequence[int], strides: Sequence[int]) -> Apply:
    """CONVTRANSPOSE crops what out_pad has below 0; PAD adds what it has above."""
    top, bottom, left, right = out_pad
    crop, grow = ([max(sign * n, 0) for n in (top, left, bottom, right)] for sign in (-1, 1))

    def apply(x: Value, w: Value, bias: Value | None) -> Value:
        y = t.emit(ConvTranspose, [x, w], f32, strides=tuple(strides), pads=tuple(crop))
        y = t.pad(y, [0, 0, *grow[:2]], [0, 0, *grow[2:]])
        return y if bias is None else t.add(y, t.reshape(bias, (*bias.type.dims, 1, 1)))

    return apply


def _rows(op: Conv2D | Conv3D, t: Onnx) -> OnnxTensor:
    outputs, *_, inputs = static(op.weight.type.shape)

    def moved(x: Value) -> Value:
        return t.transpose(t.reshape(x, (outputs, inputs)), (1, 0))

    weights = _weights(op, t, lambda w: w.reshape(outputs, inputs).T, moved, 0)
    return _summed(t, op.result, _input(op, t, first=False), weights, op.bias, _matmul(t), first=False)


def _conv(op: Conv2D | Conv3D | DepthwiseConv2D, t: Onnx, group: int) -> Apply:
    pads = [*op.pad[::2], *op.pad[1::2]]

    def apply(x: Value, w: Value, bias: Value | None) -> Value:
        return t.conv(x, w, bias, strides=op.stride, pads=pads, dilations=op.dilation, group=group)

    return apply


def _matmul(t: Onnx) -> Apply:
    def apply(x: Value, w: Value, bias: Value | None) -> Value:
        return t.matmul(x, w) if bias is None else t.add(t.matmul(x, w), bias)

    return apply


def _input(op: Convolution, t: Onnx, *, first: bool = True) -> Operand:
    """The operand less its zero point."""
    axis = 1 if first else len(op.input.type.dims) - 1
    if op.input.type.storage.is_float:
        return Operand(t.tensor(op.input).get(t, TensorForm(f32, first=first)), 0, 0, axis)
    return _whole(t, op.input, op.input_zp, axis, first=first)


def _whole(t: Onnx, x: Value, zero_point: int, axis: int, *, first: bool = False) -> Operand:
    """Whole numbers less a zero point."""
    low, high = t.bounds(x)
    return Operand(t.whole(x, zero_point, first=first), low - zero_point, high - zero_point, axis)


def _weights(
    op: Convolution, t: Onnx, arranged: Callable[[np.ndarray], np.ndarray], moved: Callable[[Value], Value], axis: int
) -> list[tuple[int, Weights]]:
    """The weights less their zero point, with factors. arranged, moved: their dims in another order, of an array or of
    a tensor; axis: that of the inputs then."""
    depthwise = isinstance(op, DepthwiseConv2D)
    if op.weight.type.storage.is_float:
        w = t.constant(arranged(op.weight.array), f32) if op.weight.is_constant else moved(t.value(op.weight))
        return [(1, Weights(lambda _: w, np.zeros((1, 1)), np.zeros((1, 1))))]
    if not op.weight.is_constant:
        shape = static(op.weight.type.shape)
        taps = int(np.prod(shape[:2] if depthwise else shape[1:-1]))
        whole = _whole(t, op.weight, op.weight_zp, axis)
        whole = whole._replace(value=moved(whole.value))
        return [(1, _computed(t, whole, 1 if depthwise else shape[-1], taps))]
    array = arranged(op.weight.array)

    def piece(stored: np.ndarray, zero_point: int) -> Weights:
        def of(inputs: slice) -> Value:
            cut = stored[inputs] if axis == 0 else stored[:, inputs]
            x = t.stored(np.ascontiguousarray(cut), f32)
            return t.sub(x, t.constant(float(zero_point), f32)) if zero_point else x

        rows = np.moveaxis(stored, axis, 1).astype(np.float32) - np.float32(zero_point)
        return Weights(of, *signed_sums(rows, tuple(range(2, rows.ndim))))

    if array.dtype != np.int16:
        return [(1, piece(array, op.weight_zp))]
    wide = array.astype(np.int64) - op.weight_zp
    return [(_BYTE, piece(wide >> 8, 0)), (1, piece(wide & (_BYTE - 1), 0))]


def _computed(t: Onnx, x: Operand, inputs: int, taps: int) -> Weights:
    """Weights that are computed: of each input the most that so many can be."""

    def of(some: slice) -> Value:
        return x.value if some == slice(0, inputs) else t.part(x.value, x.axis, some.start, some.stop)

    row = np.full((1, inputs), float(taps))
    return Weights(of, row * max(x.high, 0), row * min(x.low, 0))


# Products of matrices.


@lowering(MatMul)
def matmul(op: MatMul, t: Onnx) -> OnnxTensor:
    return _product(t, op.input1, op.input2, (op.a_zp, op.b_zp), op.result)


def _product(t: Onnx, left: Value, right: Value, zero_points: tuple[int, int], result: Value) -> OnnxTensor:
    """[..., M, K] times [..., K, N]."""
    if result.type.storage.is_float:
        return t.bind(t.matmul(t.value(left), t.value(right)), result)
    depth = (left.type.shape or (None,))[-1] or (right.type.shape or (None, None))[-2]
    if depth is None:
        raise Refused("the number of products that are summed is not known")
    x = _whole(t, left, zero_points[0], len(left.type.dims) - 1)
    y = _whole(t, right, zero_points[1], len(right.type.dims) - 2)
    weights = [(factor, _computed(t, piece, depth, 1)) for factor, piece in _pieces(t, y)]
    return _summed(t, result, x, weights, None, _matmul(t), first=False)


# Sums that float32 holds.


def _pieces(t: Onnx, x: Operand) -> Pieces:
    """Numbers of more than 9 bits as 256 times a signed byte plus an unsigned one."""
    if x.low >= -512 and x.high <= 512:
        return [(1, x)]
    upper = t.floor(t.powered(x.value, 8))
    lower = t.sub(x.value, t.mul(upper, t.constant(float(_BYTE), f32)))
    return [(_BYTE, Operand(upper, x.low >> 8, x.high >> 8, x.axis)), (1, Operand(lower, 0, _BYTE - 1, x.axis))]


def _summed(
    t: Onnx,
    result: Value,
    x: Operand,
    weights: Sequence[tuple[int, Weights]],
    bias: Value | None,
    apply: Apply,
    *,
    first: bool,
) -> OnnxTensor:
    """The sum of products and a bias, in float32 alone, or of several sums in integers."""
    if result.type.storage.is_float:
        row = None if bias is None else t.value(bias)
        return t.bind(apply(x.value, weights[0][1].of(slice(0, 1)), row), result, first=first)
    if bias is not None and not bias.is_constant:
        raise Refused(f"the bias '{bias.name}' is computed")
    offsets = np.zeros(1, np.int64) if bias is None else bias.array.astype(np.int64)
    least, most = offsets.astype(np.float64), offsets.astype(np.float64)
    bounds = [ProductBounds(part.positive, part.negative, x.low, x.high) for _, part in weights]
    for (factor, _), part in zip(weights, bounds, strict=True):
        below, above = part.ends
        least, most = least + factor * below, most + factor * above
    ends = int(least.min()), int(most.max())
    if len(weights) == 1:
        sum_of = _Sum(t, x, weights[0][1].of, bounds[0], apply)
        y = sum_of(None if bias is None else offsets.astype(np.float64))
        if y is not None:
            tensor = t.bind(y, result, first=first)
            tensor.low, tensor.high = ends
            tensor.channels = least.astype(np.int64), most.astype(np.int64)
            tensor.again = lambda added, falls: sum_of(offsets * (-1.0 if falls else 1.0) + added, falls=falls)
            return tensor
    terms = _terms(t, x, weights)
    element = i32 if min(ends[0], 0) >= -(1 << 31) and max(ends[1], 0) < 1 << 31 else i64
    total: Value | None = None
    for factor, operand, of, runs in terms:
        for run in runs:
            whole = len(runs) == 1
            piece = operand.value if whole else t.part(operand.value, operand.axis, run.start, run.stop)
            y = t.cast(apply(piece, of(run), None), element)
            y = t.mul(y, t.constant(factor, element)) if factor != 1 else y
            total = y if total is None else t.add(total, y)
    assert total is not None
    if bias is not None and offsets.any():
        layout = Layout(len(result.type.dims), first)
        total = t.add(total, channel_row(t, offsets, element, layout))
    tensor = t.bind(total, result, first=first).within(*ends)
    if element == i32:
        tensor.channels = least.astype(np.int64), most.astype(np.int64)
    return tensor


class _Sum(NamedTuple):
    """A sum of products in float32, which is exact with some biases."""

    t: Onnx
    x: Operand
    weights: Callable[[slice], Value]
    bounds: ProductBounds
    apply: Apply

    def __call__(self, bias: np.ndarray | None, *, falls: bool = False) -> Value | None:
        """The sum, with a bias of whole numbers; `falls`: with weights of the other sign. None if it is not exact."""
        outputs, inputs = self.bounds.positive.shape
        added = np.zeros(1) if bias is None else bias
        alone = self.bounds.sums[0] == self.bounds.sums[1]  # without weights: what float32 makes of the bias
        runs = self.bounds.runs(np.where(alone, 0, -added if falls else added))  # sums of the other sign are as exact
        if runs != [slice(0, inputs)] or (alone & (np.float32(added) != added)).any():
            return None
        w = self.weights(slice(0, inputs))
        row = (
            None
            if bias is None
            else self.t.stored(np.broadcast_to(bias, (max(outputs, bias.size),)).astype(np.int64), f32)
        )
        return self.apply(self.x.value, self.t.negative(w) if falls else w, row)


Term: TypeAlias = "tuple[int, Operand, Callable[[slice], Value], list[slice]]"


def _terms(t: Onnx, x: Operand, weights: Sequence[tuple[int, Weights]]) -> list[Term]:
    """The sums that make the whole, with factors and with runs of inputs: of numbers as they are or of their halves,
    whichever are fewer."""
    choices = []
    for pieces in ([(1, x)], _pieces(t, x)):
        terms: list[Term] = []
        for up, operand in pieces:
            for factor, part in weights:
                runs = ProductBounds(part.positive, part.negative, operand.low, operand.high).runs()
                terms.append((up * factor, operand, part.of, runs or []))
        if all(runs for *_, runs in terms):
            choices.append(terms)
    if not choices:
        raise Refused("float32 holds no sum of so many products")
    return min(choices, key=lambda terms: sum(len(runs) for *_, runs in terms))


# Convolutions and products of float32: what the float fallback computes between casts, and TOSA's on floats.
#
# Quantized constants are dequantized. Sources: kernels/conv.cc, depthwise_conv.cc, fully_connected.cc, reduce.cc.


@lowering(tfl.Conv2D)
def convolve_real(op: tfl.Conv2D, t: Onnx) -> OnnxTensor:
    weights = turned(t, factor(op, t, op.filter), first=True)
    channels, inside = (op.input.type.shape or (None,))[-1], (op.filter.type.shape or (None,))[-1]
    if not channels or not inside:
        raise Refused("the number of channels is not known")
    return _convolved(op, t, weights, channels // inside)


@lowering(tfl.DepthwiseConv2D)
def convolve_depthwise_real(op: tfl.DepthwiseConv2D, t: Onnx) -> OnnxTensor:
    """Weights [1, height, width, channels * multiplier] as [channels * multiplier, 1, height, width]."""
    (channels,) = static((op.input.type.shape or (None,))[-1:])
    return _convolved(op, t, t.transpose(factor(op, t, op.filter), (3, 0, 1, 2)), channels)


def _convolved(op: tfl.Conv2D | tfl.DepthwiseConv2D, t: Onnx, weights: Value, group: int) -> OnnxTensor:
    strides, dilations = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    return _windows(op, t, weights, strides, dilations, group)


def _windows(
    op: tfl.Conv2D | tfl.DepthwiseConv2D | tfl.Conv3D,
    t: Onnx,
    weights: Value,
    strides: Sequence[int],
    dilations: Sequence[int],
    group: int,
) -> OnnxTensor:
    if op.output.type.storage != f32:
        raise Refused(f"a convolution of plain {op.output.type.storage}")
    x = t.tensor(op.input).get(t, TensorForm(f32, first=True))
    kernel = static(weights.type.shape)[2:]
    pads = padding(op.input.type.dims[1:-1], kernel, strides, dilations, op.padding)
    bias = None if op.bias is None else real(t, op.bias)
    y = real_sum(op, t.conv(x, weights, bias, strides=strides, pads=pads, dilations=dilations, group=group))
    return t.bind(activated(t, y, op.fused_activation_function), op.output, first=True)


@lowering(tfl.Conv3D)
def convolve_3d_real(op: tfl.Conv3D, t: Onnx) -> OnnxTensor:
    """Weights [depth, height, width, inputs, outputs]."""
    weights = t.transpose(factor(op, t, op.filter), (4, 3, 0, 1, 2))
    strides = op.stride_d, op.stride_h, op.stride_w
    dilations = op.dilation_d_factor, op.dilation_h_factor, op.dilation_w_factor
    return _windows(op, t, weights, strides, dilations, 1)


@lowering(tfl.TransposeConv)
def convolve_transposed_real(op: tfl.TransposeConv, t: Onnx) -> OnnxTensor:
    """The kernel puts the first element of the result at the padding of the convolution that it is the transpose of."""
    (_, *kernel, _), strides = static(op.filter.type.shape), (op.stride_h, op.stride_w)
    out, size = static(op.output.type.dims[1:3]), static(op.input.type.dims[1:3])
    places = [window(*row, 1, op.padding) for row in zip(out, kernel, strides, strict=True)]
    if [place and place.output for place in places] != list(size):
        raise Refused(f"an input of {size} does not make a result of {out}")
    before = [place.before for place in places if place is not None]
    ends = [(n - 1) * s + k - a for n, s, k, a in zip(size, strides, kernel, before, strict=True)]
    pads = [-before[0], out[0] - ends[0], -before[1], out[1] - ends[1]]
    x = t.tensor(op.input).get(t, TensorForm(f32, first=True))
    weights = t.transpose(factor(op, t, op.filter), (3, 0, 1, 2))
    y = real_sum(op, _transposed(t, pads, strides)(x, weights, None if op.bias is None else real(t, op.bias)))
    return t.bind(activated(t, y, op.fused_activation_function), op.output, first=True)


def padding(
    sizes: Sequence[int | None], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], kind: str
) -> list[int]:
    """The padding of SAME or VALID: numbers before each dim, then numbers after each."""
    before, after = [], []
    for size, extent, step, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        place = window(size, extent, step, dilation, kind)
        if place is None or place.output is None or size is None:
            raise Refused("the size of an image is not known before a run")
        reach = (place.output - 1) * step + (extent - 1) * dilation + 1
        total = max(reach - size, 0) if kind == "SAME" else 0
        before.append(total // 2)
        after.append(total - total // 2)
    return [*before, *after]


@lowering(tfl.FullyConnected)
def fully_connected(op: tfl.FullyConnected, t: Onnx) -> OnnxTensor:
    """Rows by the transpose of the weights."""
    if op.output.type.storage != f32 or op.weights_format != "DEFAULT":
        raise Refused("a FULLY_CONNECTED of plain integers, or with shuffled weights")
    depth, shape = static(op.weights.type.dims[1:]), op.output.type.shape
    rows = t.reshape(t.value(op.input), (None, *depth))
    y = real_sum(op, t.matmul(rows, t.transpose(factor(op, t, op.weights), (1, 0))))
    y = y if op.bias is None else t.add(y, t.value(op.bias))
    y = activated(t, y, op.fused_activation_function)
    if shape is None:
        raise Refused("the rank that it makes is not known")
    return t.bind(t.reshape(y, shape), op.output)


@lowering(tfl.BatchMatMul)
def batch_matmul(op: tfl.BatchMatMul, t: Onnx) -> OnnxTensor:
    if not op.output.type.storage.is_float:
        raise Refused("BATCH_MATMUL of plain integers")
    x, y = _adjoint(t, t.value(op.lhs), op.adj_x), _adjoint(t, factor(op, t, op.rhs), op.adj_y)
    return t.bind(real_sum(op, t.matmul(x, y)), op.output)


def _adjoint(t: Onnx, x: Value, adjoint: bool) -> Value:
    *outer, rows, columns = range(len(x.type.dims))
    return t.transpose(x, (*outer, columns, rows)) if adjoint else x


def real(t: Onnx, operand: Value) -> Value:
    """An operand in float32; constants that are stored in integers are cast and scaled."""
    if not operand.type.quantized:
        if not operand.type.storage.is_float:
            raise Refused(f"'{operand.name}' is plain {operand.type.storage} among real numbers")
        return t.value(operand)
    scale, zero_point = parameters(operand.type)
    axis = getattr(operand.type.element, "axis", 0)
    rank = len(operand.type.dims)
    if isinstance(operand.type.element, UniformQuantizedSubChannelType):
        return _of_blocks(t, operand, operand.type.element)
    shape = [-1 if i == axis else 1 for i in range(rank)] if np.size(scale) > 1 else []
    stored = t.stored(operand.array.astype(np.int64), f32)
    if np.any(zero_point):
        stored = t.sub(stored, t.constant(np.reshape(zero_point, shape), f32))
    return t.mul(stored, t.constant(np.reshape(scale, shape), f32))


def _of_blocks(t: Onnx, operand: Value, element: UniformQuantizedSubChannelType) -> Value:
    """A constant with a scale per block: each dim is that of the blocks and that within one."""
    shape = static(operand.type.shape)
    sizes = [dict(zip(element.axes, element.block_sizes, strict=True)).get(axis, dim) for axis, dim in enumerate(shape)]
    split = [n for dim, size in zip(shape, sizes, strict=True) for n in (dim // size, size)]
    per_block = [n for dim, size in zip(shape, sizes, strict=True) for n in (dim // size, 1)]
    if element.zero_points.any() or any(dim % size for dim, size in zip(shape, sizes, strict=True)):
        raise Refused(f"the blocks of '{operand.name}' are not whole, or have zero points")
    stored = t.reshape(t.stored(operand.array.astype(np.int64), f32), split)
    return t.reshape(t.mul(stored, t.constant(element.scales.reshape(per_block), f32)), shape)


def factor(op: Op, t: Onnx, operand: Value) -> Value:
    """Weights in float32. Of quantized ones a warning says how far the product is from the hybrid kernel's."""
    if not operand.type.quantized:
        return real(t, operand)
    if isinstance(operand.type.element, UniformQuantizedSubChannelType):
        if not (isinstance(op, tfl.FullyConnected) and operand.type.storage == i4):
            raise Refused(f"the kernel reads one scale, but '{operand.name}' has one per block")
        t.warn(BLOCKS.format(operand.name), "inexact", BLOCKS_REMEDY)
    t.warn(rounding_of(op, "ONNX's operators"), "inexact", REMEDY)
    return real(t, operand)


def real_sum(op: Op, y: Value) -> Value:
    """A sum of real numbers, which a runtime takes in an order of its own: it is exact in none. That of a hybrid
    operator is another one than the kernel's, too."""
    assert y.producer is not None
    y.producer.info = {"sums": "hybrid" if any(v.type.quantized for v in op.present_operands) else "real"}
    return y
