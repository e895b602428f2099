"""FULLY_CONNECTED, a 1x1 convolution over rows of K channels, and BATCH_MATMUL, as the reference kernels compute them.

    result[m, o] = clamp(scale(bias[o] + sum_k (x[m, k] - x_zp) * (w[o, k] - w_zp)) + zp)

The kernels differ in `scale` and in the weights they take:

    input   weights         result  scale                                       weights' zero point
    int8    int8 int4 int2  int8    float64, s_in * s_w / s_out                 per layer
    int16   int8 int4 int2  int16   float64, s_in * s_w / s_out                 per layer
    uint8   uint8           uint8   float64, s_in * s_w / s_out                 yes
    uint8   uint8           int16   float64, s_in * s_w / s_out                 yes
    int16   int16           int16   fixed-point, 64 bits, legacy or per channel per layer

With int16 weights the sum has 64 bits, but the bias is read as int32 unless the options say INT64: an int64 bias as the
halves of its first elements. On other types: `reinterpreted.py`.

Sources: kernels/fully_connected.cc, kernels/internal/reference/fully_connected.h, integer_ops/fully_connected.h.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.declare import trait_of
from tflq.dialects.inference import Misfit, broadcast
from tflq.dialects.tfl.arithmetic import Mul
from tflq.dialects.tfl.convolution import BatchMatMul, FullyConnected
from tflq.dialects.tfl.movement import ExpandDims, Squeeze
from tflq.dialects.tosa.convolution import MatMul
from tflq.dialects.traits import View
from tflq.ir.ops import Value
from tflq.ir.types import (
    ScalarType,
    Shape,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i8,
    i16,
    i32,
    i64,
    is_quantized,
)
from tflq.legalize.probing import per_layer, symmetric
from tflq.legalize.rescaled import (
    IGNORED_ZERO_POINT,
    Products,
    Sums,
    Terms,
    bias_of,
    bounds_of,
    crude_bound_limit,
    has_zero_point,
    requantize,
    reshape_constant,
    scales_of,
    shape_of,
    sliced,
    unread_bias,
    weight_zero_point,
)
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.requantize.scaling import Bounds, QuantizedMultiplier

HALVED_BIAS = (
    "the kernel reads the int64 bias as int32: it takes int64 only if input and result are int16 and "
    "quantized_bias_type is INT64"
)


@rule(FullyConnected)
def fully_connected(op: FullyConnected, b: RuleBuilder) -> Answer:
    """tosa.reshape, tosa.conv2d 1x1, ext.rescale_f64 or tosa.rescale, tosa.clamp, tosa.reshape."""
    weights = op.weights
    if op.weights_format != "DEFAULT":
        raise Refused(f"weights '{weights.name}' are stored in the shuffled format", "store them in the default format")
    source, target = per_layer(op, [op.input, op.result])
    if weights.type.rank != 2 or not weights.type.is_static or weights.type.shape is None:
        raise NotApplicable("the weights are not a matrix of known shape")
    scales = scales_of(weights)
    outputs = weights.type.shape[0] or 0
    if scales is None or scales.size not in (1, outputs):
        raise NotApplicable(f"the weights do not have 1 or {outputs} scales")
    one_scale = scales.size == 1
    factor = b.kernel_set.fully_connected(source, weights.type.storage, scales, target)
    if factor is None:
        raise NotApplicable(
            f"no kernel for {source.storage} input, {weights.type.storage} weights and {target.storage} result"
        )
    acc, bias, halved = bias_as_read(op, b, source.storage, weights.type.storage)
    weight_zp = weight_zero_point(weights) if one_scale else 0
    terms = Terms(b.value(weights), bias_of(b, bias, outputs, acc), source.zero_point, weight_zp, acc)
    sums = fully_connected_sums(op, b, terms)
    bounds = bounds_of(source, weights, (1,), weight_zp, terms.bias, crude_bound_limit(b, factor, target))
    answer = requantize(b, sums.value, factor, target, op.fused_activation_function, bounds)
    ignored = not one_scale and has_zero_point(weights)
    warning = HALVED_BIAS if halved else IGNORED_ZERO_POINT if ignored else ""
    return answer.rewritten(sums.finish(b, answer.value), warning)


def fully_connected_sums(op: FullyConnected, b: RuleBuilder, terms: Terms) -> Sums:
    """A 1x1 convolution with weights [O, K]."""
    x = b.value(op.input)
    outputs, depth = terms.weights.type.sizes
    if x.type.shape is None or not outputs or not depth:
        raise NotApplicable("the input's rank is not known, or the weights are empty")
    keep = op.keep_num_dims
    shape = (*x.type.shape[:-1], outputs) if keep else (rows_of(x.type.shape, depth), outputs)
    opened = shape.count(None) > 1
    if opened and (len(shape) not in (3, 4) or x.type.shape[-1] != depth):
        raise NotApplicable("more than one dim of the result is not known")
    if opened:
        matrix = _opened(b, x)
    else:
        rows = x if keep or _has_whole_rows(op.input, depth) else _whole_rows(b, x, depth)
        matrix = b.reshape(rows, (rows_of(x.type.shape, depth), 1, 1, depth))
    filters = reshape_constant(b, terms.weights, (outputs, 1, 1, depth))
    result = (*matrix.type.dims[:3], outputs)
    x_zp, w_zp = terms.input_zp, terms.weight_zp
    sums = b.conv2d(matrix, filters, terms.bias, result, input_zp=x_zp, weight_zp=w_zp, acc=terms.acc)
    return Sums(sums, finish=lambda b, y: _closed(b, y, shape) if opened else b.reshape(y, shape))


def _opened(b: RuleBuilder, x: Value) -> Value:
    """x with rank 4, without a RESHAPE, which could infer only one dim; a tensor of rank 3 gets a second dim of 1."""
    if x.type.rank == 4:
        return x
    batch, rows, depth = x.type.dims
    type = TensorType((batch, 1, rows, depth), x.type.element)
    return b.op(ExpandDims, [x, b.constant(1)], [type], {}).result


def _closed(b: RuleBuilder, x: Value, shape: tuple[int | None, ...]) -> Value:
    """The opposite of `_opened`."""
    if len(shape) == 4:
        return x
    type = TensorType(shape, x.type.element)
    return b.op(Squeeze, [x], [type], {"squeeze_dims": np.asarray([1], np.int32)}).result


def _has_whole_rows(x: Value, depth: int) -> bool:
    """Whether x is rows of `depth` elements whatever its open dims and its batch are: by its shape, or the shape of a
    tensor with the same elements."""
    source = x
    while True:
        dims = source.type.dims
        if not math.prod(dim or 1 for dim in dims[1:]) % depth:
            return True
        views = None if source.producer is None else trait_of(source.producer, View)
        viewed = None if views is None or source.producer is None else views.slots[0].value(source.producer)
        if viewed is None:
            return len(dims) == 1 and dims[0] is not None and not dims[0] % depth
        source = viewed


def _whole_rows(b: RuleBuilder, x: Value, depth: int) -> Value:
    """x flat, without the elements behind its last whole row, which the kernel does not read."""
    rows = rows_of(x.type.dims, depth)
    flat = b.reshape(x, (None if rows is None else math.prod(x.type.sizes),))
    ends = TensorType((rows,), x.type.element)
    last = sliced(b, flat, [depth - 1], [0], ends, step=depth, end_mask=1)
    end = b.emit(Mul, b.alike(shape_of(b, last, 1), [depth]), TensorType((1,), i32))
    return sliced(b, flat, [0], end, TensorType((rows and rows * depth,), x.type.element))


def rows_of(shape: tuple[int | None, ...], depth: int) -> int | None:
    """The number of rows of `depth` elements in the input; None if a dim is not known."""
    return None if None in shape else math.prod(d or 0 for d in shape) // depth


def bias_as_read(
    op: FullyConnected, b: RuleBuilder, x: ScalarType, weights: ScalarType
) -> tuple[ScalarType, Value | None, bool]:
    """The type that the kernel sums in, the bias as it reads it, and whether it misreads it. `x` and `weights`: the
    types that the kernel reads them as."""
    bias, declared = op.bias, op.quantized_bias_type
    wide = weights == i16
    narrow = x != i16 or declared == "INT32" or (wide and declared != "INT64")
    wanted = i32 if narrow else i64
    acc = i64 if wide else wanted
    if bias is None or bias.type.storage == wanted:
        return acc, bias, False
    if wanted == i32 and bias.type.storage == i64 and bias.is_constant:
        words = bias.array.reshape(-1).view(np.int32)
        return acc, b.constant(words[: bias.array.size], i32), True
    raise unread_bias(bias, wanted)


FULLY_CONNECTED = Products(0, (1,), fully_connected_sums)


# BATCH_MATMUL on int8 and int16.
#
#     result = clamp(scale(sum_k (x[..., m, k] - x_zp) * (y[..., k, n] - y_zp)) + zp)
#
# `scale` is the fixed-point multiplier of the legacy product of the scales. int8 sums in 32 bits, int16, which has no
# zero points, in 64. int8 into int32 is the plain sum of products of stored integers: scales and zero points are not
# read. The kernel reads the scale of an operand that is quantized per axis as 0, so that the result is its zero point
# everywhere. adj_x and adj_y swap the last two dims of an operand; the dims before these broadcast. Sources:
# kernels/batch_matmul.cc, kernels/internal/reference/batch_matmul.h.


_ACCUMULATORS = {(i8, i8, i8): i32, (i8, i8, i32): i32, (i16, i16, i16): i64, (i16, i8, i16): i64}
"""The type that the kernel sums in, for the types of x, y and the result."""
_WRITTEN = {(i8, i8): i32, (i16, i16): i16, (i16, i8): i16}
"""The type that it writes into a result of any other type."""

_SCALE_OF_NOTHING = (
    "the kernel reads the scale of an operand that is quantized per axis as 0: the result is its zero point everywhere"
)
_IGNORED_ZERO_POINTS = "the kernel ignores zero points where the result is int32, and one is not 0"


@rule(BatchMatMul)
def batch_matmul(op: BatchMatMul, b: RuleBuilder) -> Answer:
    """tosa.transpose per adjoint, tosa.matmul, tosa.rescale."""
    x, y, result = op.lhs, op.rhs, op.result
    types = (x.type.storage, y.type.storage, result.type.storage)
    acc = _ACCUMULATORS.get(types)
    if acc is None:
        written = _WRITTEN.get(types[:2], types[2])
        words = "" if written == types[2] else f"the kernel writes {written} into a result of {types[2]}"
        if x.type.storage == i16 and any(has_zero_point(v) for v in (x, y, result)):
            words = ""  # the kernel refuses int16 with zero points
        raise NotApplicable(f"no integer form for {types[0]} by {types[1]} into {types[2]}", unsettled=words)
    shape, depth = sizes_of(op)
    sides = b.value(x), b.value(y)
    if types[2] == i32:
        ignored = has_zero_point(x) or has_zero_point(y)
        return Rewritten([product(op, b, sides, shape, acc)], warning=_IGNORED_ZERO_POINTS if ignored else "")
    if (without := _without_scale(op, b, shape, acc)) is not None:
        return without
    left, right, target = elements = per_layer(op)
    if acc == i64:
        symmetric(op, *elements)
    factor = b.kernel_set.batch_matmul(left, right, target)
    sums = product(op, b, sides, shape, acc, (left.zero_point, right.zero_point))
    if depth is None:
        bounds, at_least = Bounds.of(acc.minimum, acc.maximum), _of_products(left, right, 1)
    else:
        bounds, at_least = _bounds(op, b, left, right, depth), None
    return requantize(b, sums, factor, target, "NONE", bounds, at_least).rewritten()


def _without_scale(op: BatchMatMul, b: RuleBuilder, shape: Shape, acc: ScalarType) -> Rewritten | None:
    """The zero point everywhere, where an operand is quantized per axis and the result per layer; else None."""
    target = op.result.type.element
    operands = (op.lhs.type.element, op.rhs.type.element)
    if not isinstance(target, UniformQuantizedType) or not all(map(is_quantized, operands)):
        return None
    if not any(isinstance(e, UniformQuantizedPerAxisType) and e.scales.size > 1 for e in operands):
        return None
    sums = product(op, b, (b.value(op.lhs), b.value(op.rhs)), shape, acc)
    nothing = np.zeros(1, np.int64)
    scaled = requantize(b, sums, QuantizedMultiplier(np.zeros(1)), target, "NONE", Bounds(nothing, nothing))
    return scaled.rewritten(None, _SCALE_OF_NOTHING)


def sizes_of(op: BatchMatMul) -> tuple[tuple[int | None, ...], int | None]:
    """The result's shape, and how many products a sum has, if that is known. NotApplicable for shapes that the kernel
    does not take."""
    x, y = op.lhs.type.shape, op.rhs.type.shape
    if x is None or y is None:
        raise NotApplicable("the rank of an operand is not known")
    if not (2 <= len(x) <= 5 and 2 <= len(y) <= 5):
        raise NotApplicable(f"the kernel takes ranks 2 to 5, not {len(x)} by {len(y)}")
    rows, depth = (x[-1], x[-2]) if op.adj_x else (x[-2], x[-1])
    depths, columns = (y[-1], y[-2]) if op.adj_y else (y[-2], y[-1])
    if depth is not None and depths is not None and depth != depths:
        raise NotApplicable(f"rows of {depth} do not meet columns of {depths}")
    try:
        outer = broadcast(x[:-2], y[:-2]) or ()
    except Misfit as error:
        raise NotApplicable(str(error)) from error
    return (*outer, rows, columns), depths if depth is None else depth


def product(
    op: BatchMatMul,
    b: RuleBuilder,
    sides: tuple[Value, Value],
    shape: Shape,
    acc: ScalarType,
    zero_points: tuple[int, int] = (0, 0),
) -> Value:
    """The accumulator of two sides in the integer form."""
    x, y = sides
    x, y = _swapped(b, x) if op.adj_x else x, _swapped(b, y) if op.adj_y else y
    return b.emit(MatMul, [x, y], TensorType(shape, acc), a_zp=zero_points[0], b_zp=zero_points[1])


def _swapped(b: RuleBuilder, x: Value) -> Value:
    """x with its last two dims swapped."""
    *outer, rows, columns = range(x.type.rank or 0)
    return b.transpose(x, (*outer, columns, rows))


def _bounds(
    op: BatchMatMul, b: RuleBuilder, left: UniformQuantizedType, right: UniformQuantizedType, depth: int
) -> Bounds:
    """Bounds of the accumulator, from the right side itself if it is constant."""
    y = op.rhs
    if not y.is_constant:
        return _of_products(left, right, depth)
    summed = (y.type.rank or 0) - (1 if op.adj_y else 2)
    return bounds_of(left, b.value(y), (summed,), right.zero_point, b.constant(0, i64))


def _of_products(left: UniformQuantizedType, right: UniformQuantizedType, depth: int) -> Bounds:
    """Bounds of a sum of `depth` products of any stored numbers."""
    ends = [depth * x * y for x in left.ends for y in right.ends]
    return Bounds(np.asarray([min(ends)], np.int64), np.asarray([max(ends)], np.int64))
