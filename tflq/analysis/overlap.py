"""Leads of results over operands that nothing reads later.

Results are written in the order in which they lie in memory. So one may lie over the part of an operand that has been
read, if it begins before the operand by a lead: so many bytes that nothing is written over what its own place or a
later one reads. Kernels that compute several places together have read all of these before they write one.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.dialects.tosa import convolution as conv
from tflq.dialects.tosa import movement as move
from tflq.ir.ops import Op


def lead(op: Op, read: int, written: int) -> int | None:
    """The lead of a result over the first operand of an operator that makes a row of results at each place. None where
    all of it is read until the end. read, written: bytes of an element of the operand, and of what is stored."""
    starts = _starts(op)
    if starts is None or not len(starts):
        return None
    places = len(starts)
    first = np.minimum.accumulate(starts[::-1])[::-1] * read
    row = math.prod(op.results[0].type.sizes) // places * written
    return max(int((np.arange(1, places + 1) * row - first).max()), 0)


def _starts(op: Op) -> np.ndarray | None:
    """The first element of the operand that each place reads, or one before it."""
    dims = op.operands[0].type.sizes if op.operands[0] is not None else ()
    if isinstance(op, move.Reduction):
        outer = math.prod(dims[: op.axis])
        return np.arange(outer) * (math.prod(dims) // max(outer, 1))
    if isinstance(op, conv.MatMul):
        outer = math.prod(dims[:-1])
        return np.arange(outer) * dims[-1] if outer == math.prod(op.result.type.sizes[:-1]) else None
    if not isinstance(op, (conv.Conv2D, conv.Conv3D, conv.DepthwiseConv2D, conv.TransposeConv2D, conv.Pool)):
        return None
    n, *places, _ = op.results[0].type.sizes
    starts = np.arange(n)
    for axis, (size, extent) in enumerate(zip(places, dims[1:-1], strict=True)):
        at, step = np.arange(size), op.stride[axis]
        if isinstance(op, conv.TransposeConv2D):
            at = (at - op.out_pad[2 * axis] - op.weight.type.sizes[1 + axis] + 1) // step
        else:
            at = at * step - op.pad[2 * axis]
        starts = starts[..., None] * extent + at.clip(0, extent - 1)
    return starts.reshape(-1) * dims[-1]
