"""Common subexpression elimination: identical pure ops and equal small constants become one.

Ops are identical if their names, operands, attributes and result types are. A result that stands for a tensor of the
source model carries that tensor's name. Of an unnamed result and a named one the named one stays; two with
different names both stay, unless `keep_names` is off, and so do two that a called function returns.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from tflq.contract import Pass, PassResult
from tflq.dialects.calls import called_functions
from tflq.dialects.effects import is_pure, is_variable
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.equal import attribute_key
from tflq.ir.rewriting import remove_ops, replace_values, take_over

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
        for value in function.values():
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
        first: dict[Hashable, Op] = {}
        alike: dict[Hashable, dict[Hashable, Op]] = {}
        replacements: dict[Value, Value] = {}
        merged: set[Op] = set()
        for op in function.ops:
            if op.regions or not is_pure(op):
                continue
            operands = (op.name, *[_final(v, replacements) if v in replacements else v for v in op.operands])
            earlier = first.setdefault(operands, op)
            if earlier is op:
                continue
            known = self._known(earlier, alike.setdefault(operands, {}), op)
            if known is op:
                continue
            pairs = list(zip(known.results, op.results, strict=True))
            if any(self._clash(a, b) or (a in outputs and b in outputs) for a, b in pairs):
                continue
            for a, b in pairs:
                if b.name and take_over(a, b):
                    replacements[a] = b
                    kept, gone = b, a
                else:
                    replacements[b] = a
                    kept, gone = a, b
                if gone in outputs:
                    outputs.add(kept)
            merged.add(op)
        replace_values(module, function, replacements)
        remove_ops(function, merged)
        return bool(merged)

    def _known(self, first: Op, alike: dict[Hashable, Op], op: Op) -> Op:
        """The earlier op that `op` repeats, or itself. Keys are made only where a second op has the same operands."""
        if not alike:
            alike[_op_key(first)] = first
        return alike.setdefault(_op_key(op), op)

    def _clash(self, a: Value, b: Value) -> bool:
        return self.keep_names and bool(a.name) and bool(b.name) and a.name != b.name


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
