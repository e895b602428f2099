"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED on tensors whose bytes the kernel reads as those of another type.

These kernels choose their arithmetic by the type of one tensor and read the others as if of its types:

    operator             chosen by              input    weights
    CONV_2D              input uint8            itself   uint8; int4 unpacked, then uint8
                         input int16            itself   int8; int4 unpacked
    DEPTHWISE_CONV_2D    input int16            itself   int8
    FULLY_CONNECTED      result uint8           uint8    uint8
                         result int8            int8     int8; int4 and int2 unpacked
                         result int16, input:
                           int16                itself   int16 itself; else int8, int4 and int2 unpacked
                           int8, uint8          uint8    uint8

They take as many elements as the shape says, from the first bytes, and the zero points as they are. Where
FULLY_CONNECTED reads uint8 it finds no scale of weights per axis: the result is its zero point. Of weights with fewer
bits than it reads, a kernel reads past the end: the result is left to chance.

Sources: kernels/conv.cc, kernels/depthwise_conv.cc, kernels/fully_connected.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D, FullyConnected
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, UniformQuantizedType, i2, i4, i8, i16, i32, ui8
from tflq.legalize.convolution import PRODUCTS
from tflq.legalize.matmul import FULLY_CONNECTED, HALVED_BIAS, bias_as_read
from tflq.legalize.probing import per_layer
from tflq.legalize.rescaled import (
    Products,
    Sums,
    Terms,
    accumulator,
    bias_of,
    bounds_of,
    requantize,
    scales_of,
    weight_zero_point,
)
from tflq.legalize.rule import Answer, NotApplicable, RuleBuilder, rule
from tflq.numerics.requantize.scaling import Bounds

_Operator: TypeAlias = FullyConnected | Conv2D | DepthwiseConv2D

_MOST_FILLS = 256
_MISREAD = "the kernel reads the bytes of '{}', which is {}, as {}"
_PAST_END = "the kernel reads '{}', of {}, as {}, past its end"
_NO_SCALE = "the kernel reads the scale of weights that are quantized per axis as 0: the result is its zero point"


class _Reading(NamedTuple):
    """The types that a kernel reads input and weights as, and the types of weights that it unpacks first."""

    x: ScalarType
    weights: ScalarType
    unpacked: tuple[ScalarType, ...] = ()


@rule(Conv2D, DepthwiseConv2D, FullyConnected, order=1)
def reinterpreted(op: _Operator, b: RuleBuilder) -> Answer:
    """The operator on bytes taken apart, and put together as the kernel reads them."""
    x, weights, connected = op.input, _weights(op), isinstance(op, FullyConnected)
    source, target = per_layer(op, [x, op.result])
    reading = _reading(op)
    if b.real or reading is None or (isinstance(op, FullyConnected) and op.weights_format != "DEFAULT"):
        raise NotApplicable("")
    products = FULLY_CONNECTED if isinstance(op, FullyConnected) else PRODUCTS[type(op)]
    axis = products.channels
    scales, shape = scales_of(weights), weights.type.dims
    if scales is None or not weights.type.is_static or not shape or scales.size not in (1, shape[axis]):
        raise NotApplicable("")
    if weights.type.storage.bits < 8 and weights.type.storage not in reading.unpacked:
        raise NotApplicable("", unsettled=_PAST_END.format(weights.name, weights.type.storage, reading.weights))
    if isinstance(op, FullyConnected):
        acc, bias, halved = bias_as_read(op, b, reading.x, reading.weights)
    else:
        acc, bias, halved = accumulator(op, op.bias), op.bias, False
    bias = bias_of(b, bias, shape[axis] or 0, acc)
    stored, weights_stored = as_read(b, x, reading.x), as_read(b, weights, reading.weights)
    if stored is None or weights_stored is None:
        raise NotApplicable("", warning="the kernel reads bytes as another type, and no integer form does")
    without_scale = connected and scales.size > 1 and reading.weights == ui8
    reads_zero_point = scales.size == 1 and (connected or source.storage == ui8)
    zeros = (source.zero_point, weight_zero_point(weights) if reads_zero_point else 0)
    sums, bounds = _summed(op, b, products, (stored, weights_stored), zeros, bias)
    scales = np.zeros(1, np.float32) if without_scale else scales
    factor_of = b.kernel_set.fully_connected_bytes if connected else b.kernel_set.convolution
    factor = factor_of(source, scales, target)
    scaled = requantize(b, sums.value, factor, target, op.fused_activation_function, bounds)
    words = [
        _MISREAD.format(v.name, v.type.storage, to)
        for v, to in ((x, reading.x), (weights, reading.weights))
        if v.type.storage != to and not (to.signed and v.type.storage in reading.unpacked)
    ]
    words += [_NO_SCALE] * without_scale + [HALVED_BIAS] * halved
    return scaled.rewritten(sums.finish(b, scaled.value), *words)


def _weights(op: _Operator) -> Value:
    return op.weights if isinstance(op, FullyConnected) else op.filter


def _reading(op: _Operator) -> _Reading | None:
    """None where no kernel runs on such types, or reads them all as what they are."""
    filters = _weights(op)
    x, weights, result = (v.type.storage for v in (op.input, filters, op.output))
    per_axis = not isinstance(filters.type.element, UniformQuantizedType)
    if isinstance(op, FullyConnected):
        if x not in (i8, ui8, i16) or weights not in (i8, ui8, i16, i4, i2) or (per_axis and ui8 in (x, weights)):
            return None
        if weights == i16 or ((x, result) in ((i16, i16), (ui8, i16)) and weights != (ui8 if x == i16 else i8)):
            return None  # types that the kernels are for, or that none runs on
        if result == i8:
            return _Reading(i8, i8, (i4, i2))
        if x == i16 == result:
            return _Reading(i16, i8, (i4, i2))
        return _Reading(ui8, ui8) if result in (ui8, i16) and (weights.bits == 8 or result == i16) else None
    zeros = np.atleast_1d(getattr(filters.type.element, "zero_points", weight_zero_point(filters)))
    if x != result or (per_axis and weights not in (i8, i4)):
        return None
    if isinstance(op, Conv2D):
        if x == i16:
            return None if zeros.any() else _Reading(i16, i8, (i4,))
        return _Reading(ui8, ui8, (i4,)) if x == ui8 and not per_axis else None
    if x == i16:
        return _Reading(i16, i8)
    return _Reading(ui8, ui8) if (x, weights) == (ui8, i4) else None


def as_read(b: RuleBuilder, tensor: Value, to: ScalarType) -> Value | None:
    """The first bytes of a tensor as elements of an 8-bit type, in its shape; None if ops cannot take them apart."""
    x, storage = b.value(tensor), tensor.type.storage
    if storage == to or not tensor.type.is_static:
        return x if storage == to else None
    shape = x.type.sizes
    count = math.prod(shape)
    if x.is_constant:
        little = np.ascontiguousarray(x.array).astype(x.array.dtype.newbyteorder("<"), copy=False)
        return b.constant(little.reshape(-1).view(to.dtype)[:count].reshape(shape), to)
    if storage.bits == 8:
        return b.cast(b.cast(x, i32), to)
    if storage not in (i16, i32):
        return None
    width = storage.bits // 8
    words = b.cast(_first(b, b.reshape(x, (count,)), -(-count // width)), i32)
    rows = words.type.dims
    parts = [b.reshape(b.cast(b.arithmetic_right_shift(words, [8 * k]), to), (*rows, 1)) for k in range(width)]
    joined = b.reshape(b.concat(parts, 1), ((rows[0] or 0) * width,))
    return b.reshape(_first(b, joined, count), shape)


def _first(b: RuleBuilder, x: Value, count: int) -> Value:
    """The first elements of a vector."""
    if x.type.shape == (count,):
        return x
    return b.slice(x, (0,), (count,))


def _summed(
    op: _Operator,
    b: RuleBuilder,
    products: Products,
    read: tuple[Value, Value],
    zeros: tuple[int, int],
    bias: Value,
) -> tuple[Sums, Bounds]:
    """The accumulator and its bounds.

    The type that is read may not hold the zero point z. Then y, the nearest number that it holds, takes its place, with
    constant numbers v such that y - z is the sum of v - y: (x - z) (w - z') is the sum of the products of all parts of
    both sides. The parts are side by side along the dim of input channels. If the input is int16, y of the weights is
    0, as TOSA demands.
    """
    x, weights = read
    within = [min(max(z, v.type.storage.minimum), v.type.storage.maximum) for v, z in zip(read, zeros, strict=True)]
    near, fills = _split(x.type.storage, zeros[0], within[0])
    weight_near, weight_fills = _split(weights.type.storage, zeros[1], 0 if x.type.storage == i16 else within[1])
    if max(len(fills), len(weight_fills)) > _MOST_FILLS:
        raise NotApplicable("", warning="a zero point is far outside of the type that the kernel reads")
    if fills or weight_fills:
        rows = _rows_of(op, b, x, weights.type.dims[-1] or 0)
        if rows is None:
            raise NotApplicable("", warning="a zero point is outside of the type that the kernel reads")
        parts = [(rows, weights), *((rows, _filled(b, weights, v)) for v in weight_fills)]
        parts += [
            (_filled(b, rows, u), w) for u in fills for w in (weights, *(_filled(b, weights, v) for v in weight_fills))
        ]
        x, weights = (_joined(b, side) for side in zip(*parts, strict=True))
    sums = products.sums(_on(op, x), b, Terms(weights, bias, near, weight_near, bias.type.storage))
    stored = UniformQuantizedType.of(x.type.storage, 1.0, near)
    return sums, bounds_of(stored, weights, products.summed, weight_near, bias)


def _split(storage: ScalarType, zero: int, near: int) -> tuple[int, list[int]]:
    """A zero point that a type holds, and the numbers that make up for its distance from `zero`."""
    rest, fills = near - zero, list[int]()
    while rest and len(fills) <= _MOST_FILLS:
        part = max(min(rest, storage.maximum - near), storage.minimum - near)
        fills.append(near + part)
        rest -= part
    return near, fills


def _rows_of(op: _Operator, b: RuleBuilder, x: Value, depth: int) -> Value | None:
    """x with `depth` input channels in its last dim, FULLY_CONNECTED's as rows of them; None if that is impossible."""
    shape = x.type.shape
    if shape is None or shape[-1:] == (depth,):
        return None if shape is None else x
    if not isinstance(op, FullyConnected) or op.keep_num_dims or None in shape or not depth:
        return None
    if math.prod(x.type.sizes) % depth:
        return None
    return b.reshape(x, (math.prod(x.type.sizes) // depth, depth))


def _filled(b: RuleBuilder, like: Value, number: int) -> Value:
    """A tensor of a shape that holds one number."""
    if like.is_constant:
        return b.constant(np.full_like(like.array, number), like.type.storage)
    return b.clamp(like, number, number)


def _joined(b: RuleBuilder, parts: Sequence[Value]) -> Value:
    """Tensors of one shape, joined along the last dim."""
    if all(v.is_constant for v in parts):
        return b.constant(np.concatenate([v.array for v in parts], -1), parts[0].type.storage)
    return b.concat(parts, len(parts[0].type.dims) - 1)


def _on(op: _Operator, x: Value) -> Op:
    """The operator on another input, of plain integers, with results beside those that the operator produces."""
    return op.copy_with([x, *op.operands[1:]], [Value(result.type, result.name) for result in op.results])
