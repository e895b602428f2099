"""Shape of RFFT2D. Source: kernels/rfft2d.cc."""

from __future__ import annotations

from tflq.dialects.tfl.signal import RFFT2D
from tflq.ir.types import Shape
from tflq.shapes.site import Site, shape_of

__all__: list[str] = []


@shape_of(RFFT2D)
def _rfft2d(op: RFFT2D, site: Site) -> Shape:
    height, width = site.ints(op.length, 2)
    return (*site.dims(op.input, least=2)[:-2], height, None if width is None else width // 2 + 1)
