"""Shapes of resized images. Sources: kernels/resize_bilinear.cc, resize_nearest_neighbor.cc."""

from __future__ import annotations

from tflq.dialects.tfl.resize import ResizeBilinear, ResizeNearestNeighbor
from tflq.ir.types import Shape
from tflq.shapes.site import Site, shape_of

__all__: list[str] = []


@shape_of(ResizeBilinear, ResizeNearestNeighbor)
def _resize(op: ResizeBilinear | ResizeNearestNeighbor, site: Site) -> Shape:
    n, _, _, c = site.dims(op.input, 4)
    return (n, *site.ints(op.size, 2), c)
