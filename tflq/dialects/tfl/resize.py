"""Images of another size."""

from __future__ import annotations

from typing import TypeAlias

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.inference import Dims, Stated
from tflq.dialects.tfl.versions import Needs
from tflq.dialects.traits.constants import Exclusive, NonNegative
from tflq.dialects.traits.effects import ComputesInFloat
from tflq.dialects.traits.memory import SizedBy
from tflq.dialects.traits.movement import MovesElements
from tflq.dialects.traits.quantization import SameScale
from tflq.dialects.traits.types import HasShape, SameElementType
from tflq.ir.core import Value
from tflq.ir.types import i8, i16

__all__ = ["Resize", "ResizeBilinear", "ResizeNearestNeighbor", "ResizedImage"]


class ResizedImage(Operator):
    """Of another height and width."""

    __slots__ = ()
    input: Value
    size: Value

    def infer(self, site: Stated) -> Dims:
        n, _, _, c = site.dims(self.input, 4)
        return (n, *site.ints(self.size, 2), c)


class ResizeBilinear(ResizedImage, name="tfl.resize_bilinear", newest=4):
    """Interpolated between the four nearest elements. Source: kernels/resize_bilinear.cc."""

    __slots__ = ()
    input: Value = operand()
    size: Value = operand(indices=True)
    output: Value = result()
    new_height: int = attribute(default=0)
    new_width: int = attribute(default=0)
    align_corners: bool = attribute(default=False)
    half_pixel_centers: bool = attribute(default=False)
    traits = (
        SameScale(input, output),
        NonNegative(size),
        Exclusive(align_corners, half_pixel_centers),
        SameElementType(input, output),
        HasShape(size, 2),
        ComputesInFloat(),
        SizedBy(size),
    )


class ResizeNearestNeighbor(ResizedImage, name="tfl.resize_nearest_neighbor", newest=4):
    """The nearest element. Source: kernels/resize_nearest_neighbor.cc."""

    __slots__ = ()
    input: Value = operand()
    size: Value = operand(indices=True)
    output: Value = result()
    align_corners: bool = attribute(default=False)
    half_pixel_centers: bool = attribute(default=False)
    traits = (
        SameScale(input, output),
        NonNegative(size),
        SameElementType(input, output),
        HasShape(size, 2),
        MovesElements(input),
        SizedBy(size),
    )
    versions = (
        Needs(4, input, i16),
        Needs(3, attribute=half_pixel_centers),
        Needs(3, attribute=align_corners),
        Needs(2, input, i8),
    )


Resize: TypeAlias = ResizeBilinear | ResizeNearestNeighbor
"""Images in another size."""
