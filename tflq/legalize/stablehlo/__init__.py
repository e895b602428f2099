"""STABLEHLO operators on quantized tensors."""

from tflq.legalize.stablehlo import (
    kernels,
    movement,
    windows,
)

__all__ = [
    "kernels",
    "movement",
    "windows",
]
