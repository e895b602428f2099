"""Numbers that a model computes when the interpreter allocates: sizes of tensors, and lines of such a length.

SHAPE, RANGE and STRIDED_SLICE run then, if what they read is known; so what is sized by their results stays static.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.movement import StridedSlice
from tflq.dialects.tfl.shape import Range, Shape
from tflq.ir.core import Value
from tflq.ir.types import TensorType, i32
from tflq.legalize.rule import RuleBuilder

__all__ = ["element", "line", "shape_of", "sliced"]

_NUMBER = TensorType((), i32)
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def shape_of(b: RuleBuilder, x: Value, rank: int) -> Value:
    """The shape of a tensor: i32 [rank]."""
    return b.emit(Shape, [x], TensorType((rank,), i32), out_type="INT32")


def line(b: RuleBuilder, limit: Value, step: int = 1) -> Value:
    """0, step, 2 step ... below a limit, which is an i32 scalar."""
    length = len(range(0, int(limit.array), step)) if limit.is_constant else None
    operands = [b.constant(np.asarray(0)), limit, b.constant(np.asarray(step))]
    return b.emit(Range, operands, TensorType((length,), i32))


def element(b: RuleBuilder, vector: Value, index: int) -> Value:
    """An element of an i32 vector, as a scalar."""
    if vector.is_constant:
        return b.constant(np.asarray(int(vector.array[index])))
    return sliced(b, vector, b.constant([index]), b.constant([index + 1]), _NUMBER, shrink_axis_mask=1)


def sliced(
    b: RuleBuilder, vector: Value, begin: Value, end: Value, type: TensorType, step: int = 1, **masks: int
) -> Value:
    """STRIDED_SLICE of a vector, every `step`-th element, with some masks."""
    options = {**dict.fromkeys(_MASKS, 0), **masks, "offset": False}
    return b.emit(StridedSlice, [vector, begin, end, b.constant([step])], type, **options)
