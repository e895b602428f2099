"""Ops on the bits of integers, for which there is no kernel right everywhere.

clz                  the number of powers of two, 2^0..2^31, above the value read as unsigned
logical_left_shift   a product by a power of two out of a table; the product wraps
logical_right_shift  RIGHT_SHIFT of the bits read as unsigned
bitwise_and          2 (x & y) + a0 b0 with x = a >> 1, y = b >> 1, a0 and b0 the lowest bits;
                     2 (x & y) = x + y - (x ^ y)
bitwise_or           (a ^ b) + (a & b)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.tfl import comparison as tfl
from tflq.dialects.tfl.movement import ExpandDims, Squeeze
from tflq.dialects.tfl.reduction import ArgMin, Sum
from tflq.dialects.tosa.bits import (
    ArithmeticRightShift,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Clz,
    LogicalAnd,
    LogicalLeftShift,
    LogicalNot,
    LogicalOr,
    LogicalRightShift,
    LogicalXor,
)
from tflq.dialects.tosa.reduction import ArgMax
from tflq.ir.core import Op, Value
from tflq.ir.types import TensorType, i8, i16, i32, i64, ui8, ui16, ui32
from tflq.select.broadcasting import elementwise
from tflq.select.kernels import KernelBuilder
from tflq.select.lowering import Kernels, lowering
from tflq.select.reduction import arg_of
from tflq.select.shifts import right_shift

__all__: list[str] = []


@lowering(Clz)
def clz(op: Clz, k: Kernels) -> Value:
    """Comparisons with 32 powers along a last axis, summed; flat, since the kernels broadcast four dims."""
    x = k.value(op.input)
    shape = x.type.shape
    one = shape is not None and shape[-1:] == (1,)
    if one and len(shape or ()) <= 4:
        return _count(k, x)
    if shape is None or shape.count(None) > 1:
        axis = -1 if shape is None else len(shape)
        expanded = TensorType(None if shape is None else (*shape, 1), i32)
        counted = _count(k, k.emit(ExpandDims, [x, k.constant(np.asarray(axis))], expanded))
        return k.emit(Squeeze, [counted], x.type, squeeze_dims=np.asarray([axis], np.int32))
    return k.reshape(_count(k, k.reshape(x, (None, 1))), shape)


def _count(k: KernelBuilder, x: Value) -> Value:
    """clz of x with a last dim of 1."""
    unsigned = k.cast(k.bitcast(x, ui32), i64)
    above = k.cast(k.greater(k.constant(1 << np.arange(32, dtype=np.int64), i64), unsigned), i32)
    return k.reduce(Sum, above, [-1], True, x.type.shape)


@lowering(LogicalLeftShift)
def logical_left_shift(op: LogicalLeftShift, k: Kernels) -> Value:
    x, amount = k.cast(k.value(op.input1), i32), k.cast(k.value(op.input2), i32)
    powers = (1 << np.arange(32, dtype=np.int64)).astype(np.int32)
    factor = k.constant(powers[amount.array]) if amount.is_constant else k.gather(k.constant(powers), amount)
    return k.cast(elementwise(k, k.mul, x, factor), op.result.type.storage)


@lowering(LogicalRightShift)
def logical_right_shift(op: LogicalRightShift, k: Kernels) -> Value:
    storage = op.result.type.storage
    unsigned = {i8: ui8, i16: ui16, i32: ui32}[storage]
    x, amount = k.cast(k.value(op.input1), unsigned), k.cast(k.value(op.input2), unsigned)
    return k.cast(elementwise(k, k.right_shift, x, amount), storage)


@lowering(BitwiseAnd, BitwiseOr)
def bitwise(op: BitwiseAnd | BitwiseOr, k: Kernels) -> Value:
    a, b = k.cast(k.value(op.input1), i32), k.cast(k.value(op.input2), i32)
    one, two = k.constant(1), k.constant(2)
    x, y = k.right_shift(a, one), k.right_shift(b, one)
    above = k.sub(elementwise(k, k.add, x, y), elementwise(k, k.bitwise_xor, x, y))
    lowest = elementwise(k, k.mul, k.sub(a, k.mul(x, two)), k.sub(b, k.mul(y, two)))
    both = k.add(above, lowest)
    if isinstance(op, BitwiseOr):
        both = k.add(both, elementwise(k, k.bitwise_xor, a, b))
    return k.cast(both, op.result.type.storage)


@lowering(BitwiseXor)
def bitwise_xor(op: BitwiseXor, k: Kernels) -> Value:
    return elementwise(k, k.bitwise_xor, k.value(op.input1), k.value(op.input2))


_LOGICAL: Final[Mapping[type[Op], type[Operator]]] = {
    LogicalAnd: tfl.LogicalAnd,
    LogicalOr: tfl.LogicalOr,
    LogicalXor: tfl.NotEqual,
}


@lowering(*_LOGICAL)
def logical(op: LogicalAnd | LogicalOr | LogicalXor, k: Kernels) -> Value:
    kind = _LOGICAL[type(op)]
    return elementwise(k, lambda *xs: k.emit(kind, xs), k.value(op.input1), k.value(op.input2))


@lowering(LogicalNot)
def logical_not(op: LogicalNot, k: Kernels) -> Value:
    x = k.value(op.input)
    return k.emit(tfl.LogicalNot, [x])


@lowering(ArithmeticRightShift)
def arithmetic_right_shift(op: ArithmeticRightShift, k: Kernels) -> Value:
    """x >> n, or with `round` the same half up: t - (t >> 1) with t = x >> (n - 1), which cannot overflow."""
    x, amount = k.value(op.input1), k.value(op.input2)
    storage, narrow = op.result.type.storage, op.result.type.storage.bits < 32
    if narrow:
        x, amount = k.cast(x, i32), k.cast(amount, i32)
    result = _rounded(k, x, amount) if op.round else right_shift(k, x, amount)
    return k.cast(result, storage) if narrow else result


def _rounded(k: Kernels, x: Value, amount: Value) -> Value:
    one = k.constant(1)
    if amount.is_constant and (amount.array > 0).all():
        twice = right_shift(k, x, k.constant(amount.array - 1))
        return k.sub(twice, right_shift(k, twice, one))
    if amount.is_constant and not amount.array.any():
        return x
    some = k.sub(one, k.sub(one, amount, "RELU"))  # min(n, 1): with n = 0 nothing is rounded
    twice = right_shift(k, x, k.sub(amount, some))
    return k.sub(twice, k.mul(right_shift(k, twice, some), some))


@lowering(BitwiseNot)
def bitwise_not(op: BitwiseNot, k: Kernels) -> Value:
    """ARG_MIN where an ARGMAX reads the complement, else BITWISE_XOR."""
    x = k.value(op.input)
    following = k.only_user(op.output, ArgMax)
    if following is not None:
        return k.fuse(following, arg_of(following, k, x, ArgMin))
    return k.bitwise_xor(x, k.constant(~np.zeros((), x.type.storage.dtype), x.type.storage))
