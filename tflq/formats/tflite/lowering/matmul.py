"""Sums of products: matmul as int8 BATCH_MATMUL, or as float BATCH_MATMUL on integer values; convolutions of integers
on the float builtins.

With x = sum a_i X_i + c and y = sum b_j Y_j + d in int8 digits, c' = c - x_zp and d' = d - y_zp,

    sum (x - x_zp) (y - y_zp) = sum_ij a_i b_j X_i . Y_j  +  d' sum(x - c)  +  c' sum(y - y_zp)

The second term is one number per row of x, the third one per column of y: products with ones, which is several times
faster than SUM, where the length of the sums is known. int32 arithmetic wraps, as the kernel's does, so only the final
sum has to fit.

The float forms take the zero points off first, so that padding is zero, and are exact while every partial sum stays
below 2^24. How far partial sums reach, whatever their order, is known from the weights (`tflq.numerics.float_basics`).
Where that is too far, the input channels are split and the parts' sums added in integers; int16 is split into bytes,
256 h + l. A layer that no split makes exact keeps the integer form, as do a few rows of a matrix product, which int8
reads faster. These sums are requantized in integers; `convolution_float` does that in float32, where it is proven.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tflq.dialects.tfl.arithmetic import Floor
from tflq.dialects.tfl.casts import Dequantize
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D
from tflq.dialects.tfl.pooling import Sum
from tflq.dialects.tosa.convolution import MatMul
from tflq.formats.tflite.lowering.im2col import Geometry, Layer, pad_spatial
from tflq.formats.tflite.lowering.lowering import Tflite, centred, lowering
from tflq.formats.tflite.lowering.shifts import Digits, WeightedSum, digits, fits_int32
from tflq.ir.ops import Buffer, Value, constant
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, f32, i8, i16, i32, ui8
from tflq.numerics.convolution import window
from tflq.numerics.float_basics import ProductBounds, signed_sums

_FEW_ROWS = 4


@dataclass(frozen=True, slots=True)
class _Part:
    """An input, or a byte of it, as integer-valued float32, and its weight in the sum."""

    coefficient: int
    value: Value


def float_convolve(k: Tflite, layer: Layer) -> Value | None:
    """CONV_2D with constant weights [O, KH, KW, I], plus bias, in `element`; None where not exact, or slower."""
    x, weights, bias, geometry, zero_points, element = layer
    if not weights.is_constant or few_rows(k, x, geometry):
        return None
    filters = weights.array.astype(np.float32) - np.float32(zero_points[1])
    bounds = [
        ProductBounds(*signed_sums(filters, (1, 2)), *ends) for ends in float_ranges(x.type.storage, zero_points[0])
    ]
    splits = [each.runs() for each in bounds]
    if any(split is None for split in splits):
        return None
    alone = len(bounds) == 1 and len(splits[0] or ()) == 1
    offset, rest = _float_bias(bias, bounds[0]) if alone else (None, bias)
    sums = WeightedSum(k, element)
    for part, split in zip(float_parts(k, x, zero_points[0]), splits, strict=True):
        padded, padding = padded_for(k, part.value, geometry)
        for channels in split or ():
            piece = channels_of(k, padded, channels)
            taps = weights_of(k, filters[..., channels])
            sums.add(_conv2d(k, piece, taps, offset, geometry, padding, x, filters.shape[0]), part.coefficient)
    return sums.plus(_integers(k, rest, element))


def float_depthwise(k: Tflite, layer: Layer) -> Value | None:
    """DEPTHWISE_CONV_2D with constant weights [KH, KW, C, M], plus bias, in `element`; None where not exact."""
    x, weights, bias, geometry, zero_points, element = layer
    if not weights.is_constant:
        return None
    kernel_h, kernel_w, depth, multiplier = weights.array.shape
    filters = weights.array.astype(np.float32).reshape(1, kernel_h, kernel_w, -1) - np.float32(zero_points[1])
    positive, negative = (total[:, None] for total in signed_sums(filters, (0, 1, 2)))
    bounds = [ProductBounds(positive, negative, *ends) for ends in float_ranges(x.type.storage, zero_points[0])]
    if any(each.runs() is None for each in bounds):
        return None
    offset, rest = _float_bias(bias, bounds[0]) if len(bounds) == 1 else (None, bias)
    taps, outputs = weights_of(k, filters), depth * multiplier
    sums = WeightedSum(k, element)
    for part in float_parts(k, x, zero_points[0]):
        padded, padding = padded_for(k, part.value, geometry)
        shape = geometry.output(x.type.shape, outputs)
        operands = [padded, taps, _bias_operand(k, offset, outputs)]
        options = conv_options(geometry, padding) | {"depth_multiplier": multiplier}
        sums.add(k.cast(k.emit(DepthwiseConv2D, operands, TensorType(shape, f32), **options), i32), part.coefficient)
    return sums.plus(_integers(k, rest, element))


def few_rows(k: Tflite, x: Value, geometry: Geometry) -> bool:
    """Whether a matrix product has so few rows that its time goes into reading weights: int8 ones are read faster,
    where the target multiplies them."""
    if k.restricted:
        return False
    batch, height, width, _ = x.type.shape or (None,) * 4
    return geometry.pointwise and (height, width) == (1, 1) and batch is not None and batch <= _FEW_ROWS


def float_ranges(storage: ScalarType, zero_point: int) -> list[tuple[int, int]]:
    """The ends of each float part of an input."""
    return [(-128, 127), (0, 255)] if storage == i16 else [storage.less(zero_point)]


def float_parts(k: Tflite, x: Value, zero_point: int) -> list[_Part]:
    """x - zero_point as float parts, constants if x is constant; int16, whose zero point is 0, as two bytes."""
    if x.is_constant:
        values = x.array.astype(np.int32) - zero_point
        bytes_of = [(256, values >> 8), (1, values & 255)] if x.type.storage == i16 else [(1, values)]
        return [_Part(weight, constant(array.astype(np.float32))) for weight, array in bytes_of]
    if x.type.storage == i16:
        scaled = k.mul(k.cast(x, f32), np.asarray(2.0**-8))
        high = k.emit(Floor, [scaled])
        low = k.cast(k.cast(x, ui8), f32)
        return [_Part(256, high), _Part(1, low)]
    if x.type.storage.bits == 8:
        return [_Part(1, centred(k, x, zero_point))]
    value = k.cast(x, f32)
    if zero_point:
        value = k.sub(value, np.asarray(zero_point))
    return [_Part(1, value)]


_LEAST_STORED: Final = 256
"""Weights from which on bytes that are left out are more than those of a further operator and tensor."""


def weights_of(k: Tflite, numbers: np.ndarray) -> Value:
    """The weights of a float kernel, whole numbers in float32: stored as int8 of scale 1 behind DEQUANTIZE where that
    holds them all, and interpreters compute it once.

    A zero point is where numbers are more than 127 or less than -128, as those of uint8 are. It is int8 even of these,
    since XNNPACK unpacks no uint8.
    """
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    if k.weights != "int8" or numbers.size < _LEAST_STORED or high - low > i8.maximum - i8.minimum:
        stored = constant(np.ascontiguousarray(numbers))
        stored.role = "weights"
        return stored
    zero = 0 if low >= i8.minimum and high <= i8.maximum else i8.minimum - low
    integers = (numbers + np.float32(zero)).astype(np.int8)
    type = TensorType(numbers.shape, UniformQuantizedType.of(i8, 1.0, zero))
    stored = Value(type, buffer=Buffer.of(integers))
    result = k.emit(Dequantize, [stored], f32)
    stored.role, result.role = "weights", "weights/dequantize"
    return result


def _float_bias(bias: Value, bounds: ProductBounds) -> tuple[np.ndarray | None, Value | None]:
    """The bias as the kernel's own, if sums with it are still exact, else left for integers: (float, integer)."""
    if bias.is_constant and len(bounds.runs(bias.array.astype(np.float64)) or ()) == 1:
        return bias.array.astype(np.float32), None
    return None, bias


def _integers(k: Tflite, bias: Value | None, element: ScalarType) -> Value:
    if bias is None:
        return k.constant(0, element)
    return k.constant(bias.array, element) if bias.is_constant else k.cast(bias, element)


def padded_for(k: Tflite, x: Value, geometry: Geometry) -> tuple[Value, str]:
    """x and the kernel's padding: VALID, SAME where that is the same, else VALID of x padded with zeros."""
    if not any(geometry.pad):
        return x, "VALID"
    for axis in range(2):
        size = None if x.type.shape is None else x.type.shape[1 + axis]
        same = window(size, geometry.kernel[axis], geometry.stride[axis], geometry.dilation[axis], "SAME")
        if same is None or (same.before, same.after) != geometry.pad[2 * axis : 2 * axis + 2]:
            return pad_spatial(k, x, geometry.pad, 0.0), "VALID"
    return x, "SAME"


def channels_of(k: Tflite, x: Value, channels: slice) -> Value:
    """Some of the last dim of x [N, H, W, C]."""
    shape = x.type.shape or (None,) * 4
    if (channels.start, channels.stop) == (0, shape[3]):
        return x
    begin, end = (0, 0, 0, channels.start), (0, 0, 0, channels.stop)
    return k.strided_slice(x, begin, end, (1, 1, 1, 1), begin_mask=0b111, end_mask=0b111)


def _conv2d(
    k: Tflite,
    x: Value,
    filters: Value,
    bias: np.ndarray | None,
    geometry: Geometry,
    padding: str,
    source: Value,
    outputs: int,
) -> Value:
    """One float CONV_2D, as integers."""
    shape = geometry.output(source.type.shape, outputs)
    operands = [x, filters, _bias_operand(k, bias, outputs)]
    options = conv_options(geometry, padding) | {"quantized_bias_type": "FLOAT32"}
    return k.cast(k.emit(Conv2D, operands, TensorType(shape, f32), **options), i32)


def _bias_operand(k: Tflite, bias: np.ndarray | None, outputs: int) -> Value:
    value = k.constant(np.zeros(outputs, np.float32) if bias is None else bias, f32)
    value.role = "bias"
    return value


def conv_options(geometry: Geometry, padding: str) -> dict[str, Any]:
    """The options that CONV_2D and DEPTHWISE_CONV_2D share."""
    return {
        "padding": padding,
        "stride_w": geometry.stride[1],
        "stride_h": geometry.stride[0],
        "dilation_w_factor": geometry.dilation[1],
        "dilation_h_factor": geometry.dilation[0],
        "fused_activation_function": "NONE",
    }


@lowering(MatMul)
def matmul(op: MatMul, k: Tflite) -> Value:
    """The float form where that was asked for and is exact, else the int8 form."""
    x, y = k.value(op.input1), k.value(op.input2)
    zero_points = (op.a_zp, op.b_zp)
    acc = op.output.type.storage
    if acc.is_float:
        return k.batch_matmul(x, y, to=acc)
    element = i32 if acc == i32 or fits_int32(k, op) else acc
    result = _float_product(k, x, y, zero_points, element) if k.mac == "float32" else None
    return k.cast(result or _byte_product(k, x, y, zero_points, element), acc)


def _depth(x: Value, y: Value) -> int | None:
    """The number of products in a sum, if it is known."""
    columns, rows = (x.type.shape or (None,))[-1], (y.type.shape or (None, None))[-2]
    return rows if columns is None else columns


def _byte_product(k: Tflite, x: Value, y: Value, zero_points: tuple[int, int], element: ScalarType) -> Value:
    """The products of digits and what the offsets and zero points add, in `element`."""
    left, right, depth = digits(k, x), digits(k, y), _depth(x, y)
    column_factor, row_factor = left.offset - zero_points[0], right.offset - zero_points[1]
    sums = WeightedSum(k, element)
    for a in left.parts:
        for b in right.parts:
            sums.add(k.batch_matmul(a.value, b.value), a.coefficient * b.coefficient)
    if row_factor:
        sums.add(_sum(k, x, left, -1, left.offset, row_factor, depth, element), 1)
    if column_factor:
        return sums.plus(_sum(k, y, right, -2, zero_points[1], column_factor, depth, element))
    return sums.plus()


def _sum(
    k: Tflite, x: Value, parts: Digits, axis: int, less: int, factor: int, depth: int | None, element: ScalarType
) -> Value:
    """factor * sum(x - less) over one of the last two dims, which stays with size 1."""
    if x.is_constant:
        total = factor * (x.array.astype(np.int64) - less).sum(axis, keepdims=True)
        return k.constant(total, element)
    sums = WeightedSum(k, element)
    if depth is None:
        wide = k.cast(x, element)
        if less:
            wide = k.sub(wide, np.asarray(less))
        sums.add(k.reduce(Sum, wide, [(x.type.rank or 0) + axis]), factor)
        return sums.plus()
    ones = k.constant(np.ones((1, depth), np.int8), i8)
    for part in parts.parts:
        operands = (part.value, ones) if axis == -1 else (ones, part.value)
        sums.add(k.batch_matmul(*operands, adj_y=axis == -1), part.coefficient * factor)
    known = np.asarray(depth * factor * (parts.offset - less))
    return sums.plus(known)


def _float_product(k: Tflite, x: Value, y: Value, zero_points: tuple[int, int], element: ScalarType) -> Value | None:
    """Float BATCH_MATMUL per pair of parts and run of the sums, in `element`; None where no cut makes it exact."""
    depth = _depth(x, y)
    if depth is None or (any(zero_points) and i16 in (x.type.storage, y.type.storage)):
        return None
    splits = [
        [bounds.runs() for bounds in _products(y, zero_points[1], depth, *ends)]
        for ends in float_ranges(x.type.storage, zero_points[0])
    ]
    if any(runs is None for row in splits for runs in row):
        return None
    left, right = float_parts(k, x, zero_points[0]), float_parts(k, y, zero_points[1])
    sums = WeightedSum(k, element)
    for a, row in zip(left, splits, strict=True):
        for b, runs in zip(right, row, strict=True):
            for run in runs or ():
                pieces = _run(k, a.value, -1, run), _run(k, b.value, -2, run)
                sums.add(k.cast(k.batch_matmul(*pieces, to=f32), i32), a.coefficient * b.coefficient)
    return sums.plus()


def _products(y: Value, zero_point: int, depth: int, low: int, high: int) -> list[ProductBounds]:
    """Bounds of the products of x in [low, high] with each float part of y; one column for all if y is not known."""
    if y.is_constant and y.type.storage != i16:
        columns = np.moveaxis(y.array.astype(np.float64) - zero_point, -2, -1).reshape(-1, depth)
        return [ProductBounds(np.maximum(columns, 0), np.minimum(columns, 0), low, high)]
    bounds = []
    for ends in float_ranges(y.type.storage, zero_point):
        products = [0, *(a * b for a in (low, high) for b in ends)]
        most, least = (np.full((1, depth), v, np.float64) for v in (max(products), min(products)))
        bounds.append(ProductBounds(most, least, 0, 1))
    return bounds


def _run(k: Tflite, x: Value, axis: int, run: slice) -> Value:
    """x between the bounds of `run` along one of the last two dims."""
    shape = x.type.dims
    if (run.start, run.stop) == (0, shape[axis]):
        return x
    if x.is_constant:
        return constant(np.ascontiguousarray(x.array[..., run] if axis == -1 else x.array[..., run, :]))
    place = len(shape) + axis
    begin, end = [0] * len(shape), [0] * len(shape)
    begin[place], end[place] = run.start, run.stop
    whole = (1 << len(shape)) - 1 ^ 1 << place
    return k.strided_slice(x, begin, end, [1] * len(shape), begin_mask=whole, end_mask=whole)
