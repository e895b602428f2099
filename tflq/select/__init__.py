"""Selection: the integer form → TFLite builtins on plain integer tensors. One file per family of ops."""

from tflq.select import basic, pooling, reduction
from tflq.select.engine import select

__all__ = ["basic", "pooling", "reduction", "select"]
