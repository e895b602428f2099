"""Legalization: quantized TFLite operators → the integer form. One file per operator family."""

from tflq.legalize import (
    activation,
    arg,
    comparison,
    convolution,
    division,
    elementwise,
    fully_connected,
    matmul,
    movement,
    pooling,
    quantize,
    reduction,
    resize,
    softmax,
    transpose_conv,
    unary,
    unary_table,
)
from tflq.legalize.engine import Decision, legalize

__all__ = [
    "Decision",
    "activation",
    "arg",
    "comparison",
    "convolution",
    "division",
    "elementwise",
    "fully_connected",
    "legalize",
    "matmul",
    "movement",
    "pooling",
    "quantize",
    "reduction",
    "resize",
    "softmax",
    "transpose_conv",
    "unary",
    "unary_table",
]
