"""Selection: the integer form → TFLite builtins on plain integer tensors. One file per family of ops."""

from tflq.select import (
    arithmetic,
    basic,
    bits,
    casts,
    convolution,
    depthwise,
    lookup,
    matmul,
    pooling,
    reduction,
    requantize,
    rescale_real,
    resize,
    shifts,
    tables,
    transpose_conv,
)
from tflq.select.engine import select

__all__ = [
    "arithmetic",
    "basic",
    "bits",
    "casts",
    "convolution",
    "depthwise",
    "lookup",
    "matmul",
    "pooling",
    "reduction",
    "requantize",
    "rescale_real",
    "resize",
    "select",
    "shifts",
    "tables",
    "transpose_conv",
]
