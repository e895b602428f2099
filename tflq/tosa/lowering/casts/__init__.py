"""Conversions between element types, scales and real values."""

from tflq.tosa.lowering import rescale
from tflq.tosa.lowering.casts import conversion, quantization

__all__ = ["conversion", "quantization", "rescale"]
