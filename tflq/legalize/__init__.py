"""Legalization: quantized TFLite operators → the integer form. One file per operator family."""

from tflq.legalize import real, recurrent, reference, stablehlo
from tflq.legalize.engine import Decision, legalize

__all__ = ["Decision", "legalize", "real", "recurrent", "reference", "stablehlo"]
