"""Scales and zero points of quantized tensors as arrays that broadcast to them."""

from __future__ import annotations

import numpy as np

from tflq.errors import UnsupportedError
from tflq.ir.types import (
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
)

__all__ = ["parameters"]


def parameters(type: TensorType) -> tuple[np.ndarray, np.ndarray]:
    """Scale (float32) and zero point (int32) of a quantized tensor, shaped to broadcast to it."""
    element, rank = type.element, type.rank
    if isinstance(element, UniformQuantizedType):
        return np.asarray(element.scale, np.float32), np.asarray(element.zero_point, np.int32)
    if isinstance(element, UniformQuantizedPerAxisType) and rank is not None:
        view = [-1 if i == element.axis else 1 for i in range(element.axis, rank)]
        return element.scales.reshape(view), element.zero_points.astype(np.int32).reshape(view)
    if isinstance(element, UniformQuantizedSubChannelType):
        scales, zeros = element.scales, element.zero_points.astype(np.int32)
        for axis, size in zip(element.axes, element.block_sizes, strict=True):
            scales, zeros = np.repeat(scales, size, axis), np.repeat(zeros, size, axis)
        return scales, zeros
    raise UnsupportedError(f"a tensor of type {type} has no known scales")
