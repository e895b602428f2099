"""TOSA: the integer form → TOSA 1.0 operators, as flatbuffer and MLIR text, and back."""

from tflq.tosa import basic, casts, quantize_real
from tflq.tosa.engine import lower
from tflq.tosa.target import Target

__all__ = ["Target", "basic", "casts", "lower", "quantize_real"]
