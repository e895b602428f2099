"""State of recurrent operators: a variable tensor becomes a variable of the integer form.

It starts as its zero point where it is int8, else as 0. Source: core/api/tensor_utils.cc (ResetVariableTensor).
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.state import Variable, VariableRead, VariableWrite
from tflq.ir.core import Value
from tflq.ir.types import TensorType, UniformQuantizedType, i8
from tflq.legalize.rule import RuleBuilder

__all__ = ["read_state", "write_state"]


def read_state(b: RuleBuilder, tensor: Value, shape: tuple[int, ...]) -> Value:
    """What a variable tensor holds, in that shape."""
    name, new = b.variables.name(tensor)
    storage = tensor.type.storage
    if new:
        element = tensor.type.element
        zero = element.zero_point if isinstance(element, UniformQuantizedType) and storage == i8 else 0
        b.op(Variable, [b.constant(np.full(shape, zero), storage)], [], {"name": name})
    return b.op(VariableRead, [], [TensorType(shape, storage)], {"name": name}).result


def write_state(b: RuleBuilder, tensor: Value, value: Value) -> None:
    """Makes a value, of the shape that was read, what a variable tensor holds."""
    name, _ = b.variables.name(tensor)
    b.op(VariableWrite, [value], [], {"name": name})
