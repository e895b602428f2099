"""narrow-storage: integers of 32 bits that several operators read, or that are moved, are stored with fewer.

    x: i32 within int16, slice(x)   →   cast(slice(cast(x): i16)): i32

Gates and cells of an LSTM are numbers of 16 bits, with which TOSA computes in 32. A device has half of the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from tflq.analysis.blocks import MOVEMENT
from tflq.analysis.known import Ranges
from tflq.dialects.tosa.movement import Cast, Concat, Pad, Reshape, Slice
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import ScalarType, TensorType, i8, i16, i32
from tflq.transforms.pass_manager import Pass, PassResult

_MOVES: Final = (*(kind for kind in MOVEMENT if kind is not Pad), Reshape)


class NarrowStorage(Pass):
    """Stores integers of 32 bits in as many as they need."""

    name: ClassVar[str] = "narrow-storage"
    runs_on: ClassVar[tuple[type, ...]] = (Slice, Concat)

    def run(self, module: Module) -> PassResult:
        return PassResult.of(module, _narrow)


def _narrow(function: Function) -> bool:
    ranges, users, returned = Ranges(sums=True), function.users(), set(function.outputs)
    narrow: dict[Value, Value] = {}
    ops: list[Op] = []
    for op in function.ops:
        value = op.results[0] if len(op.results) == 1 else None
        if value is None or value.type.storage != i32 or value.name or value in returned:
            ops.append(op)
        elif isinstance(op, _MOVES):
            operands = _stored_alike([narrow.get(v, v) for v in op.present_operands], ranges)
            if operands is None:
                ops.append(op)
                continue
            narrow[value] = Value(TensorType(value.type.shape, operands[0].type.storage))
            ops.append(Op(op.name, [*operands], [narrow[value]], dict(op.attributes), op.location))
            ops.append(Op(Cast.op_name, [narrow[value]], [value], {}, op.location))
        elif _is_stored(users.get(value, ())) and (storage := _fitting(value, ranges)):
            whole, narrow[value] = (Value(TensorType(value.type.shape, type)) for type in (i32, storage))
            ops.append(Op(op.name, op.operands, [whole], dict(op.attributes), op.location))
            ops.append(Op(Cast.op_name, [whole], [narrow[value]], {}, op.location))
            ops.append(Op(Cast.op_name, [narrow[value]], [value], {}, op.location))
        else:
            ops.append(op)
    if narrow:
        function.ops = ops
    return bool(narrow)


def _is_stored(users: Sequence[Op]) -> bool:
    """Whether a value cannot be computed within the one operator that reads it."""
    return len({*users}) > 1 or any(isinstance(op, _MOVES) for op in users)


def _fitting(value: Value, ranges: Ranges) -> ScalarType | None:
    """The type with the fewest bits that a value fits in; None if it needs all of its own."""
    low, high = ranges.of(value)
    return next((type for type in (i8, i16) if type.minimum <= low and high <= type.maximum), None)


def _stored_alike(values: Sequence[Value], ranges: Ranges) -> list[Value] | None:
    """Values of fewer bits, and constants as such; None if they have no such type in common."""
    storages = {value.type.storage for value in values if not value.is_constant}
    if len(storages) != 1 or (storage := storages.pop()) == i32:
        return None
    out = []
    for value in values:
        low, high = ranges.of(value)
        if value.is_constant and storage.minimum <= low and high <= storage.maximum:
            value = constant(value.array.astype(storage.dtype), storage)
        if value.type.storage != storage:
            return None
        out.append(value)
    return out
