"""SHAPE, RANK and RANGE: constants, where no dim is left open; FILL. Kernels: shape.cc, rank.cc, range.cc, fill.cc."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.shape import Fill, Range, Rank, Shape
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.tosa.lowering.known import constant_of, known_array
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.shaping import kept_storage
from tflq.tosa.lowering.wide import narrow

__all__: list[str] = []


@lowering(Shape, Rank, Range)
def known_sizes(op: Shape | Rank | Range, t: Tosa) -> Value:
    """The constant that it is. Sources: kernels/shape.cc, rank.cc, range.cc."""
    array = known_array(op.result)
    if array is None:
        raise Refused("its result is known only when the model runs, and TOSA 1.0 has no run-time shapes")
    return t.constant(np.ascontiguousarray(array).reshape(array.shape), kept_storage(t, op.result))


@lowering(Fill)
def fill(op: Fill, t: Tosa) -> Value:
    """TILE of one element."""
    shape = [int(d) for d in constant_of(op.dims, "shape").reshape(-1)]
    value = op.value
    if value.is_constant:
        one = narrow(value, t)
        return t.constant(np.full(shape, one.array.reshape(())), one.type.storage)
    return t.spread(t.reshape(narrow(value, t), ()), shape)
