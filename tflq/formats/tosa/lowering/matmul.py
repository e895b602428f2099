"""Matrix products and pools.

TOSA's MATMUL has rank 3, one batch dim and operands of one type. The dims before the last two become one; a right side
without them takes those of the left as rows; else what broadcasts is tiled. int16 by 8 bits widens the latter, less its
zero point. Sources: TOSA 1.0 specification, MATMUL; kernels/batch_matmul.cc, fully_connected.cc.

TOSA's average of integers with zero points 0 is TFLite's: the mean of the elements inside, half away from zero
(`tflq.numerics.convolution` has the proof and its limit). uint8, here int8 less 128, averages with zero points of -128.
L2_POOL_2D is the root of the mean of squares. Sources: kernels/pooling.cc, internal/reference/pooling.h; TOSA 1.0
specification, AVG_POOL2D, MAX_POOL2D.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflq.base import sized
from tflq.base.errors import Refused
from tflq.dialects.inference import product
from tflq.dialects.tfl.convolution import BatchMatMul, FullyConnected
from tflq.dialects.tfl.pooling import AveragePool2D, L2Pool2D
from tflq.dialects.tfl.pooling import MaxPool2D as TflMaxPool2D
from tflq.dialects.tosa.convolution import AvgPool2D, Conv2D, MatMul, MaxPool2D
from tflq.dialects.tosa.elementwise import Rsqrt
from tflq.formats.tosa.lowering.context import ONE, Tosa, lowering
from tflq.formats.tosa.lowering.convolution import (
    fit_halves,
    fitted,
    float_bias,
    float_operands,
    narrowed,
    same_or_valid,
    static_shape,
)
from tflq.formats.tosa.lowering.floats import factor, fused_activation, need_float, real, reciprocal
from tflq.ir.ops import Value, constant
from tflq.ir.types import ScalarType, Shape, f32, i8, i16, i32, i64
from tflq.numerics.convolution import average_is_exact, crude_bounds

_Pool = AvgPool2D | MaxPool2D


@lowering(MatMul)
def matmul(op: MatMul, t: Tosa) -> Value:
    zero_points = t.zero_point(op.input1, op.a_zp), t.zero_point(op.input2, op.b_zp)
    return _integer(t, t.value(op.input1), t.value(op.input2), zero_points, op.result.type.storage)


@lowering(BatchMatMul)
def batch_matmul(op: BatchMatMul, t: Tosa) -> Value:
    """float32, or plain int8 into int32."""
    integer = op.lhs.type.storage == i8 and op.result.type.storage == i32
    if not integer:
        need_float(t, "BATCH_MATMUL")
    if integer:
        x, y = t.value(op.lhs), t.value(op.rhs)
    else:
        x, y = real(t, op.lhs), factor(op, t, op.rhs, -2 if op.adj_y else -1)
    x, y = _swapped(t, x, op.adj_x), _swapped(t, y, op.adj_y)
    return _integer(t, x, y, (0, 0), i32) if integer else _product(t, x, y, (0, 0), f32, f32)


@lowering(FullyConnected)
def fully_connected(op: FullyConnected, t: Tosa) -> Value:
    """A 1x1 convolution of rows."""
    if op.weights_format != "DEFAULT":
        raise Refused("the weights are stored in the shuffled format")
    x, weights = float_operands(op, t, op.input, op.weights, None)
    outputs, depth = static_shape(weights)
    shape = x.type.dims
    keep = bool(op.keep_num_dims)
    size = product(shape)
    count = None if size is None else size // max(depth, 1)
    if size is not None and size != (count or 0) * depth:
        raise Refused(f"{size} elements do not fill rows of {depth}, and the kernel leaves the rest out")
    result = (*shape[:-1], outputs) if keep else (count, outputs)
    direct = len(shape) == 4 and shape[-1] == depth and keep
    if result.count(None) > 1 and not direct:
        raise Refused("more than one dim of the result is not known")
    rows = x if direct else t.reshape(x, (count, 1, 1, depth))
    sums = multiplied_rows(t, rows, weights, float_bias(t, op.bias, outputs))
    return fused_activation(t, t.reshape(sums, result), op.fused_activation_function)


def multiplied_rows(t: Tosa, rows: Value, weights: Value, bias: Value) -> Value:
    """Float rows [..., 1, 1, depth] by weights [outputs, depth], plus a bias, as a 1x1 convolution."""
    outputs, depth = static_shape(weights)
    filters = t.reshape(weights, (outputs, 1, 1, depth))
    options = {"pad": (0,) * 4, "stride": (1, 1), "dilation": (1, 1), "input_zp": 0, "weight_zp": 0}
    return t.emit(Conv2D, [rows, filters, bias], f32, **options)


def _swapped(t: Tosa, x: Value, adjoint: bool) -> Value:
    """x, its last two dims swapped if it is to be multiplied so."""
    if not adjoint:
        return x
    if x.is_constant:
        return constant(np.ascontiguousarray(np.swapaxes(x.array, -1, -2)))
    *outer, rows, columns = range(len(x.type.dims))
    return t.transpose(x, (*outer, columns, rows))


def _integer(t: Tosa, x: Value, y: Value, zero_points: tuple[int, int], to: ScalarType) -> Value:
    """The sums of products of integers, in i32, or in i48 where one side is int16."""
    if i16 not in (x.type.storage, y.type.storage):
        return _product(t, x, y, zero_points, i32, to)
    split = fit_halves(y) if x.type.storage == i8 and to == i32 else None
    if split is not None:
        x = t.concat([x, x], len(x.type.dims) - 1)
        y = constant(np.ascontiguousarray(np.concatenate(split, axis=-2)))
        return _product(t, x, y, zero_points, i32, to)
    t.need("int16", "a matrix product of int16")
    x, y = _widened(t, x, zero_points[0]), _widened(t, y, zero_points[1])
    depth = (x.type.shape or (None,))[-1] or (y.type.shape or (None, None))[-2]
    bound = None if depth is None else crude_bounds(depth, 1 << 15, i16.minimum, i16.maximum, 0)[1]
    if bound is None or bound >= 1 << 47:
        raise Refused("the sums can leave the 48 bits that TOSA has for them")
    return _product(t, x, y, (0, 0), i64, to)


def _widened(t: Tosa, x: Value, zero_point: int) -> Value:
    """x less its zero point as int16, which has none."""
    if x.type.storage == i16:
        if zero_point:
            raise Refused("TOSA has no zero points with int16")
        return x
    if x.is_constant:
        return t.constant(x.array.astype(np.int16) - np.int16(zero_point), i16)
    return t.rescale(x, ONE, i16, input_zp=zero_point) if zero_point else t.cast(x, i16)


def _product(t: Tosa, x: Value, y: Value, zero_points: tuple[int, int], acc: ScalarType, to: ScalarType) -> Value:
    """MATMUL of operands of any rank that broadcast."""
    if x.type.shape is None or y.type.shape is None or min(len(x.type.shape), len(y.type.shape)) < 2:
        raise Refused("the rank of an operand is less than 2 or not known")
    x, y = t.aligned(x, y)
    *outer, rows, depth = x.type.dims
    *others, depths, columns = y.type.dims
    if depth is not None and depths is not None and depth != depths:
        raise Refused(f"rows of {depth} do not meet columns of {depths}")
    if all(d == 1 for d in others) and not all(d == 1 for d in outer):
        shape = (*outer, rows, columns)
        left = _reshaped(t, x, (1, product((*outer, rows)), depth))
        right = _reshaped(t, y, (1, depths, columns))
    else:
        common = [_common(a, b) for a, b in zip(outer, others, strict=True)]
        x, y = (_tiled(t, v, common) for v in (x, y))
        shape, batch = (*common, rows, columns), product(common)
        left, right = _reshaped(t, x, (batch, rows, depth)), _reshaped(t, y, (batch, depths, columns))
    sums = t.emit(MatMul, [left, right], acc, a_zp=zero_points[0], b_zp=zero_points[1])
    return _reshaped(t, narrowed(t, sums, to), shape) if acc != i64 or to != i64 else sums


def _common(a: int | None, b: int | None) -> int | None:
    """The dim that two make."""
    if a != b and a != 1 and b != 1 and None not in (a, b):
        raise Refused(f"dims of {a} and {b} do not broadcast")
    return b if a == 1 else a


def _tiled(t: Tosa, x: Value, outer: list[int | None]) -> Value:
    """x with its first dims as large as these."""
    shape = x.type.dims
    if any(want is None and have == 1 for want, have in zip(outer, shape, strict=False)):
        raise Refused("an operand that is broadcast to a size that is not known cannot be tiled")
    multiples = [(want or 1) if have == 1 else 1 for want, have in zip(outer, shape, strict=False)]
    if x.is_constant and any(m != 1 for m in multiples):
        return constant(np.ascontiguousarray(sized.tile(x.array, (*multiples, 1, 1))), x.type.storage)
    return t.tile(x, (*multiples, 1, 1))


def _reshaped(t: Tosa, x: Value, shape: Shape) -> Value:
    """RESHAPE; Refused where more than one dim is not known."""
    if shape is None or (shape != x.type.shape and shape.count(None) > 1):
        raise Refused("more than one dim of a matrix product is not known")
    return t.reshape(x, shape)


@lowering(AvgPool2D, MaxPool2D)
def pool(op: _Pool, t: Tosa) -> Value:
    sizes = (op.result.type.shape or (None,) * 4)[1:3]
    zero_points = (op.input_zp, op.output_zp) if isinstance(op, AvgPool2D) else (0, 0)
    return _pooled(op, t, t.value(op.input), type(op), op.kernel, op.stride, op.pad, sizes, zero_points)


@lowering(AveragePool2D, TflMaxPool2D)
def kernel_pool(op: AveragePool2D | TflMaxPool2D, t: Tosa) -> Value:
    """Of float32, or of plain integers without an activation."""
    x = t.value(op.input)
    if op.input.type.storage.is_float:
        need_float(t, op)
    elif op.fused_activation_function != "NONE":
        raise Refused("an activation of integers without quantization parameters")
    return _windowed(op, t, x, MaxPool2D if isinstance(op, TflMaxPool2D) else AvgPool2D)


@lowering(L2Pool2D)
def l2_pool(op: L2Pool2D, t: Tosa) -> Value:
    need_float(t, op)
    x = t.value(op.input)
    if not x.type.storage.is_float:
        raise Refused(f"it is of {x.type.storage}, and only floats have a square root")
    mean = _windowed(op, t, t.mul(x, x), AvgPool2D, activation="NONE")
    return fused_activation(t, reciprocal(t, t.emit(Rsqrt, [mean])), op.fused_activation_function)


def _windowed(
    op: AveragePool2D | TflMaxPool2D | L2Pool2D, t: Tosa, x: Value, kind: type[_Pool], *, activation: str | None = None
) -> Value:
    """The pool of x by the operator's windows, and its activation, or another one."""
    kernel, stride = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    pad, sizes = same_or_valid(x, kernel, stride, op.padding)
    pooled = _pooled(op, t, x, kind, kernel, stride, pad, sizes)
    return fused_activation(t, pooled, op.fused_activation_function if activation is None else activation)


def _pooled(
    op: _Pool | AveragePool2D | TflMaxPool2D | L2Pool2D,
    t: Tosa,
    x: Value,
    kind: type[_Pool],
    kernel: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    sizes: Sequence[int | None],
    zero_points: tuple[int, int] = (0, 0),
) -> Value:
    """The pool of what the windows read of x."""
    if x.type.shape is None or len(x.type.shape) != 4:
        raise Refused("the rank is not known to be 4")
    storage = x.type.storage
    if storage == i16:
        t.need("int16", "pooling of int16")
    elif storage != i8 and not storage.is_float:
        raise Refused(f"TOSA does not pool {storage}")
    x, pad = fitted(t, x, kernel, stride, pad, sizes)
    options: dict[str, Any] = {"kernel": tuple(kernel), "stride": tuple(stride), "pad": tuple(pad)}
    if kind is AvgPool2D:
        input_zp, output_zp = (t.zero_point(op.input, zero_point) for zero_point in zero_points)
        if not storage.is_float and not average_is_exact(kernel, storage.minimum, storage.maximum, input_zp):
            raise Refused(f"the mean of {kernel[0]} x {kernel[1]} elements is not exact in TOSA")
        options |= {"input_zp": input_zp, "output_zp": output_zp}
    return t.emit(kind, [x], **options)
