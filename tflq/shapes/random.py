"""Shapes of random tensors. Sources: kernels/random_ops.cc, multinomial.cc."""

from __future__ import annotations

from tflq.dialects.tfl.random import Multinomial, RandomStandardNormal, RandomUniform
from tflq.ir.types import Shape
from tflq.shapes.site import Site, shape_of

__all__: list[str] = []


@shape_of(RandomStandardNormal, RandomUniform)
def _random(op: RandomStandardNormal | RandomUniform, site: Site) -> Shape:
    return tuple(site.ints(op.shape))


@shape_of(Multinomial)
def _multinomial(op: Multinomial, site: Site) -> Shape:
    return (site.dims(op.logits, 2)[0], *site.ints(op.samples, 1))
