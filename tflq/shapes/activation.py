"""Shape of PRELU. Source: kernels/activations.cc."""

from __future__ import annotations

from tflq.dialects.tfl.activation import Prelu
from tflq.ir.types import Shape
from tflq.shapes.generic import broadcast_of
from tflq.shapes.site import Misfit, Site, agree, shape_of, text

__all__: list[str] = []


@shape_of(Prelu)
def _prelu(op: Prelu, site: Site) -> Shape:
    """The slopes broadcast to the input, never the input to them."""
    dims = site.dims(op.input)
    found = broadcast_of(site, [op.input, op.alpha])
    if len(found) != len(dims):
        raise Misfit(f"alpha {text(site.dims(op.alpha))} has more dims than the input {text(dims)}")
    return tuple(agree(a, b, "input and result") for a, b in zip(dims, found, strict=True))
