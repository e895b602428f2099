"""The reusable fallback (`tflq.builder`) with the casts of `quant`: `quant.dcast` of the operands, the float pattern,
`quant.qcast` of the results. `canonicalize` and `cse` remove the casts between neighbours.

The pass `dequantize-fallback` does so with every op; the float pattern is the op itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from tflq import builder as structure
from tflq.analysis.cast_cost import RealCast
from tflq.builder import Emitter, expressed
from tflq.contract import Pass, PassResult
from tflq.dialects.declare import Operator
from tflq.dialects.quant import Dcast, Qcast
from tflq.dialects.traits import Calls, Impure, Kept
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.rewriting import stand_for
from tflq.ir.types import TensorType

FloatPattern: TypeAlias = Callable[[Emitter, Sequence[Value | None], Sequence[TensorType]], Sequence[Value]]
"""Emits what computes an op in floats: takes the operands and the types of the results, gives the results."""


def through_floats(op: Op, b: Emitter, pattern: FloatPattern, *, rounding: str | None = None) -> list[Value]:
    """What an op results in, computed by a pattern for floats. Values without quantization go in and out as they are.

    `rounding` is stated on each `quant.qcast`; by default none is.
    """
    return structure.through_floats(op, _Casts(b, rounding), lambda operands, types: pattern(b, operands, types))


@dataclass(frozen=True)
class _Casts:
    """The casts of `quant`."""

    b: Emitter
    rounding: str | None

    def real(self, value: Value) -> Value:
        return self.b.emit(Dcast, [value], expressed(value.type)) if value.type.quantized else value

    def stored(self, real: Value, result: Value) -> Value:
        if not result.type.quantized:
            return real
        attributes = {} if self.rounding is None else {"rounding": self.rounding}
        return self.b.emit(Qcast, [real], result.type, **attributes)


def is_on_quantized(op: Op) -> bool:
    """Whether an op computes on quantized tensors: not a cast, and without calls, effects and state."""
    dialect = op.name.partition(".")[0]
    if dialect in ("quant", "func") or op.regions or not op.results:
        return False
    if isinstance(op, Operator) and op.has(Calls, Impure, Kept):
        return False
    return any(v is not None and v.type.quantized for v in (*op.operands, *op.results))


class DequantizeFallback(Pass):
    """Puts casts around every op that computes on quantized tensors. Ops that call functions, keep a state or hold
    regions are left as they are."""

    name: ClassVar[str] = "dequantize-fallback"
    makes: ClassVar[Literal["any"]] = "any"

    def run(self, module: Module) -> PassResult:
        modified = [self._function(function) for function in module.functions]
        return PassResult(module, any(modified))

    def _function(self, function: Function) -> bool:
        ops: list[Op] = []
        modified = False
        for op in function.ops:
            if not is_on_quantized(op):
                ops.append(op)
                continue
            modified = True
            b = Emitter(ops)
            b.location = op.location
            for new, old in zip(through_floats(op, b, _itself(op)), op.results, strict=True):
                _become(new, old)
        function.ops = ops
        return modified


def _itself(op: Op) -> FloatPattern:
    """The op on floats; of a cast between reals and quantized values, its operand."""

    def pattern(b: Emitter, operands: Sequence[Value | None], types: Sequence[TensorType]) -> Sequence[Value]:
        if isinstance(op, RealCast) and operands[0] is not None and operands[0].type == types[0]:
            return [operands[0]]
        return b.op(op.name, operands, types, op.attributes, op.info).results

    return pattern


def _become(replaced: Value, original: Value) -> None:
    """The op that makes one value results in another instead."""
    producer = replaced.producer
    assert producer is not None
    if len(producer.results) == 1:
        stand_for(replaced, original)
        return
    producer.results = [original if value is replaced else value for value in producer.results]
    original.producer = producer
