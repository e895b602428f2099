"""Scales and zero points of quantized tensors as arrays that broadcast to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tflq.errors import UnsupportedError
from tflq.ir.types import (
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    f64,
)

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["parameters"]


def parameters(type: TensorType) -> tuple[np.ndarray, np.ndarray]:
    """Scale (float32, or float64 where that is expressed) and zero point (int32, or int64 where it is beyond that) of a
    quantized tensor, shaped to broadcast to it."""
    element, rank = type.element, type.rank
    precision = np.float64 if getattr(element, "expressed", None) == f64 else np.float32
    if isinstance(element, UniformQuantizedType):
        return np.asarray(element.scale, precision), _zeros(element.zero_point)
    if isinstance(element, UniformQuantizedPerAxisType) and rank is not None:
        view = [-1 if i == element.axis else 1 for i in range(element.axis, rank)]
        scales, zeros = element.scales.astype(precision, copy=False), _zeros(element.zero_points)
        return scales.reshape(view), zeros.reshape(view)
    if isinstance(element, UniformQuantizedSubChannelType):
        scales, zeros = element.scales.astype(precision, copy=False), _zeros(element.zero_points)
        for axis, size in zip(element.axes, element.block_sizes, strict=True):
            scales, zeros = np.repeat(scales, size, axis), np.repeat(zeros, size, axis)
        return scales, zeros
    raise UnsupportedError(f"a tensor of type {type} has no known scales")


def _zeros(points: npt.ArrayLike) -> np.ndarray:
    wide = np.asarray(points, np.int64)
    narrow = wide.astype(np.int32)
    return narrow if (narrow == wide).all() else wide
