"""What the comparison kernels compare: (x - zero_point) << 8, times the scale, as int32.

    scale = 0    the kernels abort
    scale < 1    MultiplyByQuantizedMultiplierSmallerThanOneExp: rounded twice, half up, then half away from zero
    scale = 1    the kernels abort
    scale > 1    -1 below zero, else 1
    infinite     0

Above 1 the second rounding divides by a power of two of a negative exponent, a shift that C++ leaves undefined. What
runs is the shift to the sign, plus one where x is not negative, as long as the shift modulo 32 leaves nothing but the
sign. From there on (`unsettled`) the kernels' vector and scalar code differ, and which one runs differs among
interpreters.
Source: kernels/comparisons.cc (QuantizeMultiplier, ComparisonQuantized), kernels/internal/reference/comparisons.h
(ComparisonWithScaling), kernels/internal/common.h, gemmlowp's RoundingDivideByPOT.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tflq.numerics.fixed_point import Multiplier, multiply, quantize_multiplier
from tflq.numerics.x86 import divide_by_pot

__all__ = ["COMPARISONS", "LEFT_SHIFT", "compared", "compared_one_by_one", "comparison_multiplier", "unsettled"]

COMPARISONS: Final[dict[str, Callable[..., Any]]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}
"""Of two arrays, by StableHLO's name of the direction."""

LEFT_SHIFT = 8


def comparison_multiplier(scale: float) -> Multiplier:
    """The multiplier of a scale; a shift above 0 stands for the sign alone. ValueError if the kernel aborts."""
    if scale in (0.0, 1.0):
        raise ValueError(f"it aborts at a scale of {scale:g}")
    return quantize_multiplier(scale)


def unsettled(scale: float, bits: int) -> bool:
    """Whether interpreters differ at a scale, for a storage type of `bits`."""
    return 1.0 < scale < math.inf and bits + LEFT_SHIFT > 32 - math.frexp(scale)[1]


def compared(x: np.ndarray, scale: float) -> np.ndarray:
    """What the kernel compares of stored integers less their zero point. ValueError as `comparison_multiplier`."""
    multiplier = comparison_multiplier(scale)
    if multiplier.shift > 0:
        return np.where(x < 0, -1, 1).astype(np.int32)
    return multiply((x.astype(np.int64) << LEFT_SHIFT).astype(np.int32), multiplier.mantissa, multiplier.shift)


def compared_one_by_one(x: np.ndarray, scale: float) -> np.ndarray:
    """The same by scalar code, which differs where it is `unsettled`. int64."""
    multiplier = comparison_multiplier(scale)
    if multiplier.shift <= 0:
        return compared(x, scale).astype(np.int64)
    high = multiply((x.astype(np.int64) << LEFT_SHIFT).astype(np.int32), multiplier.mantissa, 0)
    return divide_by_pot(high.astype(np.int64), -multiplier.shift)
