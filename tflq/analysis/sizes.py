"""What is known of a tensor of sizes before the model runs.

A model with an open batch computes the shapes that its operators take: PACK of the batch, cut out of SHAPE, and
constants. The constants are known all the same.
"""

from __future__ import annotations

from tflq.dialects.tfl.movement import Concatenation, Pack
from tflq.ir.core import Value

__all__ = ["known_elements"]


def known_elements(value: Value) -> list[int | None] | None:
    """The elements of a vector of integers, None for one that is not known; None if not even their number is."""
    if value.is_constant:
        return [int(v) for v in value.array.reshape(-1)]
    if value.producer is None or not isinstance(value.producer, (Pack, Concatenation)):
        return [None] * value.type.shape[0] if value.type.shape and value.type.shape[0] else None
    known: list[int | None] = []
    for operand in value.producer.operands:
        part = (
            None
            if operand is None
            else [None]
            if operand.type.shape == () and not operand.is_constant
            else known_elements(operand)
        )
        if part is None:
            return None
        known += part
    return known
