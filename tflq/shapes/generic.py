"""Shapes that a trait of the operator says: that of its operands, or what they broadcast to.

Source: `CalculateShapeForBroadcast` in kernels/kernel_util.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.builder import broadcast
from tflq.dialects.declare import Operator
from tflq.dialects.traits.types import Broadcasts, SameShape
from tflq.ir.core import Value
from tflq.ir.types import Shape
from tflq.shapes.site import Dims, Misfit, Site, agree, shape_of, text

__all__ = ["broadcast_of", "common"]


@shape_of(SameShape)
def _same_shape(op: Operator, site: Site) -> Shape:
    said = op.trait(SameShape)
    assert said is not None
    return common(site, said.operands(op))


@shape_of(Broadcasts)
def _broadcasts(op: Operator, site: Site) -> Dims:
    said = op.trait(Broadcasts)
    assert said is not None
    return broadcast_of(site, said.operands(op))


def common(site: Site, values: Sequence[Value | None]) -> Dims:
    """The one shape of all these."""
    first = site.dims(values[0])
    for value in values[1:]:
        other = site.dims(value, len(first))
        first = tuple(agree(a, b, "dims of its operands") for a, b in zip(first, other, strict=True))
    return first


def broadcast_of(site: Site, values: Sequence[Value]) -> Dims:
    """The shape that these broadcast to."""
    shapes = [site.dims(value) for value in values]
    try:
        return broadcast(*shapes) or ()
    except ValueError:
        raise Misfit(f"its operands {' and '.join(map(text, shapes))} do not broadcast") from None
