"""Whether the interpreter writes an operator's result over an operand, as its memory planner decides.

That shows where a kernel's loop comes to something undefined: with separate memory for its result the loop runs in
vector registers, over an operand one by one (`tflq.numerics.x86`). With `experimental_preserve_all_tensors` nothing is
written over.
Source: ArenaPlanner::IdentifyInPlaceTensors in tflite/arena_planner.cc, for operators with
kTfLiteInplaceOpInput0Shared and kTfLiteInplaceOpInput1Shared.
"""

from __future__ import annotations

from functools import cached_property

from tflq.dialects.declare import trait_of
from tflq.dialects.effects import is_variable
from tflq.dialects.traits.memory import View
from tflq.ir.core import Function, Op, Value

__all__ = ["Memory"]

_LEAST_BYTES = 4
"""Tensors of so many bytes or less are not shared."""


class Memory:
    """The tensors of one function, as the planner counts their readers."""

    def __init__(self, function: Function) -> None:
        self._function = function

    @cached_property
    def _readers(self) -> dict[Value, int]:
        counts = {value: len(ops) for value, ops in self._function.users().items()}
        for value in self._function.outputs:
            counts[value] = counts.get(value, 0) + 1
        return counts

    @cached_property
    def _producers(self) -> dict[Value, Op]:
        return {result: op for op in self._function.ops for result in op.results}

    def writes_over(self, op: Op) -> bool:
        """Whether the result of an op that computes in place is stored where its first or second operand was."""
        if op.result in self._function.outputs:
            return False
        return any(v is not None and self._is_free(v, op.result) for v in op.operands[:2])

    def _is_free(self, operand: Value, result: Value) -> bool:
        shape, storage = result.type.shape, result.type.storage
        if operand.is_constant or is_variable(operand) or operand in self._function.inputs or shape is None:
            return False
        size, own = (_elements(v.type.shape) for v in (result, operand))
        if size != own or size * storage.bits // 8 <= _LEAST_BYTES:
            return False
        return self._readers.get(operand, 0) == 1 and self._readers.get(self._root(operand), 0) <= 1

    def _root(self, value: Value) -> Value:
        """The tensor in whose memory a view of it is."""
        while (op := self._producers.get(value)) is not None and (view := trait_of(op, View)) is not None:
            source = view.slots[0].value(op)
            if (
                source is None
                or source.is_constant
                or source in self._function.inputs
                or value in self._function.outputs
            ):
                break
            value = source
        return value


def _elements(shape: tuple[int | None, ...] | None) -> int:
    count = 1
    for dim in shape or ():
        count *= 1 if dim is None else dim
    return count
