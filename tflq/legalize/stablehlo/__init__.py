"""STABLEHLO operators on quantized tensors."""

from tflq.legalize.stablehlo import (
    kernels,
    movement,
)

__all__ = [
    "kernels",
    "movement",
]
