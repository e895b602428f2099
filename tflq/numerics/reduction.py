"""The fixed-point multipliers of MEAN, SUM and REDUCE_PROD over quantized tensors.

MEAN and SUM sum stored integers in int32 and apply one multiplier to `sum - zero_point_in * count`:

    SUM    quantize_multiplier(double(scale_in) / double(scale_out))
    MEAN   the same, with 1 / count folded in: (M << s) / count, truncated, and s less in the left shift, where
           s = floor(log2(count)), but at most 32 and at most 31 + shift

so that MEAN's mantissa has 30 or 31 significant bits. REDUCE_PROD multiplies element by element, and by
`quantize_multiplier(scale_in / scale_out^(1 / count))` after each, 64 bits to 32 (`multiply_int64`):

    p = x[0], then multiply(p * x[i]) for the others in row-major order, then multiply(p)        x less zero_point_in

Sources: kernels/reduce.cc (PrepareMeanOrSum, GetQuantProdScaling), kernels/internal/reference/reduce.h
(QuantizedMeanOrSum, QuantizedReduceProd).
"""

from __future__ import annotations

import math

from tflq.numerics.fixed_point import Multiplier, quantize_multiplier, quotient

__all__ = ["divided_multiplier", "mean_multiplier", "product_bounds", "product_scale", "sum_multiplier"]


def sum_multiplier(scale_in: float, scale_out: float) -> Multiplier:
    """What SUM multiplies by."""
    return quantize_multiplier(quotient(scale_in, scale_out))


def mean_multiplier(scale_in: float, scale_out: float, count: int) -> Multiplier:
    """What MEAN over `count` elements multiplies their sum by. ValueError if the ratio of the scales is too large."""
    return divided_multiplier(sum_multiplier(scale_in, scale_out), count)


def divided_multiplier(multiplier: Multiplier, count: int) -> Multiplier:
    """A multiplier with 1 / count folded in."""
    mantissa, left = multiplier
    folded = min(count.bit_length() - 1, 32, 31 + left)
    return Multiplier((mantissa << folded) // count, left - folded)


def product_scale(scale_in: float, scale_out: float, count: int) -> float:
    """What REDUCE_PROD multiplies by after each of `count` factors; 0 for what is not finite, as its multiplier is."""
    scale = quotient(scale_in, scale_out ** (1.0 / count))
    return scale if math.isfinite(scale) else 0.0


def product_bounds(reach: int, scale: float, count: int) -> list[int]:
    """For factors within [-reach, reach]: bounds of what each multiplication by `scale` takes, and of the result."""
    bounds, product = [], float(reach)
    for _ in range(count - 1):
        bounds.append(int(product * reach))
        product = bounds[-1] * scale * (1 + 2.0**-14) + 1  # the multiplier is rounded to 15 bits
    return [*bounds, int(product), int(product * scale * (1 + 2.0**-14) + 1)]
