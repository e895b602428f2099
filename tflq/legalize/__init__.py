"""Legalization: quantized TFLite operators → the integer form. One file per operator family."""

from tflq.legalize.decision import Decision
from tflq.legalize.engine import legalize
from tflq.legalize.rule import NotApplicable, RuleBuilder

__all__ = ["Decision", "NotApplicable", "RuleBuilder", "legalize"]
