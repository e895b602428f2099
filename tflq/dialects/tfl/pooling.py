"""Windows of one channel each, and images of another size."""

from __future__ import annotations

from typing import ClassVar, Final, TypeAlias

from tflq.dialects.declare import Operator, Trait, attribute, operand, result
from tflq.dialects.inference import Dims, Stated, places, slide
from tflq.dialects.tfl import Needs
from tflq.dialects.traits.operands import ComputesInFloat, Exclusive, MovesElements, NonNegative, NoZeros, SizedBy
from tflq.dialects.traits.quantization import QuantizedTogether, SameScale, Unbounded
from tflq.dialects.traits.types import HasShape, SameElementType, Window
from tflq.ir.core import Value
from tflq.ir.types import i8, i16


class Pool2D(Operator):
    """Windows of height and width."""

    input: Value = operand()
    output: Value = result()
    padding: str = attribute(default="SAME")
    stride_w: int = attribute(default=0, positive=True)
    stride_h: int = attribute(default=0, positive=True)
    filter_width: int = attribute(default=0, positive=True)
    filter_height: int = attribute(default=0, positive=True)
    fused_activation_function: str = attribute(default="NONE")
    traits: ClassVar[tuple[Trait, ...]] = (Window(input),)

    def infer(self, site: Stated) -> Dims:
        n, *sizes, c = site.dims(self.input, 4)
        kernel, strides = (self.filter_height, self.filter_width), (self.stride_h, self.stride_w)
        return (n, *slide(sizes, kernel, strides, self.padding), c)


_OF_ONE_SCALE: Final = SameScale(Pool2D.input, Pool2D.output), SameElementType(Pool2D.input, Pool2D.output)
_VERSIONS: Final = Needs(3, Pool2D.input, i16), Needs(2, Pool2D.input, i8)


class AveragePool2D(Pool2D, name="tfl.average_pool_2d", newest=3):
    """The mean of each window, of the elements inside the input. Source: kernels/pooling.cc."""

    traits = (*_OF_ONE_SCALE, *Pool2D.traits)
    versions = _VERSIONS


class MaxPool2D(Pool2D, name="tfl.max_pool_2d", newest=3):
    """The greatest element of each window. Source: kernels/pooling.cc."""

    traits = (QuantizedTogether(Pool2D.input, Pool2D.output), *_OF_ONE_SCALE, *Pool2D.traits)
    versions = _VERSIONS


class L2Pool2D(Pool2D, name="tfl.l2_pool_2d"):
    """The root of the mean square of each window. Source: kernels/pooling.cc."""


class ReduceWindow(Operator, name="tfl.reduce_window"):
    """A reduction of each window, as `reduce_function` says. Source: kernels/reduce_window.cc."""

    input: Value = operand()
    init: Value = operand()
    shape: Value = operand(indices=True)
    strides: Value = operand(indices=True)
    dilations: Value = operand(indices=True)
    output: Value = result()
    reduce_function: str = attribute(default="UNSUPPORTED")
    traits = (NoZeros(strides, dilations), Unbounded())

    def infer(self, site: Stated) -> Dims:
        dims = site.dims(self.input)
        window, strides, dilations = (site.ints(v, len(dims)) for v in (self.shape, self.strides, self.dilations))
        return tuple(map(places, dims, window, strides, dilations))


# Images of another size.


class ResizedImage(Operator):
    """Of another height and width."""

    input: Value = operand()
    size: Value = operand(indices=True)
    output: Value = result()
    traits: ClassVar[tuple[Trait, ...]] = (
        SameScale(input, output),
        NonNegative(size),
        SameElementType(input, output),
        HasShape(size, 2),
        SizedBy(size),
    )

    def infer(self, site: Stated) -> Dims:
        n, _, _, c = site.dims(self.input, 4)
        return (n, *site.ints(self.size, 2), c)


class ResizeBilinear(ResizedImage, name="tfl.resize_bilinear", newest=4):
    """Interpolated between the four nearest elements. Source: kernels/resize_bilinear.cc."""

    new_height: int = attribute(default=0)
    new_width: int = attribute(default=0)
    align_corners: bool = attribute(default=False)
    half_pixel_centers: bool = attribute(default=False)
    traits = (*ResizedImage.traits, Exclusive(align_corners, half_pixel_centers), ComputesInFloat())


class ResizeNearestNeighbor(ResizedImage, name="tfl.resize_nearest_neighbor", newest=4):
    """The nearest element. Source: kernels/resize_nearest_neighbor.cc."""

    align_corners: bool = attribute(default=False)
    half_pixel_centers: bool = attribute(default=False)
    traits = (*ResizedImage.traits, MovesElements(ResizedImage.input))
    versions = (
        Needs(4, ResizedImage.input, i16),
        Needs(3, attribute=half_pixel_centers),
        Needs(3, attribute=align_corners),
        Needs(2, ResizedImage.input, i8),
    )


Resize: TypeAlias = ResizeBilinear | ResizeNearestNeighbor
"""Images in another size."""
