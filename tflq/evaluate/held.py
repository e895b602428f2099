"""How the evaluator holds elements in arrays: by their numpy type, bf16 by bits (uint16), functions by their names."""

from __future__ import annotations

import numpy as np

from tflq.ir.core import Value
from tflq.ir.types import FunctionType, TensorType, bf16

__all__ = ["held_array", "held_dtype"]


def held_dtype(type: TensorType) -> np.dtype:
    """The type of the arrays that hold values of a type. TypeError if there is none."""
    if isinstance(type.element, FunctionType):
        return np.dtype(object)
    return np.dtype(np.uint16) if type.storage is bf16 else type.storage.dtype


def held_array(value: Value) -> np.ndarray:
    """The elements of a constant. TypeError if it is none."""
    if value.type.storage is not bf16 or value.buffer is None or not value.type.is_static:
        return value.array
    shape = [dim or 0 for dim in value.type.shape or ()]
    return value.buffer.data.view(np.uint16).reshape(shape)
