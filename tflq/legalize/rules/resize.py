"""The rules of resizing: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.resize import ResizeBilinear, ResizeNearestNeighbor
from tflq.legalize.reference.resize import resize
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

RULES: Final[Rules] = {
    ResizeBilinear: (resize.resize_bilinear,),
    ResizeNearestNeighbor: (resize.resize_nearest,),
}
