"""Selection: the integer form → TFLite builtins on plain integer tensors. One file per family of ops."""

from tflq.select import (
    basic,
    bits,
    convolution,
    depthwise,
    pooling,
    reduction,
    requantize,
    resize,
    transpose_conv,
)
from tflq.select.engine import select

__all__ = [
    "basic",
    "bits",
    "convolution",
    "depthwise",
    "pooling",
    "reduction",
    "requantize",
    "resize",
    "select",
    "transpose_conv",
]
