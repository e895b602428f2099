"""Shape of BITCAST. Source: kernels/bitcast.cc."""

from __future__ import annotations

from tflq.dialects.inference import agree
from tflq.dialects.tfl.bits import Bitcast
from tflq.ir.types import Shape
from tflq.shapes.site import Site, shape_of

__all__: list[str] = []


@shape_of(Bitcast)
def _bitcast(op: Bitcast, site: Site) -> Shape:
    """Between widths the last dim appears or goes."""
    dims = site.dims(op.input)
    before, after = op.input.type.storage.bits, op.result.type.storage.bits
    if before > after:
        return (*dims, before // after)
    if before < after:
        agree(dims[-1] if dims else None, after // before, "last dim")
        return dims[:-1]
    return dims
