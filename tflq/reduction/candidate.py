"""The parts of a model that reduction tries: operators of one function, on the values that the model has there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tflq.dialects.declare import Operator, Slot
from tflq.flatbuffer.reader import read
from tflq.flatbuffer.writer import write
from tflq.ir.core import Function, Op, Value
from tflq.ir.types import TensorType
from tflq.passes.part import part, read_from_outside
from tflq.reduction.recording import Recording, invented

__all__ = ["Candidate", "build"]

Candidate = tuple[bytes, dict[str, np.ndarray]]
"""A model, and arrays for its inputs by name."""

SMALL: Final = 8
"""Elements up to which axes, shapes and indices become constants, as most operators want them."""


def build(data: bytes, index: int, operators: Sequence[int], recording: Recording) -> Candidate:
    """Some operators of function `index`, by number, of a model, and with them those that give what has no value."""
    module = read(data)
    function = module.functions[index]
    values = {value: recording.get((index, number)) for number, value in enumerate(function.tensors)}
    ops = _closed(function, {function.ops[i] for i in operators}, values)
    outside = read_from_outside(function, [op for op in function.ops if op in ops])
    known = {v: _known(v, values.get(v)) for v in outside}
    constants = {v: array for v, array in known.items() if v.producer is not None and _is_small_shape(v, array, ops)}
    for value, array in known.items():
        value.type = _as_run(value.type, array)
    made = part(module, index, ops, constants)
    return write(made), {v.name: known[v] for v in made.main.inputs}


def _closed(function: Function, ops: set[Op], values: Mapping[Value, np.ndarray | None]) -> set[Op]:
    """The ops, and those that give them what cannot be an input: resources, strings, packed integers."""
    closed, wanted = set(ops), set[Value]()
    for op in reversed(function.ops):
        if not wanted.isdisjoint(op.results):
            closed.add(op)
        if op in closed:
            wanted.update(v for v in op.operands if v is not None and not _can_be_input(v, values.get(v)))
    return closed


def _can_be_input(value: Value, array: np.ndarray | None) -> bool:
    storage = value.type.storage
    if not storage.numpy or storage.bits < 8:
        return False
    return array is None or array.dtype == storage.dtype


def _known(value: Value, array: np.ndarray | None) -> np.ndarray:
    return invented(value) if array is None else array


def _as_run(type: TensorType, array: np.ndarray) -> TensorType:
    """A type whose shape the array has: the file's, unless the model runs with another."""
    shape = type.shape
    fits = shape is not None and len(shape) == array.ndim
    if fits and shape is not None and all(a in (None, b) for a, b in zip(shape, array.shape, strict=True)):
        return type
    return TensorType(array.shape, type.element)


def _is_small_shape(value: Value, array: np.ndarray, ops: set[Op]) -> bool:
    if array.dtype.kind != "i" or array.size > SMALL:
        return False
    uses = [slot for op in ops for slot, v in zip(_slots(op), op.operands, strict=False) if v is value]
    return all(slot.indices for slot in uses)


def _slots(op: Op) -> Sequence[Slot]:
    return op.operand_slots if isinstance(op, Operator) else ()
