"""tosa.conv2d as int8 BATCH_MATMUL of im2col rows.

With x = sum a_i X_i + c and w = sum b_j W_j + d in int8 digits, c' = c - x_zp and d' = d - w_zp,

    sum (x - x_zp) (w - w_zp) = sum_ij a_i b_j X_i . W_j  +  d' sum_i a_i sum(X_i)  +  c' sum(w - w_zp)

The last term is a constant of the output channel and goes into the bias; d' is 0 but for uint8 weights with a zero
point that does not let w - w_zp fit int8, and for int16 weights. Padding holds the digits of x_zp, which make both
sides 0. int32 arithmetic wraps, as the kernels' does, so only the final sum has to fit.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.convolution import Conv2D, Convolution, DepthwiseConv2D
from tflq.ir.core import Value, constant
from tflq.ir.types import ScalarType, TensorType, i8, i32
from tflq.numerics.convolution import channel_sums
from tflq.select.digits import Digit, Digits, digits, fills
from tflq.select.im2col import Geometry, patches
from tflq.select.lowering import Kernels, lowering
from tflq.select.sums import WeightedSum, fits_int32

__all__ = ["conv2d_of", "convolve"]


@lowering(Conv2D)
def conv2d(op: Conv2D, k: Kernels) -> Value:
    """`convolve` with the op's attributes."""
    x, weights, bias = k.value(op.input), k.value(op.weight), k.value(op.bias)
    geometry = Geometry.of(op, [d or 0 for d in (weights.type.shape or ())[1:3]])
    result = conv2d_of(k, op, x, weights, bias, geometry)
    if not result.type.storage.is_float:
        return result
    from tflq.select.convolution.floats import activated

    return activated(k, op, result)


def conv2d_of(
    k: Kernels, op: Conv2D | DepthwiseConv2D, x: Value, weights: Value, bias: Value, geometry: Geometry
) -> Value:
    """`convolve`, in float32 with what requantizes it, if that is asked for and proven."""
    if k.mac == "float32" and x.type.storage.is_integer:
        from tflq.select.convolution.requantized import requantized_convolve
        from tflq.select.mac_float import few_rows

        result = None if few_rows(x, geometry) else requantized_convolve(k, op, x, weights, bias, geometry)
        if result is not None:
            return result
    return convolve(k, op, x, weights, bias, geometry)


def convolve(k: Kernels, op: Convolution, x: Value, weights: Value, bias: Value, geometry: Geometry) -> Value:
    """The convolution with weights [O, KH, KW, I], plus bias: the accumulator of `op`, which has the zero points."""
    if x.type.storage.is_float:
        from tflq.select.convolution.floats import conv2d_of_floats

        return conv2d_of_floats(k, x, weights, bias, geometry)
    zero_points = (op.input_zp, op.weight_zp)
    acc = op.output.type.storage
    element = i32 if acc == i32 or fits_int32(k, op) else acc
    result = None
    if k.mac == "float32":
        from tflq.select.mac_float import float_convolve

        result = float_convolve(k, x, weights, bias, geometry, zero_points, element)
    return k.cast(result or _byte_convolve(k, x, weights, bias, geometry, zero_points, element), acc)


def _byte_convolve(
    k: Kernels,
    x: Value,
    weights: Value,
    bias: Value,
    geometry: Geometry,
    zero_points: tuple[int, int],
    element: ScalarType,
) -> Value:
    """Rows, BATCH_MATMUL per pair of digits, bias, in `element`."""
    matrix = _matrix(k, weights)
    input_zp, weight_zp = zero_points
    filters, weight_offset = _weight_digits(k, matrix, weight_zp)
    for part in filters.parts:
        part.value.role = "weights"
    inputs = digits(k, x)
    input_offset = inputs.offset - input_zp
    sums = WeightedSum(k, element)
    outputs, depth = (d or 0 for d in matrix.type.shape or ())
    for part, fill in zip(inputs.parts, fills(x.type.storage.dtype, input_zp), strict=True):
        rows = patches(k, part.value, geometry, fill)
        shape = geometry.output(x.type.shape, outputs)
        for filter in filters.parts:
            product = k.batch_matmul(rows, filter.value, shape, adj_y=True)
            sums.add(product, part.coefficient * filter.coefficient)
        if weight_offset:
            ones = k.constant(np.ones((1, depth), np.int8), i8)
            total = k.batch_matmul(rows, ones, geometry.output(x.type.shape, 1), adj_y=True)
            sums.add(total, part.coefficient * weight_offset)
    offset = _offset(k, filters, weight_offset, input_offset, bias, element, depth)
    offset.role = "bias"
    return sums.plus(offset)


def _matrix(k: Kernels, weights: Value) -> Value:
    """The filters as rows; a constant stays a view of its buffer."""
    outputs, *window = (d or 0 for d in weights.type.shape or ())
    shape = (outputs, window[0] * window[1] * window[2])
    if not weights.is_constant:
        return k.reshape(weights, shape)
    if weights.type.storage.bits < 8:
        return constant(np.ascontiguousarray(weights.array).reshape(shape), i8)
    return Value(TensorType(shape, weights.type.element), buffer=weights.buffer)


def _weight_digits(k: Kernels, matrix: Value, weight_zp: int) -> tuple[Digits, int]:
    """The digits of the filters and d'; of w - w_zp itself, with d' = 0, where that fits int8."""
    if matrix.is_constant and weight_zp and matrix.array.size:
        low, high = int(matrix.array.min()) - weight_zp, int(matrix.array.max()) - weight_zp
        if low >= i8.minimum and high <= i8.maximum:
            shifted = (matrix.array - matrix.array.dtype.type(weight_zp)).astype(np.int8)
            return Digits((Digit(1, constant(shifted)),), 0), 0
    filters = digits(k, matrix)
    return filters, filters.offset - weight_zp


def _offset(
    k: Kernels, filters: Digits, weight_offset: int, input_offset: int, bias: Value, element: ScalarType, depth: int
) -> Value:
    """bias + c' * sum(w - w_zp), of `element`: a constant if both are, else computed."""
    if not input_offset:
        return k.constant(bias.array, element) if bias.is_constant else k.cast(bias, element)
    if bias.is_constant and all(part.value.is_constant for part in filters.parts):
        total = np.full(bias.array.shape, depth * weight_offset, np.int64)
        for part in filters.parts:
            total += part.coefficient * channel_sums(part.value.array, (1,))
        return k.constant((bias.array + input_offset * total).astype(element.dtype), element)
    sums = WeightedSum(k, element)
    ones = k.constant(np.ones((1, depth), np.int8), i8)
    for part in filters.parts:
        outputs = (part.value.type.shape or (None,))[0]
        column = k.batch_matmul(ones, part.value, (1, outputs), adj_y=True)
        sums.add(k.reshape(column, (outputs,)), input_offset * part.coefficient)
    known = np.asarray(input_offset * weight_offset * depth)
    return k.add(sums.plus(k.cast(bias, element)), k.constant(known.astype(element.dtype), element))
