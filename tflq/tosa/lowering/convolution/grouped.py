"""Convolutions of groups of channels whose 48-bit sums are concatenated, for which TOSA has no CONCAT.

They are one convolution, whose filters are 0 outside their group.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.movement import Concatenation
from tflq.dialects.tosa.convolution import Conv2D
from tflq.dialects.tosa.movement import Concat, Slice
from tflq.errors import Refused
from tflq.ir.core import Op, Value, constant
from tflq.ir.types import i8, i64
from tflq.tosa.lowering.registry import Tosa, lowered

__all__ = ["grouped", "is_grouped"]


def is_grouped(concat: Concat | Concatenation) -> bool:
    """Whether a concatenation is of the 48-bit sums of convolutions."""
    producers = [v.producer for v in concat.operands if v is not None]
    return concat.result.type.storage == i64 and all(isinstance(p, Conv2D) for p in producers)


def grouped(concat: Concat | Concatenation, t: Tosa) -> Value:
    """The sums. Refused unless the convolutions are of slices of one tensor, and alike but for filters and bias."""
    parts = [v.producer for v in concat.operands if v is not None and isinstance(v.producer, Conv2D)]
    slices = [p.input.producer for p in parts if isinstance(p.input.producer, Slice)]
    sources = [s.input for s in slices]
    attributes = parts[0].attributes
    alike = len(set(sources)) == 1 and len(sources) == len(parts) and all(p.attributes == attributes for p in parts)
    known = all(p.weight.is_constant and p.bias.is_constant for p in parts)
    depth = (sources[0].type.shape or (None,))[-1] if alike else None
    if not known or depth is None:
        raise Refused("TOSA has no CONCAT of 48-bit sums")
    bias = np.concatenate([p.bias.array for p in parts])
    filters = np.full((bias.size, *parts[0].weight.array.shape[1:3], depth), parts[0].weight_zp, np.int8)
    row = 0
    for part, source in zip(parts, slices, strict=True):
        weights, start = part.weight.array, source.start[-1]
        filters[row : row + len(weights), ..., start : start + weights.shape[-1]] = weights
        row += len(weights)
    operands: list[Value | None] = [sources[0], constant(filters, i8), constant(bias)]
    whole = Op(Conv2D.op_name, operands, [Value(concat.result.type)], attributes, concat.location)
    made = lowered(whole, t)
    assert isinstance(made, Value)
    return made
