"""The parts of a model that reduction tries: operators of one function, on the values that the model has there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from tflq.dialects.declare import Operator
from tflq.flatbuffer.reader import read
from tflq.flatbuffer.writer import write
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.types import TensorType, UniformQuantizedPerAxisType, UniformQuantizedType
from tflq.passes.source import part, read_from_outside
from tflq.verification.inputs import made_inputs
from tflq.verification.runner import RunError, opened_whole

Recording: TypeAlias = Mapping[tuple[int, int], np.ndarray]
"""By function and number in its tensor table."""


def record(path: Path, module: Module, entry: str, inputs: Sequence[np.ndarray], timeout: float) -> Recording:
    """Every tensor of every function of a model, after one run of an entry. Empty if the model does not run."""
    places = [(i, n) for i, function in enumerate(module.functions) for n in range(len(function.tensors))]
    try:
        with opened_whole(str(path), keep=True, timeout=timeout) as opened:
            opened.run(entry, inputs)
            return {place: array for place in places if (array := opened.fetch(place)) is not None}
    except RunError:
        return {}


def invented(value: Value) -> np.ndarray:
    """Random elements for a tensor that was not recorded; open dims are 1."""
    element = value.type.element
    quantized = isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType))
    zero = element.zero_point if isinstance(element, UniformQuantizedType) else 0
    description = {
        "dtype": value.type.storage.dtype.name,
        "shape": [1 if dim is None else dim for dim in value.type.shape or ()],
        "shape_signature": [],
        "scales": [1.0] if quantized else [],
        "zero_points": [zero],
    }
    return next(arrays for _, arrays in made_inputs([(value.name, description)], 1, None))[0]


Candidate = tuple[bytes, dict[str, np.ndarray]]
"""A model, and arrays for its inputs by name."""

SMALL: Final = 8
"""Axes, shapes and indices of up to so many elements become constants, as most operators want them."""


def build(data: bytes, index: int, operators: Sequence[int], recording: Recording) -> Candidate:
    """Some operators of function `index` of a model, by number, with the ones that compute what cannot be an input."""
    module = read(data)
    function = module.functions[index]
    values = {value: recording.get((index, number)) for number, value in enumerate(function.tensors)}
    ops = _closed(function, {function.ops[i] for i in operators}, values)
    outside = read_from_outside(function, [op for op in function.ops if op in ops])
    known = {v: invented(v) if (array := values.get(v)) is None else array for v in outside}
    constants = {v: array for v, array in known.items() if v.producer is not None and _is_small_shape(v, array, ops)}
    for value, array in known.items():
        value.type = _as_run(value.type, array)
    smaller = part(module, index, ops, constants)
    return write(smaller), {v.name: known[v] for v in smaller.main.inputs}


def _closed(function: Function, ops: set[Op], values: Mapping[Value, np.ndarray | None]) -> set[Op]:
    """The ops, and those that compute for them what cannot be an input: resources, strings, packed integers."""
    closed, wanted = set(ops), set[Value]()
    for op in reversed(function.ops):
        if not wanted.isdisjoint(op.results):
            closed.add(op)
        if op in closed:
            wanted.update(v for v in op.reads if not _can_be_input(v, values.get(v)))
    return closed


def _can_be_input(value: Value, array: np.ndarray | None) -> bool:
    storage = value.type.storage
    if not storage.numpy or storage.bits < 8:
        return False
    return array is None or array.dtype == storage.dtype


def _as_run(type: TensorType, array: np.ndarray) -> TensorType:
    """A type with the array's shape: the file's, unless the model runs with another."""
    shape = type.shape
    fits = shape is not None and len(shape) == array.ndim
    if fits and shape is not None and all(a in (None, b) for a, b in zip(shape, array.shape, strict=True)):
        return type
    return TensorType(array.shape, type.element)


def _is_small_shape(value: Value, array: np.ndarray, ops: set[Op]) -> bool:
    if array.dtype.kind != "i" or array.size > SMALL:
        return False
    declared = [op for op in ops if isinstance(op, Operator)]
    uses = (s for op in declared for s, v in zip(op.operand_slots, op.operands, strict=False) if v is value)
    return all(slot.indices for slot in uses)
