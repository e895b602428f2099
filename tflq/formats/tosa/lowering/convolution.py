"""Convolutions: TFLite's in float, and those of the integer form.

TFLite's filters are OHWI as TOSA's, [1, H, W, C * M] for depthwise ones (TOSA: [H, W, C, M]) and DHWIO in CONV_3D
(TOSA: ODHWI). Sources: kernels/conv.cc, depthwise_conv.cc, conv3d.cc, transpose_conv.cc.

On integers TOSA has i8 by i8 or i4 into i32, and i16 by i8 into i48. A sum of i16 that the integer form has in i32 is
RESCALEd by one. i16 by i16 is a MATMUL, whose rows end in constants that make the bias: i48 cannot be added. Zero
points move with uint8 tensors (`context.py`). Weights of nine bits, which per-axis uint8 ones less
their zero points are, are sums of two int8 ones:

    sum x w = sum x a + sum x b      w = a + b, a the nearest int8 to w

The input is then read twice, as twice as many channels; a depthwise convolution is computed twice. Source: TOSA 1.0
specification, CONV2D, CONV3D, DEPTHWISE_CONV2D, MATMUL.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tflq.analysis.known import known_elements
from tflq.base.errors import Refused
from tflq.dialects.inference import product
from tflq.dialects.tfl.convolution import Conv2D, Conv3D, DepthwiseConv2D, TransposeConv
from tflq.dialects.tfl.movement import Concatenation
from tflq.dialects.tosa.convolution import Conv2D as TosaConv2D
from tflq.dialects.tosa.convolution import Conv3D as TosaConv3D
from tflq.dialects.tosa.convolution import Convolution, MatMul, TransposeConv2D
from tflq.dialects.tosa.convolution import DepthwiseConv2D as TosaDepthwiseConv2D
from tflq.dialects.tosa.movement import Concat, Slice
from tflq.formats.tosa.lowering.context import ONE, Tosa, lowered_value, lowering, part
from tflq.formats.tosa.lowering.floats import factor, fused_activation, need_float, real
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import ScalarType, f32, i4, i8, i16, i32, i64
from tflq.numerics.convolution import crude_bounds, exact_end, window

_BIAS_INPUTS = 3
"""Constant inputs of -32768 by which the i16 product makes a bias of 32 bits."""


def is_grouped(concat: Concat | Concatenation) -> bool:
    """Whether a concatenation is of the 48-bit sums of convolutions."""
    producers = [v.producer for v in concat.present_operands]
    return concat.result.type.storage == i64 and all(isinstance(p, TosaConv2D) for p in producers)


def grouped(concat: Concat | Concatenation, t: Tosa) -> Value:
    """The 48-bit sums of groups of channels, which TOSA cannot CONCAT: one convolution, whose filters are 0 outside
    their group. Refused unless the groups are slices of one tensor, and alike but for filters and bias."""
    parts = [v.producer for v in concat.present_operands if isinstance(v.producer, TosaConv2D)]
    slices = [p.input.producer for p in parts if isinstance(p.input.producer, Slice)]
    sources = [s.input for s in slices]
    attributes = parts[0].attributes
    alike = len(set(sources)) == 1 and len(sources) == len(parts) and all(p.attributes == attributes for p in parts)
    known = all(p.weight.is_constant and p.bias.is_constant for p in parts)
    depth = (sources[0].type.shape or (None,))[-1] if alike else None
    if not known or depth is None:
        raise Refused("TOSA has no CONCAT of 48-bit sums")
    bias = np.concatenate([p.bias.array for p in parts])
    storage = i8 if parts[0].weight.type.storage.bits < 8 else parts[0].weight.type.storage
    filters = np.full((bias.size, *parts[0].weight.array.shape[1:3], depth), parts[0].weight_zp, storage.dtype)
    row = 0
    for convolution, source in zip(parts, slices, strict=True):
        weights, start = convolution.weight.array, source.start[-1]
        filters[row : row + len(weights), ..., start : start + weights.shape[-1]] = weights
        row += len(weights)
    operands: list[Value | None] = [sources[0], constant(filters, storage), constant(bias)]
    whole = Op(TosaConv2D.op_name, operands, [Value(concat.result.type)], attributes, concat.location)
    return lowered_value(whole, t)


def fit_halves(weights: Value) -> tuple[np.ndarray, np.ndarray] | None:
    """Weights of nine bits as a + b; None where these do not fit int8."""
    if not weights.is_constant:
        return None
    near = np.clip(weights.array, i8.minimum, i8.maximum)
    rest = weights.array - near
    if rest.min(initial=0) < i8.minimum or rest.max(initial=0) > i8.maximum:
        return None
    return near.astype(np.int8), rest.astype(np.int8)


def halves(weights: Value, what: str) -> tuple[np.ndarray, np.ndarray]:
    """a and b of `fit_halves`. Refused where they do not fit int8. `what` names the operator."""
    if (parts := fit_halves(weights)) is None:
        raise Refused(f"TOSA has no {what} by weights of int16", "store them in 8 bits")
    return parts


def side_by_side(t: Tosa, x: Value, weights: Value, what: str) -> tuple[Value, Value]:
    """x and weights with twice as many input channels, the last dim of each; as they are if int8 already."""
    if weights.type.storage != i16:
        return x, weights
    near, rest = halves(weights, what)
    if x.type.shape is None or x.type.shape[-1] is None:
        raise Refused("the input's channels are not known")
    return t.concat([x, x], len(x.type.shape) - 1), constant(
        np.ascontiguousarray(np.concatenate([near, rest], axis=-1))
    )


# Windows that slide over rows and columns. TFLite drops what the stride leaves over; in TOSA that is an error, so the
# rest is not padded, or is cut off before.


def extents(kernel: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """The extents of windows: kernel sizes with dilation."""
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))


def fitted(
    t: Tosa,
    x: Value,
    extent: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    output: Sequence[int | None],
) -> tuple[Value, tuple[int, ...]]:
    """x without the elements that no window reads, and `pad` (before and after per dim) to match.

    The windows slide over the dims after the first.
    """
    shape = list(x.type.dims)
    pads: list[int] = []
    for axis, (reach, step, out) in enumerate(zip(extent, stride, output, strict=True), 1):
        before, after = pad[2 * axis - 2], pad[2 * axis - 1]
        size = shape[axis]
        if size is None or out is None:
            if step != 1:
                raise Refused(f"dim {axis} is not known, and TOSA takes only sizes that a stride of {step} uses up")
        elif out < 1:
            raise Refused("the result has no elements")
        else:
            shape[axis], after = exact_end(size, reach, step, before, after, out)
        pads += before, after
    return t.slice(x, [0] * len(shape), shape), tuple(pads)


def same_or_valid(
    x: Value, extent: Sequence[int], stride: Sequence[int], padding: str
) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """TFLite's padding of the dims after the first, before and after each, and the sizes of the result."""
    pads: list[int] = []
    sizes: list[int | None] = []
    for size, reach, step in zip(x.type.dims[1:], extent, stride, strict=False):
        place = window(size, reach, step, 1, padding)
        if place is None:
            raise Refused("SAME padding depends on a height or width that is not known")
        pads += place.before, place.after
        sizes.append(place.output)
    return tuple(pads), tuple(sizes)


@lowering(Conv2D)
def conv_2d(op: Conv2D, t: Tosa) -> Value:
    x, weights = float_operands(op, t, op.input, op.filter, 4)
    outputs, kernel_h, kernel_w, inputs = static_shape(weights)
    depth = x.type.dims[3]
    if not depth or not inputs or depth % inputs:
        raise Refused(f"{depth} channels do not make groups of {inputs}")
    groups, bias = depth // inputs, float_bias(t, op.bias, outputs)
    if groups == 1:
        return _planar(op, t, TosaConv2D, x, weights, bias)
    if not (weights.is_constant and bias.is_constant):
        raise Refused("a grouped convolution with weights or a bias that are not constant")
    if inputs == 1:
        taps = np.moveaxis(weights.array[..., 0], 0, -1).reshape(kernel_h, kernel_w, depth, outputs // depth)
        return _planar(op, t, TosaDepthwiseConv2D, x, constant(np.ascontiguousarray(taps)), bias)
    parts, count = [], outputs // groups
    for group in range(groups):
        rows = slice(group * count, (group + 1) * count)
        group_x = part(t, x, 3, group * inputs, inputs)
        filters, offset = constant(weights.array[rows]), constant(bias.array[rows])
        parts.append(_planar(op, t, TosaConv2D, group_x, filters, offset, activation="NONE"))
    return fused_activation(t, t.concat(parts, 3), op.fused_activation_function)


@lowering(DepthwiseConv2D)
def depthwise_conv_2d(op: DepthwiseConv2D, t: Tosa) -> Value:
    x, weights = float_operands(op, t, op.input, op.filter, 4, 3)
    one, kernel_h, kernel_w, outputs = static_shape(weights)
    depth = x.type.dims[3]
    if one != 1 or not depth or outputs % depth:
        raise Refused(f"{outputs} output channels are not a multiple of {depth} input channels")
    taps = t.reshape(weights, (kernel_h, kernel_w, depth, outputs // depth))
    return _planar(op, t, TosaDepthwiseConv2D, x, taps, float_bias(t, op.bias, outputs))


@lowering(Conv3D)
def conv_3d(op: Conv3D, t: Tosa) -> Value:
    x, weights = float_operands(op, t, op.input, op.filter, 5, 4)
    *kernel, inputs, outputs = static_shape(weights)
    if x.type.dims[4] != inputs:
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
    operands, options = [x, filters, float_bias(t, op.bias, outputs)], {"input_zp": 0, "weight_zp": 0}
    sums = t.emit(TosaConv3D, operands, f32, pad=pad, stride=stride, dilation=dilation, **options)
    return fused_activation(t, sums, op.fused_activation_function)


@lowering(TransposeConv)
def transpose_conv(op: TransposeConv, t: Tosa) -> Value:
    x, weights = float_operands(op, t, op.input, op.filter, 4)
    outputs, kernel_h, kernel_w, inputs = static_shape(weights)
    known = known_elements(op.output_shape)
    size = None if known is None else known.elements()
    _, *planes, depth = x.type.dims
    if size is None or len(size) != 4 or None in (*size[1:], *planes) or depth != inputs:
        raise Refused("the height and width of the input or of the result are not known")
    stride = (op.stride_h, op.stride_w)
    out_pad: list[int] = []
    for source, target, kernel, step in zip(planes, size[1:3], (kernel_h, kernel_w), stride, strict=True):
        place = window(target, kernel, step, 1, op.padding)
        if place is None or source is None or target is None or place.output != source:
            raise Refused(f"an input of {source} does not make a result of {target}")
        out_pad += -place.before, target - ((source - 1) * step + kernel) + place.before
    options = {"out_pad": tuple(out_pad), "stride": stride, "input_zp": 0, "weight_zp": 0}
    sums = t.emit(TransposeConv2D, [x, weights, float_bias(t, op.bias, outputs)], f32, **options)
    return fused_activation(t, sums, op.fused_activation_function)


def float_operands(op: Op, t: Tosa, x: Value, weights: Value, rank: int | None, axis: int = 0) -> tuple[Value, Value]:
    """Input and weights in float; dim `axis` of the weights counts the results. Refused for another rank."""
    need_float(t, op)
    values = real(t, x), factor(op, t, weights, axis)
    if any(v.type.shape is None or (rank is not None and len(v.type.shape) != rank) for v in values):
        raise Refused("the rank of the input or of the weights is not the kernel's, or not known")
    return values


def static_shape(weights: Value) -> tuple[int, ...]:
    """The shape of weights; Refused unless all of it is known."""
    if not weights.type.is_static:
        raise Refused("the weights' shape is not known")
    return weights.type.sizes


def float_bias(t: Tosa, bias: Value | None, outputs: int) -> Value:
    """The bias, zeros if it is left out."""
    return t.constant(np.zeros(outputs), f32) if bias is None else t.reshape(real(t, bias), (outputs,))


def _planar(
    op: Conv2D | DepthwiseConv2D,
    t: Tosa,
    kind: type[TosaConv2D | TosaDepthwiseConv2D],
    x: Value,
    weights: Value,
    bias: Value,
    activation: str | None = None,
) -> Value:
    """A convolution in float with the operator's window, and its activation, or another one."""
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    reach = extents(_kernel(kind, weights), dilation)
    pad, sizes = same_or_valid(x, reach, stride, op.padding)
    x, pad = fitted(t, x, reach, stride, pad, sizes)
    options = {"pad": pad, "stride": stride, "dilation": dilation, "input_zp": 0, "weight_zp": 0}
    sums = t.emit(kind, [x, weights, bias], f32, **options)
    return fused_activation(t, sums, op.fused_activation_function if activation is None else activation)


def _kernel(kind: type[Op], weights: Value) -> list[int]:
    """The spatial dims of a convolution's filters."""
    dims = list(weights.type.sizes)
    return dims[:2] if kind is TosaDepthwiseConv2D else dims[1:-1]


@lowering(TosaConv2D)
def conv2d(op: TosaConv2D, t: Tosa) -> Value:
    x, (weights, zero_point) = t.value(op.input), filters_of(t, op)
    if weights.type.storage == i16 and x.type.storage == i16 and _is_product(op, weights):
        return _wide_product(op, t, x, weights)
    x, weights = side_by_side(t, x, weights, "convolution")
    return _convolved(op, t, x, weights, zero_point)


@lowering(TosaDepthwiseConv2D)
def depthwise_conv2d(op: TosaDepthwiseConv2D, t: Tosa) -> Value:
    x, (weights, zero_point) = t.value(op.input), filters_of(t, op)
    if weights.type.storage != i16:
        return _convolved(op, t, x, weights, zero_point)
    near, rest = halves(weights, "depthwise convolution")
    if op.result.type.storage != i32:
        raise Refused("TOSA adds no sums of 48 bits, which a depthwise convolution by weights of nine bits takes")
    sums = _convolved(op, t, x, constant(near), zero_point)
    none = constant(np.zeros(op.bias.type.sizes, np.int32))
    return t.add(sums, _convolved(op, t, x, constant(rest), zero_point, none))


@lowering(TosaConv3D)
def conv3d(op: TosaConv3D, t: Tosa) -> Value:
    x, (weights, zero_point) = t.value(op.input), filters_of(t, op)
    x, weights = side_by_side(t, x, weights, "convolution in three dims")
    return _convolved(op, t, x, weights, zero_point)


def _convolved(
    op: TosaConv2D | TosaConv3D | TosaDepthwiseConv2D,
    t: Tosa,
    x: Value,
    weights: Value,
    zero_point: int,
    bias: Value | None = None,
) -> Value:
    """The sums, with another bias than the operator's if one is given."""
    kernel = _kernel(type(op), weights)
    sizes = op.result.type.shape or (None,) * (len(kernel) + 2)
    x, pad = fitted(t, x, extents(kernel, op.dilation), op.stride, op.pad, sizes[1:-1])
    inputs = 1 if isinstance(op, TosaDepthwiseConv2D) else weights.type.dims[-1] or 0
    acc = accumulated(t, op, x, weights, prod(kernel) * inputs)
    sums = t.emit(
        type(op),
        [x, weights, bias_like(t, bias or op.bias, acc)],
        acc,
        pad=pad,
        stride=op.stride,
        dilation=op.dilation,
        input_zp=t.zero_point(op.input, op.input_zp),
        weight_zp=zero_point,
    )
    return narrowed(t, sums, op.result.type.storage)


def filters_of(t: Tosa, op: Convolution) -> tuple[Value, int]:
    """The weights and their zero point, as TOSA takes them with the operator's input.

    int4 is widened to int8 where TOSA lacks the product, or the value -8. With int16, which has no zero points, weights
    are less theirs, as int16 where that does not fit int8.
    """
    weights, other = t.value(op.weight), t.storage(op.input)
    zero_point = t.zero_point(op.weight, op.weight_zp)
    if weights.type.storage == i4 and (other != i8 or weights.array.min(initial=0) == i4.minimum):
        weights = constant(np.ascontiguousarray(weights.array.astype(np.int8)))
    if other == i16 and zero_point and weights.is_constant:
        centred = weights.array.astype(np.int16) - np.int16(zero_point)
        narrow = (centred == centred.astype(np.int8)).all()
        weights, zero_point = constant(centred.astype(np.int8) if narrow else centred), 0
    return weights, zero_point


def accumulated(t: Tosa, op: Convolution, x: Value, weights: Value, terms: int) -> ScalarType:
    """The type of TOSA's sums: i32, or i48 (as i64) for int16. Refused where a sum of `terms` products may leave it."""
    if x.type.storage != i16:
        if op.result.type.storage != i32:
            raise Refused("the accumulator can leave the 32 bits that TOSA has for int8")
        return i32
    t.need("int16", "a convolution of int16")
    if op.input_zp or (op.weight_zp and not weights.is_constant):
        raise Refused("TOSA has no zero points with int16")
    offset = op.bias.array if op.bias.is_constant else np.asarray([i32.minimum, i32.maximum])
    low, high = crude_bounds(terms, -weights.type.storage.minimum, i16.minimum, i16.maximum, offset)
    if low < -(1 << 47) or high >= 1 << 47:
        raise Refused("the accumulator can leave the 48 bits that TOSA has for it")
    return i64


def bias_like(t: Tosa, bias: Value, acc: ScalarType) -> Value:
    """The bias in the accumulator's type."""
    x = t.value(bias)
    if x.type.storage == acc:
        return x
    if not x.is_constant:
        raise Refused(f"bias '{bias.name}' is computed in {x.type.storage}, and TOSA cannot widen it to 48 bits")
    return t.constant(x.array, acc)


def narrowed(t: Tosa, sums: Value, to: ScalarType) -> Value:
    """Sums in 48 bits as i32, if the integer form has them so."""
    return t.rescale(sums, ONE, i32) if (sums.type.storage, to) == (i64, i32) else sums


def _is_product(op: TosaConv2D, weights: Value) -> bool:
    """Whether a convolution is one of rows, as a matrix product is."""
    return weights.type.dims[1:3] == (1, 1) and tuple(op.stride) == (1, 1) and not any(op.pad)


def _wide_product(op: TosaConv2D, t: Tosa, x: Value, weights: Value) -> Value:
    """A 1x1 convolution of int16 by int16: MATMUL [1, N, I + 4] by [1, I + 4, O].

    bias = 32768 h + l with 0 <= l < 32768: -h, in three parts, meets inputs of -32768, and l one of 1. Sums in 48 bits
    keep the product's shape, since i48 has no RESHAPE; the result of their RESCALE is reshaped.
    """
    shape = op.result.type.shape
    bias, depth = t.value(op.bias), weights.type.dims[-1] or 0
    if not (weights.is_constant and bias.is_constant) or shape is None or x.type.shape is None:
        raise Refused("weights of int16 or their bias are not constant")
    accumulated(t, op, x, weights, depth)
    offset = bias.array.astype(np.int64)
    if offset.min(initial=0) < i32.minimum or offset.max(initial=0) > i32.maximum:
        raise Refused("a bias of more than 32 bits with weights of int16")
    high, low = offset >> 15, offset & 0x7FFF
    parts = [(i - high) // _BIAS_INPUTS for i in range(_BIAS_INPUTS)]
    rows = np.concatenate([weights.array.reshape(-1, depth).T, *(p[None] for p in parts), low[None]]).astype(np.int16)
    matrix = t.reshape(x, (1, product(x.type.shape[:-1]), depth))
    none = (0, 0)
    matrix = t.pad(t.pad(matrix, (none, none, (0, _BIAS_INPUTS)), i16.minimum), (none, none, (0, 1)), 1)
    sums = t.emit(MatMul, [matrix, constant(rows[None])], i64, a_zp=0, b_zp=0)
    return sums if op.result.type.storage == i64 else t.reshape(narrowed(t, sums, i32), shape)


@lowering(TransposeConv2D)
def transpose_conv2d(op: TransposeConv2D, t: Tosa) -> Value:
    x, (weights, zero_point) = t.value(op.input), filters_of(t, op)
    x, weights = side_by_side(t, x, weights, "transposed convolution")
    _, kernel_h, kernel_w, _ = shape = list(weights.type.sizes)
    top, bottom, left, right = op.out_pad
    if min(top, bottom) <= -kernel_h or min(left, right) <= -kernel_w:
        raise Refused("TOSA takes off less than the filter's size at each edge")
    acc = accumulated(t, op, x, weights, prod(shape[1:]))
    sums = t.emit(
        TransposeConv2D,
        [x, weights, bias_like(t, op.bias, acc)],
        acc,
        out_pad=op.out_pad,
        stride=op.stride,
        input_zp=t.zero_point(op.input, op.input_zp),
        weight_zp=zero_point,
    )
    return narrowed(t, sums, op.result.type.storage)
