"""Shapes of what chooses elements. Sources: kernels/select.cc, where.cc."""

from __future__ import annotations

import math

from tflq.dialects.inference import Dims
from tflq.dialects.tfl.comparison import Select, SelectV2, Where
from tflq.ir.types import Shape
from tflq.shapes.site import Site, shape_of

__all__: list[str] = []


@shape_of(Select, SelectV2)
def _select(op: Select | SelectV2, site: Site) -> Shape:
    """A condition of rank 1 chooses rows in SELECT. Of one element each, both leave the result the shape that it
    states."""
    operands, stated = [op.condition, op.on_true, op.on_false], op.output.type.shape
    if stated is not None and all(_single(shape) for shape in (stated, *map(site.dims, operands))):
        return (1,) * len(stated)
    return site.common(operands[1:]) if isinstance(op, Select) else site.broadcast(operands)


def _single(dims: Dims) -> bool:
    return math.prod(d or 0 for d in dims) == 1


@shape_of(Where)
def _where(op: Where, site: Site) -> Shape:
    """As many rows as there are true elements."""
    known = site.known(op.condition)
    rows = int((known.array != 0).sum()) if known is not None and known.complete else None
    return (rows, len(site.dims(op.condition)))
