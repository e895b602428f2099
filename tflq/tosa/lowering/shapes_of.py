"""SHAPE, RANK and RANGE: constants, where no dim is left open."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.shape import Range, Rank, Shape
from tflq.ir.core import Value
from tflq.tosa.lowering.known import known_array
from tflq.tosa.lowering.movement import kept_storage
from tflq.tosa.lowering.registry import Refused, Tosa, lowering

__all__: list[str] = []


@lowering(Shape, Rank, Range)
def known_sizes(op: Shape | Rank | Range, t: Tosa) -> Value:
    """The constant that it is. Sources: kernels/shape.cc, rank.cc, range.cc."""
    array = known_array(op.result)
    if array is None:
        raise Refused("its result is known only when the model runs, and TOSA 1.0 has no run-time shapes")
    return t.constant(np.ascontiguousarray(array).reshape(array.shape), kept_storage(t, op.result))
