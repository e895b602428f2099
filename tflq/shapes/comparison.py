"""Shapes of what chooses elements. Sources: kernels/select.cc, where.cc."""

from __future__ import annotations

from tflq.dialects.tfl.comparison import Select, Where
from tflq.ir.types import Shape
from tflq.shapes.generic import common
from tflq.shapes.site import Site, shape_of

__all__: list[str] = []


@shape_of(Select)
def _select(op: Select, site: Site) -> Shape:
    """A condition of rank 1 chooses rows."""
    return common(site, [op.on_true, op.on_false])


@shape_of(Where)
def _where(op: Where, site: Site) -> Shape:
    """As many rows as there are true elements."""
    known = site.known(op.condition)
    rows = int((known.array != 0).sum()) if known is not None and known.complete else None
    return (rows, len(site.dims(op.condition)))
