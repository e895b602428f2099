"""QUANTIZE between integer types: the multiplier input / output, in double. Source: kernels/quantize.cc (Prepare)."""

from __future__ import annotations

from tflq.numerics.fixed_point import Multiplier, quantize_multiplier, quotient

__all__ = ["requantize_multiplier"]


def requantize_multiplier(input_scale: float, output_scale: float) -> Multiplier:
    """input_scale / output_scale of float32 scales."""
    return quantize_multiplier(quotient(input_scale, output_scale))
