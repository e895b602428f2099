"""RIGHT_SHIFT on int32 and int64 products shifted right, within what the kernels do.

RIGHT_SHIFT broadcasts at most four dims and has no int64; an int64 shifted by 32 is its high word.
"""

from __future__ import annotations

import numpy as np

from tflq.errors import Reason, UnsupportedError
from tflq.ir.core import Value
from tflq.ir.types import i32, i64
from tflq.select.highword import flat, high_part, restore
from tflq.select.kernels import KernelBuilder

__all__ = ["product_shifted", "right_shift"]

_BROADCAST_DIMS = 4


def right_shift(k: KernelBuilder, x: Value, amount: Value) -> Value:
    """floor(x / 2^amount), amounts broadcast to x.

    Deeper tensors than the kernel broadcasts are flattened around it.
    """
    shape, by = x.type.shape, amount.type.shape
    if shape is None or len(shape) <= _BROADCAST_DIMS or shape == by:
        return k.right_shift(x, amount)
    if 0 in shape and None not in shape:
        return k.reshape(k.right_shift(k.reshape(x, (0,)), k.constant(0, amount.type.storage)), shape)
    if amount.is_constant and amount.array.size == 1:
        rows: tuple[int | None, ...] = (None,)
        amount = k.constant(amount.array.reshape(()), amount.type.storage)
    elif by is not None and by == (*(1,) * (len(by) - 1), shape[-1]):
        rows, amount = (None, shape[-1]), k.reshape(amount, (shape[-1] or 0,)) if len(by) > 1 else amount
    elif by is not None and len(by) == len(shape) and by[1:] == (*shape[1:-1], 1):
        rows, amount = (None, shape[-1]), k.reshape(amount, (None, 1))
    else:
        what = f"RIGHT_SHIFT broadcasts {_BROADCAST_DIMS} dims at most, not {by} to {shape}"
        raise UnsupportedError(Reason.at(k.location, what, remedy="reshape its operands before it"))
    if not flat(shape):
        raise UnsupportedError(Reason.at(k.location, f"a tensor of shape {shape} cannot be flattened for RIGHT_SHIFT"))
    return restore(k, k.right_shift(k.reshape(x, rows), amount), shape)


def product_shifted(k: KernelBuilder, a: Value, b: Value, shift: int) -> Value:
    """(a b + 2^(shift-1)) >> shift of int32, the product in 64 bits, for results that fit int32."""
    up = max(32 - shift, 0)
    if a.is_constant:
        a, b = b, a
    if b.is_constant:
        factor = k.constant(b.array.astype(np.int64) << up, i64)
        product = k.mul(k.cast(a, i64), factor)
    else:
        product = k.mul(k.cast(a, i64), k.cast(b, i64))
        if up:
            product = k.mul(product, k.constant(1 << up, i64))
    total = k.add(product, k.constant(1 << (shift + up - 1), i64))
    word = high_part(k, total, i32)
    if shift > 32:
        word = k.right_shift(word, k.constant(shift - 32))
    return restore(k, word, total.type.shape)
