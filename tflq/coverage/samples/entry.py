"""How a valid operator is built: the shapes of its quantized tensors, its other operands and results, its options.

An entry says nothing of element types: `signatures` gives them, by what the schema declares of the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tflq.dialects.tfl import op_name
from tflq.flatbuffer.writer import write
from tflq.ir.core import Buffer, Function, Module, Op, Value, constant
from tflq.ir.types import ElementType, ScalarType, Shape, TensorType, UniformQuantizedType, element_storage, i1, i32

__all__ = [
    "SCALE",
    "Entry",
    "Plain",
    "Shaped",
    "Slot",
    "condition",
    "entry",
    "file_of",
    "indices",
    "ints",
    "model_of",
    "per_layer",
    "stored",
]

SCALE = 0.0625
Shaped: TypeAlias = tuple[int, ...]
Attributes: TypeAlias = Mapping[str, Any]
_FIRST_VERSIONS = {"broadcast_to": 2}
"""First versions that are not 1."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A tensor of a plain type, whatever the others are."""

    shape: Shaped
    element: ScalarType


Slot: TypeAlias = Shaped | Plain | np.ndarray
"""A quantized tensor's shape, a plain tensor, or a plain constant."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An operator's operands, results and options; `others` are further options worth a row, by what is said of them;
    `mixed`: results of another width can have these shapes."""

    operands: tuple[Slot, ...]
    results: tuple[Slot, ...]
    options: Attributes = field(default_factory=dict)
    others: Mapping[str, Attributes] = field(default_factory=dict)
    mixed: bool = True


def entry(
    operands: Iterable[Slot], results: Iterable[Slot], others: Mapping[str, Attributes] | None = None, **options: Any
) -> Entry:
    return Entry(tuple(operands), tuple(results), options, others or {})


def ints(*data: Any) -> np.ndarray:
    """An operand of constant integers: one number as it is, several as a vector."""
    return np.asarray(data[0] if len(data) == 1 else data, np.int32)


def condition(*shape: int) -> Plain:
    return Plain(shape, i1)


def indices(*shape: int) -> Plain:
    return Plain(shape, i32)


def per_layer(storage: ScalarType, scale: float = SCALE, zero_point: int | None = None) -> UniformQuantizedType:
    """One scale, and a zero point off the middle where the kernels take one."""
    if zero_point is None:
        zero_point = (
            0 if storage.bits >= 16 else (storage.minimum + storage.maximum) // 2 + (3 if storage.bits == 8 else 1)
        )
    return UniformQuantizedType.of(storage, scale, zero_point)


def stored(shape: Shape, element: ElementType, name: str, data: np.ndarray | None = None) -> Value:
    """A constant of stored integers: those given, or some of all over the range."""
    storage = element_storage(element)
    if data is None:
        data = np.arange(np.prod(shape)).reshape(shape) * 7  # type: ignore[arg-type]
        if storage.is_integer:
            data = data % (1 << min(storage.bits, 16)) + max(storage.minimum, -(1 << 15))
    array = np.asarray(data).astype(storage.dtype)
    if storage.bits == 4:
        nibbles = np.append(array.reshape(-1).astype(np.uint8) & 15, np.zeros(array.size % 2, np.uint8))
        array = nibbles[::2] | nibbles[1::2] << 4
    return Value(TensorType(shape, element), name, buffer=Buffer.of(array))


def model_of(
    name: str,
    made: Entry,
    elements: Sequence[ElementType],
    results: Sequence[ElementType],
    constants: Iterable[int] = (),
) -> bytes:
    """The file of an operator whose quantized tensors have these types; `constants`: which operands are constant."""
    given, taken = iter(elements), iter(results)
    operands = [_value(slot, given, f"in{i}", i in constants) for i, slot in enumerate(made.operands)]
    outputs = [_value(slot, taken, f"out{i}", False) for i, slot in enumerate(made.results)]
    return file_of(name, operands, outputs, made.options)


def _value(slot: Slot, elements: Any, name: str, fixed: bool) -> Value:
    if isinstance(slot, np.ndarray):
        return constant(slot, name=name)
    if isinstance(slot, Plain):
        return Value(TensorType(slot.shape, slot.element), name)
    element = next(elements)
    return stored(slot, element, name) if fixed else Value(TensorType(slot, element), name)


def file_of(
    name: str,
    operands: Sequence[Value | None],
    results: Sequence[Value],
    options: Attributes,
    functions: Sequence[Function] = (),
    intermediates: Sequence[Value] = (),
) -> bytes:
    """The file of a model of one operator, and the functions it calls; operands without data are its inputs."""
    version = _FIRST_VERSIONS.get(name, 1)
    op = Op(
        op_name(name),
        list(operands),
        list(results),
        dict(options),
        info={"version": version},
        intermediates=list(intermediates),
    )
    inputs = [v for v in operands if v is not None and v.buffer is None and not v.info.get("is_variable")]
    return bytes(write(Module([Function("main", list(dict.fromkeys(inputs)), list(results), [op]), *functions])))
