"""Lowerings that are one kernel each, and the casts at a function's edge."""

from __future__ import annotations

import numpy as np

from tflq.dialects.ext.casts import Truncate
from tflq.dialects.quant.casts import Scast
from tflq.dialects.tfl.casts import Cast as TflCast
from tflq.dialects.tosa.activation import Clamp
from tflq.dialects.tosa.arithmetic import Add, Maximum, Minimum, Sub
from tflq.dialects.tosa.casts import Cast
from tflq.dialects.tosa.movement import Concat, Identity, Reshape, Slice, Transpose
from tflq.ir.core import Op, Value
from tflq.ir.types import i32
from tflq.select.broadcasting import elementwise
from tflq.select.floats import limited, rounded, rounded_small
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


@lowering(Scast)
def scast(op: Scast, k: Kernels) -> Value:
    """The same integers in a tensor with or without parameters; `edges` removes the copies that are not needed."""
    if op.result.name:  # a function's result: the tensor that carries its name and parameters
        k.ops.append(Op(TflCast.op_name, [k.value(op.input)], [op.result], {}, op.location))
        return op.result
    return k.copy(k.value(op.input), op.result.type)


@lowering(Identity)
def identity(op: Identity, k: Kernels) -> Value:
    return k.copy(k.value(op.input))


@lowering(Cast)
def cast(op: Cast, k: Kernels) -> Value:
    """CAST, of a rounded float; it saturates at the ends of i32, a narrower type is clamped first."""
    x, to = k.value(op.input), op.result.type.storage
    if not (x.type.storage.is_float and to.is_integer):
        return k.cast(x, to)
    if to.bits >= 32:
        return k.cast(rounded(k, x), to)
    return k.cast(k.cast(rounded_small(k, limited(k, x, to.minimum, to.maximum)), i32), to)


@lowering(Truncate)
def truncate(op: Truncate, k: Kernels) -> Value:
    return k.cast(k.value(op.input), op.result.type.storage)


@lowering(Reshape)
def reshape(op: Reshape, k: Kernels) -> Value:
    """The first dim is left to be inferred, where no other is: it is the one that a resized batch changes."""
    x, shape = k.value(op.input), op.result.type.shape or ()
    if not shape or 0 in shape or None in shape[1:]:
        return k.reshape(x, shape)
    return k.refold(x, shape)


@lowering(Transpose)
def transpose(op: Transpose, k: Kernels) -> Value:
    """TRANSPOSE reads what memory held in the place of an empty permutation."""
    x, perms = k.value(op.input), op.perms
    return k.transpose(x, perms) if perms else k.copy(x)


@lowering(Slice)
def slice_(op: Slice, k: Kernels) -> Value:
    """A dim taken whole ends where it ends, so that the batch can be resized; SLICE keeps the result shape stated."""
    x, begin = k.value(op.input), op.start
    sizes = list(zip(begin, op.size, x.type.shape or (), strict=True))
    whole = sum(1 << i for i, (start, size, dim) in enumerate(sizes) if size is None or (start == 0 and size == dim))
    end = tuple(start + (size or 0) for start, size, _ in sizes)
    return k.strided_slice(x, tuple(begin), end, (1,) * len(end), op.result.type.shape or (), end_mask=whole)


@lowering(Concat)
def concat(op: Concat, k: Kernels) -> Value:
    return k.concatenation([k.value(v) for v in op.inputs if v is not None], op.axis, op.result.type.shape)


@lowering(Add)
def add(op: Add, k: Kernels) -> Value:
    return elementwise(k, k.add, k.value(op.input1), k.value(op.input2))


@lowering(Sub)
def sub(op: Sub, k: Kernels) -> Value:
    return elementwise(k, k.sub, k.value(op.input1), k.value(op.input2))


@lowering(Maximum)
def maximum(op: Maximum, k: Kernels) -> Value:
    return elementwise(k, k.maximum, k.value(op.input1), k.value(op.input2))


@lowering(Minimum)
def minimum(op: Minimum, k: Kernels) -> Value:
    return elementwise(k, k.minimum, k.value(op.input1), k.value(op.input2))


@lowering(Clamp)
def clamp(op: Clamp, k: Kernels) -> Value:
    """MAXIMUM, MINIMUM, each only where it can bite."""
    x, storage = k.value(op.input), op.result.type.storage
    low, high = op.min_val, op.max_val
    if storage.is_float:
        return limited(k, x, low, high)
    if low > storage.minimum:
        x = k.maximum(x, k.constant(np.asarray(low), storage))
    if high < storage.maximum:
        x = k.minimum(x, k.constant(np.asarray(high), storage))
    return x
