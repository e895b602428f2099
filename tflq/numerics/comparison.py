"""What the comparison kernels compare: (x - zero_point) << 8, times the scale, as int32.

    scale < 1    MultiplyByQuantizedMultiplierSmallerThanOneExp: rounded twice, half up, then half away from zero
    scale = 1    the kernels abort
    scale > 1    -1 below zero, else 1

Above 1 the second rounding divides by a power of two of a negative exponent, a shift that C++ leaves undefined. What
runs is the shift to the sign, plus one where x is not negative, as long as the shift modulo 32 leaves nothing but the
sign; from there on the kernels' vector and scalar code differ.
Source: kernels/comparisons.cc (QuantizeMultiplier, ComparisonQuantized), kernels/internal/reference/comparisons.h
(ComparisonWithScaling), kernels/internal/common.h, gemmlowp's RoundingDivideByPOT.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.numerics.fixed_point import Multiplier, multiply, quantize_multiplier

__all__ = ["LEFT_SHIFT", "compared", "comparison_multiplier"]

LEFT_SHIFT = 8


def comparison_multiplier(scale: float, bits: int) -> Multiplier | None:
    """The multiplier of a scale, for a storage type of `bits`; None if only the sign is left.

    ValueError if the kernel aborts, or has no one answer.
    """
    if scale == 1.0 or not 0.0 < scale < math.inf:
        raise ValueError(f"it aborts at a scale of {scale:g}")
    if scale < 1.0:
        return quantize_multiplier(scale)
    if bits + LEFT_SHIFT > 32 - math.frexp(scale)[1]:
        raise ValueError(f"its shift for a scale of {scale:g} has no one meaning")
    return None


def compared(x: np.ndarray, scale: float, bits: int) -> np.ndarray:
    """What the kernel compares of stored integers less their zero point. ValueError as `comparison_multiplier`."""
    multiplier = comparison_multiplier(scale, bits)
    if multiplier is None:
        return np.where(x < 0, -1, 1).astype(np.int32)
    return multiply((x.astype(np.int64) << LEFT_SHIFT).astype(np.int32), multiplier.mantissa, multiplier.shift)
