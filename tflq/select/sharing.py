"""Memory that the interpreter lets tensors share, and where that goes wrong.

Its planner lets RESHAPE and the like result in their operand's memory, and arithmetic write its result over an operand
that nobody else reads. It counts the readers of that operand and of the tensor whose memory it is, not those of the
views between: of a RESHAPE of a RESHAPE, the last may be overwritten while the first is still to be read. There a copy
keeps them apart. Source: arena_planner.cc, and `inplace_operator` of the kernels.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import prod

from tflq.dialects.tfl.casts import Cast
from tflq.dialects.tfl.movement import Reshape
from tflq.dialects.tfl.runtime import state_version
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.rewriting import remove_ops

__all__ = ["keep_apart", "merge_views"]

_VIEWS = frozenset({"tfl.bitcast", "tfl.expand_dims", "tfl.reshape", "tfl.squeeze"})
_WRITERS = {
    **dict.fromkeys(("tfl.add", "tfl.div", "tfl.mul", "tfl.sub"), (0, 1)),
    **dict.fromkeys(("tfl.dynamic_update_slice", "tfl.softmax"), (0,)),
}
"""Operands that a kernel may write its result over."""

_SMALL = (0, 4)
"""The size of what is never written over, nor anything smaller."""


def merge_views(module: Module) -> bool:
    """RESHAPE of a RESHAPE reads the operand of the first, or is it, if it has that shape; in place. Whether any was
    changed."""
    modified = False
    for function in module.functions:
        outputs, replaced = set(function.outputs), dict[Value, Value]()
        for op in function.ops:
            if not isinstance(op, Reshape):
                continue
            source = op.operand(0)
            while source.producer is not None and isinstance(source.producer, Reshape) and not source.name:
                source = source.producer.operand(0)
            modified |= source is not op.operands[0]
            op.operands[0] = source
            if source.type == op.result.type and not op.result.name and op.result not in outputs:
                replaced[op.result] = source
        modified |= bool(replaced)
        remove_ops(function, {value.producer for value in replaced if value.producer is not None})
        function.replace(replaced)
    return modified


def keep_apart(module: Module) -> bool:
    """Puts copies where a tensor would be overwritten that is still to be read; in place. Whether there are any."""
    copied = [_Plan(function).run() for function in module.functions]
    return any(copied)


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
        self.held: defaultdict[Value, list[Value]] = defaultdict(list)

    def run(self) -> bool:
        ops: list[Op] = []
        fixed = {*self.function.inputs, *self.function.outputs}
        for i, op in enumerate(self.function.ops):
            if op.name in _VIEWS and not op.operand(0).is_constant and fixed.isdisjoint([op.operand(0), op.result]):
                self._share(op.result, op.operand(0))
            elif op.name in _WRITERS and op.result not in fixed:
                slot = self._overwritten(op, fixed)
                if slot is not None and self._is_read(op.operand(slot), i):
                    ops.append(Op(Cast.op_name, [op.operand(slot)], [Value(op.operand(slot).type)], {}, op.location))
                    state_version(ops[-1])
                    op.operands[slot] = ops[-1].result
                if slot is not None:
                    self._share(op.result, op.operand(slot))
            ops.append(op)
        modified = len(ops) > len(self.function.ops)
        self.function.ops = ops
        return modified

    def _owner(self, value: Value) -> Value:
        return self.owner.get(value, value)

    def _share(self, value: Value, other: Value) -> None:
        self.owner[value] = owner = self._owner(other)
        self.held[owner].append(value)

    def _overwritten(self, op: Op, fixed: set[Value]) -> int | None:
        """The operand that the result is written over; None if none is."""
        size = _size(op.result)
        for slot in _WRITERS[op.name]:
            x = op.operand(slot)
            if not x.is_constant and x not in fixed and self.readers[x] < 2 and _size(x) == size > _SMALL:
                return slot if self.readers[self._owner(x)] < 2 else None
        return None

    def _is_read(self, value: Value, place: int) -> bool:
        """Whether another tensor in a value's memory is read at a place in the function or later."""
        owner = self._owner(value)
        return any(v is not value and self.last.get(v, -1) >= place for v in (owner, *self.held[owner]))


def _size(value: Value) -> tuple[int, int]:
    """How many open dims a tensor has, and its bytes but for them."""
    shape = value.type.shape or ()
    return shape.count(None), prod(d for d in shape if d is not None) * max(1, value.type.storage.bits // 8)
