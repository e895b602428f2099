"""Ops on the bits of i32 values, for which there is no kernel right everywhere.

clz                  the number of powers of two, 2^0..2^31, above the value read as unsigned
logical_left_shift   a product by a power of two out of a table; the product wraps
"""

from __future__ import annotations

import numpy as np

from tflq.ir.core import Op, Value
from tflq.ir.types import TensorType, i32, i64, ui32
from tflq.select.kernels import KernelBuilder
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


@lowering("tosa.clz")
def clz(op: Op, k: Kernels) -> Value:
    """Comparisons with 32 powers along a last axis, summed; flat, since the kernels broadcast four dims."""
    x = k.value(op.operand(0))
    shape = x.type.shape
    one = shape is not None and shape[-1:] == (1,)
    if one and len(shape or ()) <= 4:
        return _count(k, x)
    if shape is None or shape.count(None) > 1:
        axis = -1 if shape is None else len(shape)
        expanded = TensorType(None if shape is None else (*shape, 1), i32)
        counted = _count(k, k.emit("tfl.expand_dims", [x, k.constant(np.asarray(axis))], expanded))
        return k.emit("tfl.squeeze", [counted], x.type, squeeze_dims=np.asarray([axis], np.int32))
    return k.reshape(_count(k, k.reshape(x, (None, 1))), shape)


def _count(k: KernelBuilder, x: Value) -> Value:
    """clz of x with a last dim of 1."""
    unsigned = k.cast(k.bitcast(x, ui32), i64)
    above = k.cast(k.greater(k.constant(1 << np.arange(32, dtype=np.int64), i64), unsigned), i32)
    return k.reduce("sum", above, [-1], True, x.type.shape)


@lowering("tosa.logical_left_shift")
def logical_left_shift(op: Op, k: Kernels) -> Value:
    powers = (1 << np.arange(32, dtype=np.int64)).astype(np.int32)
    return k.mul(k.value(op.operand(0)), k.gather(k.constant(powers), k.value(op.operand(1))))
