"""Constants of reals, quantized as TensorFlow Lite's converter does, and back."""

from __future__ import annotations

import numpy as np

from tflq.ir.core import Value, constant
from tflq.ir.types import (
    ElementType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    f32,
)

__all__ = ["quantized_constant", "real_constant"]


def quantized_constant(value: Value, kind: ElementType) -> Value | None:
    """A constant in float32 as one of a quantized type: round(x / scale) + zero point, and round(x · (1 / scale)) for
    biases, which are stored in 32 bits or more; half away from zero, in float32. None if it is no such constant."""
    if not value.is_constant or value.type.element != f32 or value.type.shape is None:
        return None
    if not isinstance(kind, (UniformQuantizedType, UniformQuantizedPerAxisType)) or kind.storage.bits < 8:
        return None
    scales, zeros = _parameters(kind, len(value.type.shape))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = value.array * (np.float32(1) / scales) if kind.storage.bits >= 32 else value.array / scales
    away = np.trunc(np.abs(ratio).astype(np.float64) + 0.5) * np.sign(ratio)
    stored = np.clip(np.nan_to_num(away) + zeros, kind.storage_min, kind.storage_max)
    made = constant(stored.astype(kind.storage.dtype), kind.storage, value.name)
    made.type = TensorType(value.type.shape, kind)
    return made


def real_constant(value: Value) -> Value | None:
    """The reals that a quantized constant stands for, scale · (x - zero point) in float32. None if it is none."""
    kind = value.type.element
    if not value.is_constant or value.type.shape is None:
        return None
    if not isinstance(kind, (UniformQuantizedType, UniformQuantizedPerAxisType)) or kind.expressed != f32:
        return None
    scales, zeros = _parameters(kind, len(value.type.shape))
    return constant((value.array.astype(np.int64) - zeros).astype(np.float32) * scales, name=value.name)


def _parameters(kind: UniformQuantizedType | UniformQuantizedPerAxisType, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Scales in float32 and zero points, which broadcast to tensors of a rank."""
    if isinstance(kind, UniformQuantizedType):
        return np.asarray(kind.scale, np.float32), np.asarray(kind.zero_point, np.int64)
    shape = [1] * rank
    shape[kind.axis] = -1
    return kind.scales.reshape(shape).astype(np.float32), kind.zero_points.reshape(shape)
