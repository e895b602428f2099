"""Legalization: quantized TFLite operators → the integer form. One file per operator family."""

from tflq.legalize import activation, elementwise, movement, pooling, quantize, reduction, unary_table
from tflq.legalize.engine import Decision, legalize

__all__ = ["Decision", "activation", "elementwise", "legalize", "movement", "pooling", "quantize", "reduction", "unary_table"]
