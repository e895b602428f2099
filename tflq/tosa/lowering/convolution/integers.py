"""CONV2D, CONV3D and DEPTHWISE_CONV2D on integers.

TOSA has i8 by i8 or i4 into i32, and i16 by i8 into i48. A sum that the integer form has in i32 of i16 is RESCALEd by
one. i16 by i16 is a MATMUL, whose rows end in constants that make the bias: i48 cannot be added. Zero points move with
uint8 tensors (`tflq.tosa.lowering.context`). Source: TOSA 1.0 specification, CONV2D, CONV3D, DEPTHWISE_CONV2D, MATMUL.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tflq.dialects.tosa.convolution import Conv2D, Conv3D, Convolution, DepthwiseConv2D, TransposeConv2D
from tflq.dialects.tosa.matmul import MatMul
from tflq.errors import Refused
from tflq.ir.core import Value, constant
from tflq.ir.types import ScalarType, TensorType, i4, i8, i16, i32, i64
from tflq.numerics.convolution import crude_bounds
from tflq.numerics.fixed_point import Multiplier
from tflq.tosa.lowering.convolution.wide_weights import halves, side_by_side
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.windows import extents, fitted

__all__ = ["accumulated", "bias_like", "filters_of", "narrowed"]

_ONE = Multiplier(1 << 30, 1)
_BIAS_INPUTS = 3
"""Constant inputs of -32768 by which the i16 product makes a bias of 32 bits."""


@lowering(Conv2D)
def conv2d(op: Conv2D, t: Tosa) -> Value:
    x, (weights, zero_point) = t.value(op.input), filters_of(t, op)
    if weights.type.storage == i16 and x.type.storage == i16 and _is_product(op, weights):
        return _wide_product(op, t, x, weights)
    x, weights = side_by_side(t, x, weights, "convolution")
    return _convolved(op, t, x, weights, zero_point)


@lowering(DepthwiseConv2D)
def depthwise_conv2d(op: DepthwiseConv2D, t: Tosa) -> Value:
    x, (weights, zero_point) = t.value(op.input), filters_of(t, op)
    if weights.type.storage != i16:
        return _convolved(op, t, x, weights, zero_point)
    near, rest = halves(weights, "depthwise convolution")
    if op.result.type.storage != i32:
        raise Refused("TOSA adds no sums of 48 bits, which a depthwise convolution by weights of nine bits takes")
    sums = _convolved(op, t, x, constant(near), zero_point)
    none = constant(np.zeros([d or 0 for d in op.bias.type.shape or ()], np.int32))
    return t.add(sums, _convolved(op, t, x, constant(rest), zero_point, none))


@lowering(Conv3D)
def conv3d(op: Conv3D, t: Tosa) -> Value:
    shape = op.result.type.shape
    x, (weights, zero_point) = t.value(op.input), filters_of(t, op)
    x, weights = side_by_side(t, x, weights, "convolution in three dims")
    filters = [d or 0 for d in weights.type.shape or ()]
    x, pad = fitted(t, x, extents(filters[1:4], op.dilation), op.stride, op.pad, (shape or (None,) * 5)[1:4])
    acc = accumulated(t, op, x, weights, prod(filters[1:]))
    sums = t.emit(
        Conv3D,
        [x, weights, bias_like(t, op.bias, acc)],
        TensorType(shape, acc),
        pad=pad,
        stride=op.stride,
        dilation=op.dilation,
        input_zp=t.zero_point(op.input, op.input_zp),
        weight_zp=zero_point,
    )
    return narrowed(t, sums, op.result.type.storage)


def _convolved(
    op: Conv2D | DepthwiseConv2D, t: Tosa, x: Value, weights: Value, zero_point: int, bias: Value | None = None
) -> Value:
    """The sums, with another bias than the operator's if one is given."""
    shape, depthwise = op.result.type.shape, isinstance(op, DepthwiseConv2D)
    kernel = [d or 0 for d in (weights.type.shape or ())[slice(2) if depthwise else slice(1, 3)]]
    x, pad = fitted(t, x, extents(kernel, op.dilation), op.stride, op.pad, (shape or (None,) * 4)[1:3])
    terms = prod(d or 0 for d in (weights.type.shape or ())[slice(2) if depthwise else slice(1, 4)])
    acc = accumulated(t, op, x, weights, terms)
    sums = t.conv2d(
        x,
        weights,
        bias_like(t, bias or op.bias, acc),
        shape,
        pad=pad,
        stride=op.stride,
        dilation=op.dilation,
        input_zp=t.zero_point(op.input, op.input_zp),
        weight_zp=zero_point,
        acc=acc,
        depthwise=depthwise,
    )
    return narrowed(t, sums, op.result.type.storage)


def filters_of(t: Tosa, op: Convolution) -> tuple[Value, int]:
    """The weights and their zero point, as TOSA takes them beside the operator's input.

    int4 is widened to int8 where TOSA lacks the product, or the value -8. Beside int16, which
    has no zero points, weights are less theirs, int16 where that does not fit int8.
    """
    weights, beside = t.value(op.weight), t.storage(op.input)
    zero_point = t.zero_point(op.weight, op.weight_zp)
    if weights.type.storage == i4 and (beside != i8 or weights.array.min(initial=0) == i4.minimum):
        weights = constant(np.ascontiguousarray(weights.array.astype(np.int8)))
    if beside == i16 and zero_point and weights.is_constant:
        centred = weights.array.astype(np.int16) - np.int16(zero_point)
        narrow = (centred == centred.astype(np.int8)).all()
        weights, zero_point = constant(centred.astype(np.int8) if narrow else centred), 0
    return weights, zero_point


def accumulated(t: Tosa, op: Convolution, x: Value, weights: Value, terms: int) -> ScalarType:
    """What TOSA sums in: i32, or i48 (as i64) for int16. Refused where a sum of `terms` products may leave that."""
    if x.type.storage != i16:
        if op.result.type.storage != i32:
            raise Refused("the accumulator can leave the 32 bits that TOSA has for int8")
        return i32
    t.need("int16", "a convolution of int16")
    if op.input_zp or (op.weight_zp and not weights.is_constant):
        raise Refused("TOSA has no zero points beside int16")
    offset = op.bias.array if op.bias.is_constant else np.asarray([i32.minimum, i32.maximum])
    low, high = crude_bounds(terms, -weights.type.storage.minimum, i16.minimum, i16.maximum, offset)
    if low < -(1 << 47) or high >= 1 << 47:
        raise Refused("the accumulator can leave the 48 bits that TOSA has for it")
    return i64


def bias_like(t: Tosa, bias: Value, acc: ScalarType) -> Value:
    """The bias in the accumulator's type."""
    found = t.value(bias)
    if found.type.storage == acc:
        return found
    if not found.is_constant:
        raise Refused(f"bias '{bias.name}' is computed in {found.type.storage}, and TOSA cannot widen it to 48 bits")
    return t.constant(found.array, acc)


def narrowed(t: Tosa, sums: Value, to: ScalarType) -> Value:
    """Sums in 48 bits as i32, if the integer form has them so."""
    return t.rescale(sums, _ONE, i32) if (sums.type.storage, to) == (i64, i32) else sums


def _is_product(op: Conv2D, weights: Value) -> bool:
    """Whether a convolution is one of rows, as a matrix product is."""
    return (weights.type.shape or ())[1:3] == (1, 1) and tuple(op.stride) == (1, 1) and not any(op.pad)


def _wide_product(op: Conv2D, t: Tosa, x: Value, weights: Value) -> Value:
    """A 1x1 convolution of int16 by int16: MATMUL [1, N, I + 4] by [1, I + 4, O].

    bias = 32768 h + l with 0 <= l < 32768: -h, in three parts, meets inputs of -32768, and l one of 1. Sums in 48 bits
    keep the product's shape, since i48 has no RESHAPE; the result of their RESCALE is reshaped.
    """
    shape = op.result.type.shape
    bias, depth = t.value(op.bias), (weights.type.shape or ())[-1] or 0
    if not (weights.is_constant and bias.is_constant) or shape is None or x.type.shape is None:
        raise Refused("weights of int16 or their bias are not constant")
    accumulated(t, op, x, weights, depth)
    offset = bias.array.astype(np.int64)
    if offset.min(initial=0) < i32.minimum or offset.max(initial=0) > i32.maximum:
        raise Refused("a bias of more than 32 bits beside weights of int16")
    high, low = offset >> 15, offset & 0x7FFF
    parts = [(i - high) // _BIAS_INPUTS for i in range(_BIAS_INPUTS)]
    rows = np.concatenate([weights.array.reshape(-1, depth).T, *(p[None] for p in parts), low[None]]).astype(np.int16)
    count = None if None in x.type.shape[:-1] else prod(d or 0 for d in x.type.shape[:-1])
    matrix = t.reshape(x, (1, count, depth))
    none = (0, 0)
    matrix = t.pad(t.pad(matrix, (none, none, (0, _BIAS_INPUTS)), i16.minimum), (none, none, (0, 1)), 1)
    type = TensorType((1, count, rows.shape[1]), i64)
    sums = t.emit(MatMul, [matrix, constant(rows[None])], type, a_zp=0, b_zp=0)
    return sums if op.result.type.storage == i64 else t.reshape(narrowed(t, sums, i32), shape)


@lowering(TransposeConv2D)
def transpose_conv2d(op: TransposeConv2D, t: Tosa) -> Value:
    x, (weights, zero_point) = t.value(op.input), filters_of(t, op)
    x, weights = side_by_side(t, x, weights, "transposed convolution")
    _, kernel_h, kernel_w, _ = shape = [d or 0 for d in weights.type.shape or ()]
    top, bottom, left, right = op.out_pad
    if min(top, bottom) <= -kernel_h or min(left, right) <= -kernel_w:
        raise Refused("TOSA takes off less than the filter's size at each edge")
    acc = accumulated(t, op, x, weights, prod(shape[1:]))
    sums = t.emit(
        TransposeConv2D,
        [x, weights, bias_like(t, op.bias, acc)],
        TensorType(op.result.type.shape, acc),
        out_pad=tuple(op.out_pad),
        stride=tuple(op.stride),
        input_zp=t.zero_point(op.input, op.input_zp),
        weight_zp=zero_point,
    )
    return narrowed(t, sums, op.result.type.storage)
