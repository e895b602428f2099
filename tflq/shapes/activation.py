"""Shape of PRELU. Source: kernels/activations.cc."""

from __future__ import annotations

from tflq.dialects.inference import Misfit, agree, text
from tflq.dialects.tfl.activation import Prelu
from tflq.ir.types import Shape
from tflq.shapes.site import Site, shape_of

__all__: list[str] = []


@shape_of(Prelu)
def _prelu(op: Prelu, site: Site) -> Shape:
    """The slopes broadcast to the input, never the input to them."""
    dims = site.dims(op.input)
    found = site.broadcast([op.input, op.alpha])
    if len(found) != len(dims):
        raise Misfit(f"alpha {text(site.dims(op.alpha))} has more dims than the input {text(dims)}")
    return tuple(agree(a, b, "input and result") for a, b in zip(dims, found, strict=True))
