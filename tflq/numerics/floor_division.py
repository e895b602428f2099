"""FLOOR_DIV and FLOOR_MOD of what 8-bit integers stand for: tables of all pairs, in the float kernels' arithmetic.

    x = float32(q - zero_point) * scale          each operand
    FLOOR_DIV = floor(x / y); infinite for y = 0, and 0 for 0 / 0
    FLOOR_MOD = fmod(x, y), plus y where that has another sign than y; 0 for y = 0

each then round_half_away(result / scale_out) + zero_point_out, clamped. Sources: floor_div.h, floor_mod.h and
quantize.h in kernels/internal/reference. The kernels stop at y = 0.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tflq.numerics.rounding import half_away

__all__ = ["Parameters", "floor_quotient", "floor_quotients", "floor_remainder", "floor_remainders"]

Parameters: TypeAlias = tuple[float, int]
"""Scale and zero point."""


def floor_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """floor(x / y) of floats, in their precision; infinite by 0, and 0 for 0 / 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.floor(x / y)
    return np.nan_to_num(quotient, nan=0.0, posinf=np.inf, neginf=-np.inf)


def floor_remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What floor(x / y) leaves; 0 by 0."""
    with np.errstate(invalid="ignore"):
        left = np.fmod(x, y)
    return np.nan_to_num(np.where((left != 0) & ((left < 0) != (y < 0)), left + y, left), nan=0.0)


def floor_quotients(dtype: np.dtype, dividend: Parameters, divisor: Parameters, result: Parameters) -> np.ndarray:
    """[256, 256] of an 8-bit `dtype`, smallest first: the stored floor(x / y)."""
    return _stored(floor_quotient(_real(dtype, dividend)[:, None], _real(dtype, divisor)[None]), dtype, result)


def floor_remainders(dtype: np.dtype, dividend: Parameters, divisor: Parameters, result: Parameters) -> np.ndarray:
    """[256, 256] of an 8-bit `dtype`, smallest first: the stored remainder of floor(x / y)."""
    return _stored(floor_remainder(_real(dtype, dividend)[:, None], _real(dtype, divisor)[None]), dtype, result)


def _real(dtype: np.dtype, parameters: Parameters) -> np.ndarray:
    info, (scale, zero_point) = np.iinfo(dtype), parameters
    return (np.arange(info.min, info.max + 1) - zero_point).astype(np.float32) * np.float32(scale)


def _stored(real: np.ndarray, dtype: np.dtype, parameters: Parameters) -> np.ndarray:
    info, (scale, zero_point) = np.iinfo(dtype), parameters
    with np.errstate(over="ignore"):
        counts = (real / np.float32(scale)).astype(np.float64)
    return np.clip(half_away(counts) + zero_point, info.min, info.max).astype(dtype)
