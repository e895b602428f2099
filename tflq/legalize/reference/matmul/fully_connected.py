"""FULLY_CONNECTED on int8, uint8 and int16: a 1x1 convolution over rows of K channels.

    result[m, o] = clamp(scale(bias[o] + sum_k (x[m, k] - x_zp) * (w[o, k] - w_zp)) + zp)

The kernels differ in `scale` and in the weights they take:

    input   weights         result  scale                                       weights' zero point
    int8    int8 int4 int2  int8    float64, s_in * s_w / s_out                 per layer
    int16   int8 int4 int2  int16   float64, s_in * s_w / s_out                 per layer
    uint8   uint8           uint8   float64, s_in * s_w / s_out                 yes
    uint8   uint8           int16   float64, s_in * s_w / s_out                 yes
    int16   int16           int16   fixed-point, 64 bits, legacy or per channel per layer

With int16 weights the sum has 64 bits, but the bias is read as int32 unless the options say INT64; of an int64 one
that is the halves of its first elements. On other types: `generic/reinterpreted.py`.

Sources: kernels/fully_connected.cc, kernels/internal/reference/fully_connected.h, integer_ops/fully_connected.h.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.dialects.declare import trait_of
from tflq.dialects.tfl.arithmetic import Mul
from tflq.dialects.tfl.matmul import FullyConnected
from tflq.dialects.tfl.movement import ExpandDims, Squeeze
from tflq.dialects.traits.memory import View
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, TensorType, UniformQuantizedType, i2, i4, i8, i16, i32, i64, ui8
from tflq.legalize.reference.generic.accumulate import (
    IGNORED_ZERO_POINT,
    Sums,
    Terms,
    bias_of,
    bounds_of,
    scales_of,
    unread_bias,
    unused_zero_point,
    viewed,
    weight_zero_point,
)
from tflq.legalize.reference.generic.allocated import shape_of, sliced
from tflq.legalize.reference.generic.rescaled import fixed, real
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule
from tflq.numerics.convolution import double_scales, legacy_scale

__all__ = ["HALVED_BIAS", "bias_as_read", "fully_connected_sums"]

HALVED_BIAS = (
    "the kernel reads the int64 bias as int32: it takes int64 only if input and result are int16 and "
    "quantized_bias_type is INT64"
)


@rule(FullyConnected)
def fully_connected(op: FullyConnected, b: RuleBuilder) -> Answer:
    """tosa.reshape, tosa.conv2d 1x1, ext.rescale_f64 or tosa.rescale, tosa.clamp, tosa.reshape."""
    x, weights, bias, result = op.input, op.weights, op.bias, op.result
    if op.weights_format != "DEFAULT":
        raise Refused(f"weights '{weights.name}' are stored in the shuffled format", "store them in the default format")
    source, target = x.type.element, result.type.element
    if not isinstance(source, UniformQuantizedType) or not isinstance(target, UniformQuantizedType):
        raise NotApplicable("the input or the result is not quantized per layer")
    if weights.type.rank != 2 or not weights.type.is_static or weights.type.shape is None:
        raise NotApplicable("the weights are not a matrix of known shape")
    scales = scales_of(weights)
    outputs = weights.type.shape[0] or 0
    if scales is None or scales.size not in (1, outputs):
        raise NotApplicable(f"the weights do not have 1 or {outputs} scales")
    kernel = _kernel(source, weights.type.storage, target, scales.size > 1)
    if kernel is None:
        raise NotApplicable(
            f"no kernel for {source.storage} input, {weights.type.storage} weights and {target.storage} result"
        )
    acc, bias, halved = bias_as_read(op, b, source.storage, weights.type.storage, bias)

    per_layer = scales.size == 1
    weight_zp = weight_zero_point(weights) if per_layer else 0
    terms = Terms(b.value(weights), bias_of(b, bias, outputs, acc), source.zero_point, weight_zp, acc)
    sums = fully_connected_sums(op, b, terms)
    bounds = bounds_of(source, weights, (1,), weight_zp, terms.bias)
    activation = op.fused_activation_function
    if kernel == "real":
        answer = real(b, sums.value, double_scales(source.scale, scales, target.scale), target, activation, bounds)
    elif per_layer:
        legacy = np.asarray([legacy_scale(source.scale, float(scales[0]), target.scale)])
        answer = fixed(b, sums.value, legacy, target, activation, bounds)
    else:
        answer = fixed(b, sums.value, double_scales(source.scale, scales, target.scale), target, activation, bounds)
    ignored = not per_layer and unused_zero_point(weights)
    warning = HALVED_BIAS if halved else IGNORED_ZERO_POINT if ignored else ""
    return answer.rewritten(sums.finish(b, answer.value), warning)


def fully_connected_sums(op: FullyConnected, b: RuleBuilder, terms: Terms) -> Sums:
    """A 1x1 convolution with weights [O, K]."""
    x = b.value(op.input)
    outputs, depth = (d or 0 for d in terms.weights.type.shape or ())
    if x.type.shape is None or not outputs or not depth:
        raise NotApplicable("the input's rank is not known, or the weights are empty")
    keep = op.keep_num_dims
    shape = (*x.type.shape[:-1], outputs) if keep else (_rows(x.type.shape, depth), outputs)
    opened = shape.count(None) > 1
    if opened and (len(shape) not in (3, 4) or x.type.shape[-1] != depth):
        raise NotApplicable("more than one dim of the result is not known")
    if opened:
        matrix = _opened(b, x)
    else:
        rows = x if keep or _has_whole_rows(op.input, depth) else _whole_rows(b, x, depth)
        matrix = b.reshape(rows, (_rows(x.type.shape, depth), 1, 1, depth))
    filters = viewed(b, terms.weights, (outputs, 1, 1, depth))
    made = (*(matrix.type.shape or ())[:3], outputs)
    x_zp, w_zp = terms.input_zp, terms.weight_zp
    sums = b.conv2d(matrix, filters, terms.bias, made, input_zp=x_zp, weight_zp=w_zp, acc=terms.acc)
    return Sums(sums, finish=lambda b, y: _closed(b, y, shape) if opened else b.reshape(y, shape))


def _opened(b: RuleBuilder, x: Value) -> Value:
    """x of rank 4 without a RESHAPE, which could infer one dim only; one of rank 3 gets a second dim of 1."""
    if x.type.rank == 4:
        return x
    batch, rows, depth = x.type.shape or ()
    type = TensorType((batch, 1, rows, depth), x.type.element)
    return b.op(ExpandDims, [x, b.constant(np.asarray(1))], [type], {}).result


def _closed(b: RuleBuilder, x: Value, shape: tuple[int | None, ...]) -> Value:
    """The opposite of `_opened`."""
    if len(shape) == 4:
        return x
    type = TensorType(shape, x.type.element)
    return b.op(Squeeze, [x], [type], {"squeeze_dims": np.asarray([1], np.int32)}).result


def _has_whole_rows(x: Value, depth: int) -> bool:
    """Whether the elements of x are rows of `depth` whatever its open dims and its batch are: as its shape says, or the
    shape of a tensor with the same elements."""
    source = x
    while True:
        dims = source.type.shape or ()
        if not math.prod(dim or 1 for dim in dims[1:]) % depth:
            return True
        views = None if source.producer is None else trait_of(source.producer, View)
        viewed = None if views is None or source.producer is None else views.slots[0].value(source.producer)
        if viewed is None:
            return len(dims) == 1 and dims[0] is not None and not dims[0] % depth
        source = viewed


def _whole_rows(b: RuleBuilder, x: Value, depth: int) -> Value:
    """x flat, without the elements behind its last whole row: the kernel does not read them."""
    rows = _rows(x.type.shape or (), depth)
    flat = b.reshape(x, (None if rows is None else math.prod(d or 0 for d in x.type.shape or ()),))
    ends = TensorType((rows,), x.type.element)
    last = sliced(b, flat, b.constant([depth - 1]), b.constant([0]), ends, step=depth, end_mask=1)
    end = b.emit(Mul, [shape_of(b, last, 1), b.constant([depth])], TensorType((1,), i32))
    return sliced(b, flat, b.constant([0]), end, TensorType((rows and rows * depth,), x.type.element))


def _rows(shape: tuple[int | None, ...], depth: int) -> int | None:
    """How many rows of `depth` elements the input makes; None if a dim is not known."""
    return None if None in shape else math.prod(d or 0 for d in shape) // depth


def _kernel(
    source: UniformQuantizedType, weights: ScalarType, target: UniformQuantizedType, per_axis: bool
) -> str | None:
    """ "real" or "fixed", or None if there is no kernel for the types."""
    types = (source.storage, target.storage)
    if types == (i16, i16) and (source.zero_point or target.zero_point):
        return None
    if types in ((i8, i8), (i16, i16)) and weights in (i8, i4, i2):
        return "real"
    if source.storage == ui8 and weights == ui8 and not per_axis:
        return "real" if target.storage in (ui8, i16) else None
    return "fixed" if types == (i16, i16) and weights == i16 else None


def bias_as_read(
    op: FullyConnected, b: RuleBuilder, x: ScalarType, weights: ScalarType, bias: Value | None
) -> tuple[ScalarType, Value | None, bool]:
    """The type the kernel sums in, the bias as it reads it, and whether that is not what the model says. `x` and
    `weights`: the types that the kernel reads them as."""
    declared = op.quantized_bias_type
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
