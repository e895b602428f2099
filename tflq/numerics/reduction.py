"""The fixed-point multipliers of MEAN and SUM over quantized tensors.

Both sum stored integers in int32 and apply one multiplier to `sum - zero_point_in * count`:

    SUM    quantize_multiplier(double(scale_in) / double(scale_out))
    MEAN   the same, with 1 / count folded in: (M << s) / count, truncated, and s less in the left shift, where
           s = floor(log2(count)), but at most 32 and at most 31 + shift

so that MEAN's mantissa has 30 or 31 significant bits. Source: kernels/reduce.cc (PrepareMeanOrSum),
kernels/internal/reference/reduce.h (QuantizedMeanOrSum).
"""

from __future__ import annotations

from tflq.numerics.fixed_point import Multiplier, quantize_multiplier

__all__ = ["mean_multiplier", "sum_multiplier"]


def sum_multiplier(scale_in: float, scale_out: float) -> Multiplier:
    """What SUM multiplies by. ValueError if the ratio is too large."""
    return quantize_multiplier(scale_in / scale_out)


def mean_multiplier(scale_in: float, scale_out: float, count: int) -> Multiplier:
    """What MEAN over `count` elements multiplies their sum by. ValueError if the ratio of the scales is too large."""
    mantissa, left = sum_multiplier(scale_in, scale_out)
    folded = min(count.bit_length() - 1, 32, 31 + left)
    return Multiplier((mantissa << folded) // count, left - folded)
