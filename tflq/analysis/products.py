"""Products of TOSA: their multiplications, and the ends of their sums."""

from __future__ import annotations

import math

import numpy as np

from tflq.dialects.tosa import convolution as conv
from tflq.ir.ops import Op
from tflq.numerics.convolution import exact_channel_bounds


def multiplications(op: Op) -> int:
    """Multiplications of a convolution or a product of matrices; 0 for others."""
    if isinstance(op, conv.MatMul):
        return op.result.type.size * op.input1.type.sizes[-1]
    if not isinstance(op, conv.Weighted):
        return 0
    dims = op.weight.type.sizes
    depth = math.prod(dims[:2] if isinstance(op, conv.DepthwiseConv2D) else dims[1:])
    return depth * (
        op.input.type.size // dims[-1] * dims[0] if isinstance(op, conv.TransposeConv2D) else op.result.type.size
    )


def channel_ends(op: conv.Weighted) -> tuple[np.ndarray, np.ndarray] | None:
    """The least and the greatest sum of each channel, also on the way; None if weights or bias are not known."""
    if op.result.type.storage.is_float or not op.weight.is_constant or not op.bias.is_constant:
        return None
    axes = (0, 1) if isinstance(op, conv.DepthwiseConv2D) else tuple(range(1, len(op.weight.type.sizes)))
    storage, zero = op.input.type.storage, op.input_zp
    low, high = min(storage.minimum - zero, 0), max(storage.maximum - zero, 0)
    least, most = exact_channel_bounds(op.weight.array, axes, op.weight_zp, low, high, 0)
    bias = op.bias.array.astype(np.int64)
    return least.reshape(-1) + bias, most.reshape(-1) + bias
