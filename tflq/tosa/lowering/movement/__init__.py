"""Elements in another order, place or number."""

from tflq.tosa.lowering.movement import joining, padding, reordering, reversing, slicing, space_blocks

__all__ = ["joining", "padding", "reordering", "reversing", "slicing", "space_blocks"]
