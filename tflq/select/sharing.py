"""Memory that the interpreter lets tensors share, and where that goes wrong.

Its planner lets RESHAPE and the like result in their operand's memory (`View`), and arithmetic write its result over an
operand that nobody else reads (`InPlace`). It counts the readers of that operand and of the tensor whose memory it is,
not those of the views between: of a RESHAPE of a RESHAPE, the last may be overwritten while the first is still to be
read. There a copy keeps them apart.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import ClassVar

from tflq.contract import Pass, PassResult
from tflq.dialects.declare import Operator
from tflq.dialects.forms import Form
from tflq.dialects.tfl.casts import Cast
from tflq.dialects.tfl.movement import Reshape
from tflq.dialects.tfl.runtime import state_version
from tflq.dialects.traits.memory import InPlace, View
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.rewriting import remove_ops

__all__ = ["KeepApart", "MergeViews"]

_SMALL = (0, 4)
"""The size of what is never written over, nor anything smaller."""


class MergeViews(Pass):
    """RESHAPE of a RESHAPE becomes one, or none if the first operand has that shape already."""

    name: ClassVar[str] = "merge-views"
    takes: ClassVar[Form] = "kernels"

    def run(self, module: Module) -> PassResult:
        modified = False
        for function in module.functions:
            outputs, replaced = set(function.outputs), dict[Value, Value]()
            for op in function.ops:
                if not isinstance(op, Reshape):
                    continue
                source = op.input
                while isinstance(source.producer, Reshape) and not source.name:
                    source = source.producer.input
                modified |= source is not op.operands[0]
                op.operands[0] = source
                if source.type == op.result.type and not op.result.name and op.result not in outputs:
                    replaced[op.result] = source
            modified |= bool(replaced)
            remove_ops(function, {value.producer for value in replaced if value.producer is not None})
            function.replace(replaced)
        return PassResult(module, modified)


class KeepApart(Pass):
    """Copies a tensor whose memory the interpreter would overwrite while it is still to be read."""

    name: ClassVar[str] = "keep-apart"
    takes: ClassVar[Form] = "kernels"

    def run(self, module: Module) -> PassResult:
        copied = [_Plan(function).run() for function in module.functions if _has_views(function)]
        return PassResult(module, any(copied))


def _has_views(function: Function) -> bool:
    """Whether some result may be in memory that another tensor is read from: without, what is written over has no other
    reader."""
    return any(issubclass(kind, Operator) and kind.trait(View) for kind in {type(op) for op in function.ops})


class _Plan:
    """The interpreter's plan for a function: which tensors are in the memory of which other."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.readers: Counter[Value] = Counter([*function.inputs, *function.outputs])
        self.last: dict[Value, int] = {}
        for i, op in enumerate(function.ops):
            for value in op.operands:
                if value is not None:
                    self.readers[value] += 1
                    self.last[value] = i
        self.owner: dict[Value, Value] = {}
        self.held: dict[Value, list[Value]] = {}  # by owner, of memory that views are in

    def run(self) -> bool:
        ops: list[Op] = []
        fixed = {*self.function.inputs, *self.function.outputs}
        for i, op in enumerate(self.function.ops):
            if isinstance(op, Operator) and (source := self._memory(op, fixed)) is not None:
                is_view = not op.has(InPlace)
                if not is_view and self._is_read(source, i):
                    copy = Op(Cast.op_name, [source], [Value(source.type)], {}, op.location)
                    state_version(copy)
                    ops.append(copy)
                    op.operands = [copy.result if v is source else v for v in op.operands]
                    source = copy.result
                self._share(op.result, source, is_view=is_view)
            ops.append(op)
        modified = len(ops) > len(self.function.ops)
        self.function.ops = ops
        return modified

    def _owner(self, value: Value) -> Value:
        return self.owner.get(value, value)

    def _share(self, value: Value, other: Value, *, is_view: bool) -> None:
        """Notes that two tensors are in one memory. What was written over has no reader any more: without a view nobody
        asks for what else is there."""
        self.owner[value] = owner = self._owner(other)
        if is_view:
            self.held.setdefault(owner, [owner]).append(other)
        if owner in self.held:
            self.held[owner].append(value)

    def _memory(self, op: Operator, fixed: set[Value]) -> Value | None:
        """The operand in whose memory the result is; None if it has its own."""
        if (trait := op.trait(InPlace)) is not None:
            result = op.result
            read = (v for slot in trait.slots for v in slot.values(op))
            x = next((v for v in read if self.readers[v] < 2 and self._is_own(v, fixed) and _alike(v, result)), None)
            if x is None or result in fixed or _size(result) <= _SMALL:
                return None
            return x if self.readers[self._owner(x)] < 2 else None
        if (view := op.trait(View)) is None or op.result in fixed:
            return None
        return next((v for slot in view.slots for v in slot.values(op) if self._is_own(v, fixed)), None)

    def _is_own(self, value: Value, fixed: set[Value]) -> bool:
        """Whether a value is in memory that the interpreter's planner gives."""
        return value not in fixed and not value.is_constant

    def _is_read(self, value: Value, place: int) -> bool:
        """Whether another tensor in a value's memory is read at a place in the function or later."""
        held = self.held.get(self._owner(value), ())
        return any(v is not value and self.last.get(v, -1) >= place for v in held)


def _alike(a: Value, b: Value) -> bool:
    """Whether two tensors have one size."""
    same = a.type.shape == b.type.shape and a.type.storage.bits == b.type.storage.bits
    return same or _size(a) == _size(b)


def _size(value: Value) -> tuple[int, int]:
    """How many open dims a tensor has, and its bytes but for them."""
    shape, size = value.type.shape or (), max(1, value.type.storage.bits // 8)
    known = [d for d in shape if d is not None]
    return len(shape) - len(known), prod(known) * size
