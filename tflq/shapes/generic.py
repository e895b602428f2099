"""Shapes that an operator's declaration says."""

from __future__ import annotations

from tflq.dialects.declare import Operator
from tflq.dialects.inference import Stated
from tflq.dialects.traits.types import Broadcasts, SameShape
from tflq.ir.types import Shape
from tflq.shapes.site import shape_of

__all__: list[str] = []


@shape_of(SameShape, Broadcasts)
def _declared(op: Operator, site: Stated) -> Shape | list[Shape]:
    return op.infer(site)
