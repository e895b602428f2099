"""The rules of resizing: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.resize import ResizeBilinear, ResizeNearestNeighbor
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

resize = later("reference.resize.resize")

RULES: Final[Rules] = {
    ResizeBilinear: (resize.resize_bilinear,),
    ResizeNearestNeighbor: (resize.resize_nearest,),
}
