"""Canonicalization: casts that undo each other disappear.

    qcast(dcast(q)) → q    if the quantized types are equal: (q - z)·s / s + z is q again
    dcast(qcast(x)) → x    only with `real_semantics`, since it removes a rounding that the interpreter does
    scast(scast(x)) → x    if the outer types are equal
    cast(x) → x            if the types are equal

The sources are the canonicalization sections of the `quant` dialect. A function's output keeps its name: where
folding would give it another tensor's name, the casts stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tflq.dialects.calls import called_functions
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.rewriting import remove_ops, replace_values, take_over
from tflq.passes.contract import Pass, PassResult

__all__ = ["Canonicalize"]

_CASTS = frozenset({"quant.scast", "tfl.cast", "tosa.cast", "tosa.identity"})


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Removes casts that undo each other or do nothing."""

    name: ClassVar[str] = "canonicalize"
    real_semantics: bool = False

    def run(self, module: Module) -> PassResult:
        modified, called = False, set(called_functions(module))
        for function in module.functions:
            modified |= self._function(module, function, function in called)
        return PassResult(module, modified)

    def _function(self, module: Module, function: Function, called: bool) -> bool:
        replacements: dict[Value, Value] = {}
        folded: set[Op] = set()
        outputs = set(function.outputs)
        for op in function.ops:
            source = self._source(op, replacements)
            if source is None:
                continue
            returned = op.result in outputs
            if called and returned and not _may_return(source, outputs):
                continue
            if op.result.name and take_over(source, op.result):
                replacements[source] = op.result
                if source in outputs:
                    outputs.add(op.result)
            elif returned and op.result.name and op.result.name != source.name:
                continue
            else:
                replacements[op.result] = source
                if returned:
                    outputs.add(source)
            folded.add(op)
        replace_values(module, function, replacements)
        remove_ops(function, folded)
        return bool(folded)

    def _source(self, op: Op, replacements: dict[Value, Value]) -> Value | None:
        """The value that the cast's result equals, if it does."""
        inverse = self._inverse(op.name)
        if inverse is None and op.name not in _CASTS:
            return None
        operand = _final(op.operand(0), replacements)
        if op.name in _CASTS and operand.type == op.result.type:
            return operand
        producer = operand.producer
        if inverse is None or producer is None or producer.name != inverse:
            return None
        source = _final(producer.operand(0), replacements)
        return source if source.type == op.result.type else None

    def _inverse(self, name: str) -> str | None:
        if name == "quant.qcast":
            return "quant.dcast"
        if name == "quant.dcast" and self.real_semantics:
            return "quant.qcast"
        return "quant.scast" if name == "quant.scast" else None


def _may_return(source: Value, outputs: set[Value]) -> bool:
    """Whether a function that is called may return the source as it is: of an argument, or of a value that it returns
    twice, interpreters of control flow take no copy.
    """
    return source.producer is not None and source not in outputs


def _final(value: Value, replacements: dict[Value, Value]) -> Value:
    while value in replacements:
        value = replacements[value]
    return value
