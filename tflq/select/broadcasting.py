"""Elementwise kernels on tensors of more dims than they broadcast.

Neighbouring dims that all operands have alike, or lack alike, are one dim to an elementwise kernel. Operands of equal
shapes need no broadcast; what still has more than four dims is repeated by BROADCAST_TO until they are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tflq.dialects.inference import broadcast
from tflq.dialects.tfl.movement import BroadcastTo
from tflq.ir.core import Value
from tflq.ir.types import TensorType, i1, i8
from tflq.select.kernels import KernelBuilder

__all__ = ["BROADCAST_DIMS", "elementwise", "spread"]

BROADCAST_DIMS = 4
"""Dims that every elementwise kernel broadcasts."""


def elementwise(k: KernelBuilder, emit: Callable[..., Value], *operands: Value) -> Value:
    """`emit` of the operands, in as few dims as it takes; the result has the broadcast shape."""
    shapes = [v.type.shape for v in operands]
    known = [s for s in shapes if s is not None and None not in s]
    sized = [s for s in known if prod(d or 0 for d in s) != 1]
    if len(known) < len(shapes) or max(map(len, known)) <= BROADCAST_DIMS or len(set(sized)) <= 1 == len(set(known)):
        return emit(*operands)
    whole = broadcast(*shapes) or ()
    ranked = [(1,) * (len(whole) - len(s)) + s for s in known]
    folded = _folded(ranked, len(whole))
    if len(folded[0]) > BROADCAST_DIMS:
        return emit(*(spread(k, v, whole) for v in operands))
    result = emit(*(_seen(k, v, shape) for v, shape in zip(operands, folded, strict=True)))
    return k.reshape(result, whole)


def spread(k: KernelBuilder, x: Value, shape: tuple[int | None, ...]) -> Value:
    """x repeated to a known shape it broadcasts to. BROADCAST_TO has no booleans, which become bytes around it."""
    if x.type.shape == shape:
        return x
    if x.type.storage == i1:
        return k.cast(spread(k, k.cast(x, i8), shape), i1)
    dims = k.constant(np.asarray(shape, np.int32))
    return k.emit(BroadcastTo, [x, dims], TensorType(shape, x.type.element))


def _folded(shapes: list[tuple[int | None, ...]], rank: int) -> list[tuple[int, ...]]:
    """The shapes with neighbours of one pattern of ones merged."""
    merged: list[list[int]] = [[] for _ in shapes]
    last: tuple[bool, ...] | None = None
    for axis in range(rank):
        dims = [s[axis] or 0 for s in shapes]
        if all(d == 1 for d in dims):
            continue
        pattern = tuple(d == 1 for d in dims)
        for row, d in zip(merged, dims, strict=True):
            if pattern == last:
                row[-1] *= d
            else:
                row.append(d)
        last = pattern
    if any(row == [0] for row in merged):  # RESHAPE takes [0] for the shape of a scalar
        merged = [[1, *row] for row in merged]
    return [tuple(row) for row in merged]


def _seen(k: KernelBuilder, x: Value, shape: tuple[int, ...]) -> Value:
    if x.type.shape == shape:
        return x
    if x.is_constant and x.type.storage.bits >= 8:
        return Value(TensorType(shape, x.type.element), buffer=x.buffer)
    return k.reshape(x, shape)
