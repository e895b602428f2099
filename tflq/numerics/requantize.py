"""Requantization of 8-bit values in float, as CONCATENATION's reference kernel does it for operands of other scales,
and of what the stored integers stand for, rounded half away from zero.

    stored = clamp(round_half_away(float32(q) * s + bias) + zero_point_out)
    s = scale_in * (1 / scale_out), bias = -zero_point_in * s

all in float32, then int32 (`tflq.numerics.x86`). Source: kernels/internal/reference/concatenation.h
(ConcatenationWithScaling).
"""

from __future__ import annotations

import numpy as np

from tflq.numerics.fixed_point import quotient, round_half_away
from tflq.numerics.rounding import half_away
from tflq.numerics.x86 import as_int32, wrapped

__all__ = ["real_table", "requantize_table", "rescaled_value"]


def requantize_table(dtype: np.dtype, scale_in: float, zero_in: int, scale_out: float, zero_out: int) -> np.ndarray:
    """The requantized value of each of the 256 values of an 8-bit `dtype`, smallest first."""
    info = np.iinfo(dtype)
    f = np.float32
    with np.errstate(all="ignore"):
        scale = f(scale_in) * (f(1) / f(scale_out))
        bias = f(-zero_in) * scale
        real = np.arange(info.min, info.max + 1).astype(f) * scale + bias
        rounded = half_away(real)
    return np.clip(wrapped(as_int32(rounded) + zero_out), info.min, info.max).astype(dtype)


def real_table(dtype: np.dtype, scale_in: float, zero_in: int, scale_out: float, zero_out: int) -> np.ndarray:
    """The nearest stored value of each value of an 8- or 16-bit `dtype`, smallest first, clamped to the same dtype."""
    info = np.iinfo(dtype)
    ratio = quotient(scale_in, scale_out)
    steps = np.arange(info.min, info.max + 1) - zero_in
    with np.errstate(invalid="ignore"):
        real = np.where((steps == 0) | (ratio != ratio), 0.0, steps * ratio)
    rounded = np.sign(real) * np.floor(np.abs(real) + 0.5)
    return np.clip(rounded + zero_out, info.min, info.max).astype(dtype)


def rescaled_value(stored: int, scale_in: float, zero_in: int, scale_out: float, zero_out: int) -> int:
    """The stored value of the same real value under other parameters, rounded half away from zero, not clamped."""
    counts = quotient((stored - zero_in) * scale_in, scale_out)
    if counts != counts:
        return zero_out
    return (round_half_away(counts) if abs(counts) < 2.0**53 else int(np.sign(counts)) << 53) + zero_out
