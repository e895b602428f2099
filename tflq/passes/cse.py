"""Common subexpression elimination: identical pure ops and equal small constants become one.

Ops are identical if their names, operands, attributes and result types are. A result that stands for a tensor of the
source model carries that tensor's name. Of an unnamed result and a named one the named one stays; two with
different names both stay, unless `keep_names` is off, and so do two that a called function returns.

An op inside of another is merged with one of the same block, or with one before what holds it. What is in a
`quant.region` stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import ClassVar

from tflq.contract import Pass, PassResult
from tflq.dialects.calls import called_functions
from tflq.dialects.effects import is_pure, is_variable, own_blocks, reachable
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.equal import attribute_key
from tflq.ir.rewriting import remove_ops, replace_values, take_over
from tflq.light import dataclass, field

__all__ = ["CommonSubexpressionElimination"]

CONSTANT_LIMIT = 4096
"""Bytes up to which constants are compared by content; larger ones only if they share a buffer."""


@dataclass(frozen=True)
class CommonSubexpressionElimination(Pass):
    """Merges identical pure ops and equal small constants."""

    name: ClassVar[str] = "cse"
    keep_names: bool = True

    def run(self, module: Module) -> PassResult:
        modified, called = False, set(called_functions(module))
        for function in module.functions:
            modified |= self._constants(module, function)
            modified |= self._ops(module, function, set(function.outputs) if function in called else set())
        return PassResult(module, modified)

    def _constants(self, module: Module, function: Function) -> bool:
        first: dict[Hashable, Value] = {}
        replacements: dict[Value, Value] = {}
        for value in _read(function):
            if not value.is_constant or is_variable(value):
                continue
            key = _constant_key(value)
            known = first.setdefault(key, value)
            if known is value or self._clash(known, value):
                continue
            if value.name and not known.name:
                first[key], known, value = value, value, known
            replacements[value] = known
        replace_values(module, function, replacements)
        return bool(replacements)

    def _ops(self, module: Module, function: Function, outputs: set[Value]) -> bool:
        merging = _Merging(self._clash, outputs)
        merging.block(function.ops)
        replace_values(module, function, merging.replacements)
        remove_ops(function, merging.merged)
        return bool(merging.merged)

    def _clash(self, a: Value, b: Value) -> bool:
        return self.keep_names and bool(a.name) and bool(b.name) and a.name != b.name


@dataclass
class _Merging:
    """Which ops repeat one that comes before. `first`: ops by name and operands; `alike`: where several have the same,
    by all else. `outputs`: values of which no two may become one."""

    clash: Callable[[Value, Value], bool]
    outputs: set[Value]
    replacements: dict[Value, Value] = field(default_factory=dict)
    merged: set[Op] = field(default_factory=set)
    first: dict[Hashable, Op] = field(default_factory=dict)
    alike: dict[Hashable, dict[Hashable, Op]] = field(default_factory=dict)

    def block(self, ops: Sequence[Op]) -> None:
        for op in ops:
            if op.regions:
                self._inside(op)
            elif op.results and is_pure(op):
                self._op(op)

    def _inside(self, op: Op) -> None:
        """What is defined before an op holds inside of it, not what is inside behind it. An op on constants alone is
        not merged with one outside: the block would read a value that it does not read yet."""
        before = self.first, self.alike
        reading = {key: o for key, o in self.first.items() if any(v and not v.is_constant for v in o.operands)}
        for block in own_blocks(op):
            self.first = dict(reading)
            self.alike = {key: dict(ops) for key, ops in before[1].items() if key in reading}
            self.block(block.ops)
        self.first, self.alike = before

    def _op(self, op: Op) -> None:
        replacements = self.replacements
        operands = (op.name, *[_final(v, replacements) if v in replacements else v for v in op.operands])
        earlier = self.first.setdefault(operands, op)
        if earlier is op:
            return
        known = self._known(earlier, self.alike.setdefault(operands, {}), op)
        if known is op:
            return
        pairs = list(zip(known.results, op.results, strict=True))
        if any(self.clash(a, b) or (a in self.outputs and b in self.outputs) for a, b in pairs):
            return
        for a, b in pairs:
            self._merge(a, b)
        self.merged.add(op)

    def _merge(self, a: Value, b: Value) -> None:
        kept, gone = (b, a) if b.name and take_over(a, b) else (a, b)
        self.replacements[gone] = kept
        if gone in self.outputs:
            self.outputs.add(kept)

    def _known(self, first: Op, alike: dict[Hashable, Op], op: Op) -> Op:
        """The earlier op that `op` repeats, or itself. Keys are made only where a second op has the same operands."""
        if not alike:
            alike[_op_key(first)] = first
        return alike.setdefault(_op_key(op), op)


def _read(function: Function) -> Iterable[Value]:
    """The values that a function's ops read and that it returns, in order, and once."""
    found: list[Value | None] = [v for op in reachable(function.ops) for v in (*op.operands, *op.intermediates)]
    return [value for value in dict.fromkeys((*found, *function.outputs)) if value is not None]


def _constant_key(value: Value) -> Hashable:
    buffer = value.buffer
    info = attribute_key(value.info) if value.info else None
    if buffer is None or buffer.data.size > CONSTANT_LIMIT or buffer.external:
        return (value.type, id(buffer), info)
    return (value.type, buffer.data.tobytes(), info)


def _final(value: Value | None, replacements: dict[Value, Value]) -> Value | None:
    while value is not None and value in replacements:
        value = replacements[value]
    return value


def _op_key(op: Op) -> Hashable:
    """What two ops of one name and the same operands must share to be the same."""
    return (
        tuple(op.intermediates),
        attribute_key(op.attributes),
        attribute_key(op.info),
        tuple(result.type for result in op.results),
    )
