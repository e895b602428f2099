"""Selection: the integer form → TFLite builtins on plain integer tensors. One file per family of ops."""

from tflq.select import (
    basic,
    convolution,
    depthwise,
    pooling,
    reduction,
)
from tflq.select.engine import select

__all__ = [
    "basic",
    "convolution",
    "depthwise",
    "pooling",
    "reduction",
    "select",
]
