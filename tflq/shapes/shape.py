"""Shapes of shapes, ranges, and tensors of one value.

Sources: the kernels of these names in kernels/; `GetSize` in range.cc.
"""

from __future__ import annotations

import math

from tflq.dialects.inference import Misfit
from tflq.dialects.tfl.shape import BroadcastArgs, Fill, Range, Rank
from tflq.dialects.tfl.shape import Shape as TflShape
from tflq.ir.types import Shape
from tflq.shapes.site import Site, shape_of

__all__: list[str] = []


@shape_of(TflShape)
def _shape(op: TflShape, site: Site) -> Shape:
    return (len(site.dims(op.input)),)


@shape_of(Rank)
def _rank(op: Rank, site: Site) -> Shape:
    return ()


@shape_of(Fill)
def _fill(op: Fill, site: Site) -> Shape:
    return tuple(site.ints(op.dims))


@shape_of(Range)
def _range(op: Range, site: Site) -> Shape:
    """ceil((limit - start) / delta) elements."""
    found = [known for known in map(site.known, (op.start, op.limit, op.delta)) if known is not None]
    if len(found) != 3 or not all(known.complete for known in found):
        return (None,)
    start, limit, delta = (known.array.reshape(-1)[0] for known in found)
    if not delta or (limit - start) * delta < 0:
        raise Misfit(f"steps of {delta} do not lead from {start} to {limit}")
    if found[0].array.dtype.kind == "f":
        return (math.ceil(abs((limit - start) / delta)),)
    return (-(-abs(int(limit) - int(start)) // abs(int(delta))),)


@shape_of(BroadcastArgs)
def _broadcast_args(op: BroadcastArgs, site: Site) -> Shape:
    (a,), (b,) = site.dims(op.lhs, 1), site.dims(op.rhs, 1)
    return (None if a is None or b is None else max(a, b),)
