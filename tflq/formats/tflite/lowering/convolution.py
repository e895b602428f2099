"""Convolutions on builtins: conv2d as int8 BATCH_MATMUL of im2col rows, depthwise ones as products per filter tap,
conv3d and transposed ones as conv2d.

With x = sum a_i X_i + c and w = sum b_j W_j + d in int8 digits, c' = c - x_zp and d' = d - w_zp,

    sum (x - x_zp) (w - w_zp) = sum_ij a_i b_j X_i . W_j  +  d' sum_i a_i sum(X_i)  +  c' sum(w - w_zp)

The last term is a constant of the output channel and goes into the bias; d' is 0 except for uint8 weights with a zero
point that does not let w - w_zp fit int8, and for int16 weights. Padding holds the digits of x_zp, which make both
sides 0. int32 arithmetic wraps, as the kernels' does, so only the final sum has to fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.analysis.known import weight_sums
from tflq.base import sized
from tflq.dialects.tosa.convolution import Conv2D, Conv3D, Convolution, DepthwiseConv2D, TransposeConv2D
from tflq.formats.tflite.lowering.im2col import Geometry, Layer, pad_spatial, patches, tap_sum
from tflq.formats.tflite.lowering.lowering import Tflite, lowering
from tflq.formats.tflite.lowering.shifts import Digit, Digits, WeightedSum, digits, fills
from tflq.ir.ops import Value, constant
from tflq.ir.types import ScalarType, TensorType, i8, i32


@lowering(Conv2D)
def conv2d(op: Conv2D, k: Tflite) -> Value:
    """`convolve` with the op's attributes."""
    x, weights, bias = k.value(op.input), k.value(op.weight), k.value(op.bias)
    geometry = Geometry.of(op, weights.type.sizes[1:3])
    result = conv2d_of(k, op, x, weights, bias, geometry)
    if not result.type.storage.is_float:
        return result
    from tflq.formats.tflite.lowering.convolution_float import activated

    return activated(k, op, result)


def conv2d_of(
    k: Tflite, op: Conv2D | DepthwiseConv2D, x: Value, weights: Value, bias: Value, geometry: Geometry
) -> Value:
    """`convolve`, in float32 with what requantizes it, if that is asked for and proven."""
    if k.mac == "float32" and x.type.storage.is_integer:
        from tflq.formats.tflite.lowering.convolution_float import requantized_convolve
        from tflq.formats.tflite.lowering.matmul import few_rows

        result = None if few_rows(k, x, geometry) else requantized_convolve(k, op, x, weights, bias, geometry)
        if result is not None:
            return result
    return convolve(k, op, x, weights, bias, geometry)


def convolve(k: Tflite, op: Convolution, x: Value, weights: Value, bias: Value, geometry: Geometry) -> Value:
    """The convolution with weights [O, KH, KW, I], plus bias: the accumulator of `op`, which has the zero points."""
    if x.type.storage.is_float:
        from tflq.formats.tflite.lowering.convolution_float import conv2d_of_floats

        return conv2d_of_floats(k, x, weights, bias, geometry)
    layer, result = Layer.of(k, op, x, weights, bias, geometry), None
    if k.mac == "float32":
        from tflq.formats.tflite.lowering.matmul import float_convolve

        result = float_convolve(k, layer)
    return k.cast(result or _byte_convolve(k, layer), op.output.type.storage)


def _byte_convolve(k: Tflite, layer: Layer) -> Value:
    """Rows, BATCH_MATMUL per pair of digits, bias, in `element`."""
    x, weights, bias, geometry, zero_points, element = layer
    matrix = _matrix(k, weights)
    input_zp, weight_zp = zero_points
    filters, weight_offset = _weight_digits(k, matrix, weight_zp)
    for part in filters.parts:
        part.value.role = "weights"
    inputs = digits(k, x)
    input_offset = inputs.offset - input_zp
    sums = WeightedSum(k, element)
    depth = matrix.type.dims[1] or 0
    for part, fill in zip(inputs.parts, fills(x.type.storage.dtype, input_zp), strict=True):
        rows = patches(k, part.value, geometry, fill)
        for filter in filters.parts:
            product = k.batch_matmul(rows, filter.value, adj_y=True)
            sums.add(product, part.coefficient * filter.coefficient)
        if weight_offset:
            ones = k.constant(np.ones((1, depth), np.int8), i8)
            total = k.batch_matmul(rows, ones, adj_y=True)
            sums.add(total, part.coefficient * weight_offset)
    offset = _offset(k, filters, weight_offset, input_offset, bias, element, depth)
    offset.role = "bias"
    return sums.plus(offset)


def _matrix(k: Tflite, weights: Value) -> Value:
    """The filters as rows; a constant stays a view of its buffer."""
    outputs, *window = weights.type.sizes
    shape = (outputs, window[0] * window[1] * window[2])
    if not weights.is_constant:
        return k.reshape(weights, shape)
    if weights.type.storage.bits < 8:
        return constant(np.ascontiguousarray(weights.array).reshape(shape), i8)
    return Value(TensorType(shape, weights.type.element), buffer=weights.buffer)


def _weight_digits(k: Tflite, matrix: Value, weight_zp: int) -> tuple[Digits, int]:
    """The digits of the filters and d'; of w - w_zp itself, with d' = 0, where that fits int8."""
    if matrix.is_constant and weight_zp and matrix.array.size:
        low, high = int(matrix.array.min()) - weight_zp, int(matrix.array.max()) - weight_zp
        if low >= i8.minimum and high <= i8.maximum:
            shifted = (matrix.array - matrix.array.dtype.type(weight_zp)).astype(np.int8)
            return Digits((Digit(1, constant(shifted)),), 0), 0
    filters = digits(k, matrix)
    return filters, filters.offset - weight_zp


def _offset(
    k: Tflite, filters: Digits, weight_offset: int, input_offset: int, bias: Value, element: ScalarType, depth: int
) -> Value:
    """bias + c' * sum(w - w_zp), of `element`: a constant if both are, else computed."""
    if not input_offset:
        return k.constant(bias.array, element) if bias.is_constant else k.cast(bias, element)
    if bias.is_constant and all(part.value.is_constant for part in filters.parts):
        total = np.full(bias.array.shape, depth * weight_offset, np.int64)
        for part in filters.parts:
            total += part.coefficient * weight_sums(part.value, (1,))
        return k.constant(bias.array + input_offset * total, element)
    sums = WeightedSum(k, element)
    ones = k.constant(np.ones((1, depth), np.int8), i8)
    for part in filters.parts:
        column = k.batch_matmul(ones, part.value, adj_y=True)
        sums.add(k.reshape(column, column.type.dims[1:]), input_offset * part.coefficient)
    known = np.asarray(input_offset * weight_offset * depth)
    return k.add(sums.plus(k.cast(bias, element)), known.astype(element.dtype))


# conv3d as a convolution in two dims: the slices along the depth under a filter, side by side, are channels.
#
# [N, D, H, W, C] -> GATHER along D -> [N, OD, KD, H, W, C] -> TRANSPOSE -> [N OD, H, W, KD C]


@lowering(Conv3D)
def conv3d(op: Conv3D, k: Tflite) -> Value:
    x, weights, bias = k.value(op.input), k.value(op.weight), k.value(op.bias)
    kernel_d, kernel_h, kernel_w = weights.type.sizes[1:4]
    batch = (x.type.shape or (None,))[0]
    _, _, height, width, channels = x.type.sizes
    _, depth, out_h, out_w, outputs = op.output.type.sizes
    planes_in_all = None if batch is None else batch * depth
    if any(op.pad[:2]):
        x = k.padv2(x, ((0, 0), op.pad[:2], (0, 0), (0, 0), (0, 0)), op.input_zp)
    planes = sized.arange(depth)[:, None] * op.stride[0] + sized.arange(kernel_d) * op.dilation[0]
    x = k.gather(x, k.constant(planes.reshape(-1)), 1)
    x = k.transpose(k.reshape(x, (planes_in_all, kernel_d, height * width, channels)), (0, 2, 1, 3))
    x = k.reshape(x, (planes_in_all, height, width, kernel_d * channels))
    geometry = Geometry((kernel_h, kernel_w), op.pad[2:], op.stride[1:], op.dilation[1:])
    sums = convolve(k, op, x, _side_by_side(k, weights), bias, geometry)
    return k.reshape(sums, (batch, depth, out_h, out_w, outputs))


def _side_by_side(k: Tflite, weights: Value) -> Value:
    """[O, KD, KH, KW, C] -> [O, KH, KW, KD C]."""
    outputs, depth, height, width, channels = weights.type.sizes
    if weights.is_constant:
        moved = np.ascontiguousarray(weights.array.transpose(0, 2, 3, 1, 4))
        filters = moved.reshape(outputs, height, width, depth * channels)
        return constant(filters, i8 if weights.type.storage.bits < 8 else weights.type.storage)
    flat = k.transpose(k.reshape(weights, (outputs, depth, height * width, channels)), (0, 2, 1, 3))
    return k.reshape(flat, (outputs, height, width, depth * channels))


# depthwise_conv2d as elementwise products per filter tap.
#
#     sum (x - x_zp) (w - w_zp) = sum x (w - w_zp) - x_zp sum (w - w_zp)
#
# The last term goes into the bias; padding holds x_zp, which makes both sides 0. Rows are multiplied before they are
# cut to a tap's place, so that the taps of a column share an operand: of a tensor with one reader the interpreter
# does MUL in place, at six times the cost. MUL in int32 takes as long as MUL in int16 and the CAST of its product.
# Where the channels are few, several positions make one row of the kernels' broadcast. One input channel with several
# filters is an ordinary convolution; several filters per channel repeat the channels by GATHER.


_ROW = 512
"""Elements from which a longer row of a broadcast gains nothing."""


@lowering(DepthwiseConv2D)
def depthwise_conv2d(op: DepthwiseConv2D, k: Tflite) -> Value:
    """Slices, MUL and ADD per tap, bias."""
    x, weights, bias = k.value(op.input), k.value(op.weight), k.value(op.bias)
    kernel_h, kernel_w, depth, multiplier = weights.type.sizes
    geometry = Geometry.of(op, (kernel_h, kernel_w))
    if depth == 1 and weights.is_constant:
        filters = constant(np.ascontiguousarray(np.moveaxis(weights.array, 3, 0)))
        return conv2d_of(k, op, x, filters, bias, geometry)
    if x.type.storage.is_float:
        from tflq.formats.tflite.lowering.convolution_float import activated, depthwise_of_floats

        return activated(k, op, depthwise_of_floats(k, x, weights, bias, geometry))
    layer, acc = Layer.of(k, op, x, weights, bias, geometry), op.output.type.storage
    if k.mac == "float32":
        from tflq.formats.tflite.lowering.convolution_float import requantized_depthwise
        from tflq.formats.tflite.lowering.matmul import float_depthwise

        result = requantized_depthwise(k, op, x, weights, bias, geometry)
        if result is not None:
            return result
        result = float_depthwise(k, layer)
        if result is not None:
            return k.cast(result, acc)
    if x.type.storage.bits == 8 and weights.is_constant:
        taps = weights.array.reshape(kernel_h * kernel_w, -1).astype(np.int64) - op.weight_zp
        if (np.abs(taps).sum(0) < 1 << 23).all():  # the sum of its products with 8 bits is in int32
            return k.cast(_by_bytes(k, x, taps, multiplier, bias, geometry, op.input_zp), acc)
    return k.cast(_by_taps(k, layer), acc)


def _by_bytes(
    k: Tflite, x: Value, filters: np.ndarray, multiplier: int, bias: Value, geometry: Geometry, zero_point: int
) -> Value:
    """8-bit x and known filters [KH * KW, C * M] less their zero point: products and their sum in int32."""
    shape = geometry.output(x.type.shape, filters.shape[1])
    fold = _fold(shape)
    padded = _repeated(k, pad_spatial(k, x, geometry.pad, zero_point), multiplier)
    rows = [k.constant(row) for row in sized.tile(filters, (1, fold))]
    for row in rows:
        row.role = "weights"

    def product(x: Value, tap: int) -> Value:
        return k.mul(x, rows[tap])

    total = tap_sum(k, padded, geometry, product, fold=fold, element=i32)
    if fold > 1 and shape is not None:
        total = k.refold(total, shape)
    offset = -zero_point * filters.sum(0)
    if bias.is_constant:
        whole = (bias.array + offset).astype(np.int32)
        return k.add(total, whole) if whole.any() else total
    return k.add(k.add(total, offset), bias)


def _fold(shape: Sequence[int | None] | None) -> int:
    """Number of neighbouring positions to treat as one: the most that divide the width and fit a row."""
    if shape is None or shape[1] is None or shape[2] is None or not shape[3]:
        return 1
    return max((f for f in range(1, min(shape[2], _ROW // shape[3]) + 1) if shape[2] % f == 0), default=1)


def _by_taps(k: Tflite, layer: Layer) -> Value:
    """int16 x, or weights that are not constant or very many: products in `element`."""
    x, weights, bias, geometry, zero_points, element = layer
    padded = _repeated(k, pad_spatial(k, x, geometry.pad, zero_points[0]), (weights.type.shape or (1,))[-1] or 1)
    wide = k.cast(padded, element)
    if zero_points[0]:
        wide = k.sub(wide, np.asarray(zero_points[0]))
    rows = _weight_rows(k, weights, zero_points[1], element)

    def product(x: Value, tap: int) -> Value:
        return k.mul(x, rows[tap])

    total = tap_sum(k, wide, geometry, product, fold=1, element=element)
    if bias.is_constant:
        return k.add(total, bias.array) if bias.array.any() else total
    return k.add(total, k.cast(bias, element))


def _repeated(k: Tflite, x: Value, multiplier: int) -> Value:
    """Each channel `multiplier` times in a row."""
    if multiplier == 1:
        return x
    channels = (x.type.shape or (0,))[-1] or 0
    return k.gather(x, k.constant(np.repeat(np.arange(channels, dtype=np.int32), multiplier)), axis=3)


def _weight_rows(k: Tflite, weights: Value, weight_zp: int, element: ScalarType) -> list[Value]:
    """The filters less their zero point, per tap: [C * M]."""
    kernel_h, kernel_w, depth, multiplier = weights.type.sizes
    positions, channels = kernel_h * kernel_w, depth * multiplier
    if weights.is_constant:
        values = weights.array.reshape(positions, -1).astype(element.dtype) - weight_zp
        return [k.constant(row, element) for row in values]
    wide = k.cast(k.reshape(weights, (positions, channels)), element)
    if weight_zp:
        wide = k.sub(wide, np.asarray(weight_zp))
    return [
        k.strided_slice(wide, (tap, 0), (tap + 1, channels), (1, 1), shrink_axis_mask=1) for tap in range(positions)
    ]


# transpose_conv2d as a convolution whose output channels are the positions of a stride cell, then moved apart.
#
# The full result at f = q * s + r (r < s) is sum_t x[q - t] * w[t * s + r]: for each r a convolution of x with every
# s-th row of the filter. All s_h * s_w of them are one convolution with filters of ceil(k / s) taps; its channels
# (r_h, r_w, o) are interleaved by RESHAPE, TRANSPOSE, RESHAPE, and out_pad crops the rest.


@lowering(TransposeConv2D)
def transpose_conv2d(op: TransposeConv2D, k: Tflite) -> Value:
    """The convolution, interleaved and cropped."""
    x, weights, bias = k.value(op.input), k.value(op.weight), k.value(op.bias)
    outputs, kernel_h, kernel_w, _ = weights.type.sizes
    batch, height, width, _ = x.type.shape or (None,) * 4
    _, out_h, out_w, _ = op.output.type.sizes
    stride_h, stride_w = op.stride
    top, _, left, _ = op.out_pad
    taps_h, above, below, skip_h = _placed(kernel_h, stride_h, top, height or 0, out_h)
    taps_w, before, after, skip_w = _placed(kernel_w, stride_w, left, width or 0, out_w)

    cell, taps = (stride_h, stride_w), (taps_h, taps_w)
    if weights.is_constant:
        filters = constant(_cells(weights.array, cell, taps, op.weight_zp))
    else:
        filters = _gathered_cells(k, weights, cell, taps, op.weight_zp)
    tiled = _tiled(k, bias, stride_h * stride_w)
    geometry = Geometry((taps_h, taps_w), (above, below, before, after), (1, 1), (1, 1))
    cells = convolve(k, op, x, filters, tiled, geometry)

    _, rows, columns, _ = geometry.output(x.type.shape, 0) or ()
    rows, columns = rows or 0, columns or 0
    if (stride_h, stride_w) != (1, 1):
        lead = None if batch is None else batch * rows
        apart = _interleaved(k, cells, (lead, columns, stride_h, stride_w * outputs))
        cells = k.refold(apart, (batch, rows * stride_h, columns * stride_w, outputs))
    if (rows * stride_h, columns * stride_w) == (out_h, out_w):
        return cells
    ends = (0, skip_h + out_h, skip_w + out_w, 0)
    return k.strided_slice(cells, (0, skip_h, skip_w, 0), ends, (1, 1, 1, 1), begin_mask=0b1001, end_mask=0b1001)


def _interleaved(k: Tflite, cells: Value, shape: tuple[int | None, int, int, int]) -> Value:
    """[lead, columns, parts, channels] of cells with parts and columns swapped.

    Without TRANSPOSE, which few runtimes have of int32, where the target says which builtins it has.
    """
    lead, columns, parts, channels = shape
    if not k.restricted:
        return k.transpose(k.refold(cells, shape), (0, 2, 1, 3))
    rows = [k.refold(part, (lead, 1, columns, channels)) for part in k.split(cells, parts, 3)]
    return k.concatenation(rows, 1) if len(rows) > 1 else rows[0]


def _placed(kernel: int, stride: int, out_pad: int, size: int, out: int) -> tuple[int, int, int, int]:
    """One dim: taps per output, padding before and after the input, outputs to skip."""
    taps = -(-kernel // stride)
    extra = -(-max(out_pad, 0) // stride)
    skip = extra * stride - out_pad
    after = max(-(-(skip + out) // stride) - size - extra, 0)
    return taps, taps - 1 + extra, after, skip


def _cells(weights: np.ndarray, stride: tuple[int, int], taps: tuple[int, int], fill: int) -> np.ndarray:
    """Filters [s_h * s_w * O, T_h, T_w, I] of [O, KH, KW, I]; taps beyond the filter are its zero point."""
    outputs, kernel_h, kernel_w, inputs = weights.shape
    full = sized.full((outputs, taps[0] * stride[0], taps[1] * stride[1], inputs), fill, weights.dtype)
    full[:, :kernel_h, :kernel_w] = weights
    apart = full.reshape(outputs, taps[0], stride[0], taps[1], stride[1], inputs)[:, ::-1, :, ::-1]
    return np.ascontiguousarray(apart.transpose(2, 4, 0, 1, 3, 5)).reshape(-1, *taps, inputs)


def _gathered_cells(k: Tflite, weights: Value, stride: tuple[int, int], taps: tuple[int, int], fill: int) -> Value:
    """`_cells` of filters that are computed."""
    outputs, kernel_h, kernel_w, inputs = weights.type.sizes
    count, places = kernel_h * kernel_w, stride[0] * stride[1]
    rows = k.reshape(weights, (outputs, count, inputs))
    if taps[0] * taps[1] * places > count:
        beyond = k.constant(sized.full((outputs, 1, inputs), fill), weights.type.storage)
        rows = k.concatenation([rows, beyond], 1)
    order = _cells(sized.arange(count).reshape(1, kernel_h, kernel_w, 1), stride, taps, count)
    apart = k.gather(rows, k.constant(order.reshape(-1)), 1)
    apart = k.transpose(k.reshape(apart, (outputs, places, taps[0] * taps[1], inputs)), (1, 0, 2, 3))
    return k.reshape(apart, (places * outputs, *taps, inputs))


def _tiled(k: Tflite, bias: Value, count: int) -> Value:
    """The bias, `count` times."""
    if bias.is_constant:
        return constant(sized.tile(bias.array, count))
    return k.concatenation([bias] * count, 0)
