"""TOSA: the integer form → TOSA 1.0 operators, as flatbuffer and MLIR text, and back."""

from tflq.tosa import basic
from tflq.tosa.engine import lower
from tflq.tosa.target import Target

__all__ = ["Target", "basic", "lower"]
