"""The reusable fallback: an op on quantized tensors as casts around what computes it in floats.

The structure is the `quant` dialect's specification's ("overcoming limited quantization support"): what an integer
algorithm does not cover dequantizes its operands with `quant.dcast`, takes the pattern for floats, and quantizes the
results with `quant.qcast`. The casts between neighbours are simplified away by canonicalize and cse.

`dequantize-fallback` is the pass that does so with every op, whose float pattern is the op itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Literal, TypeAlias

from tflq.builder import Emitter
from tflq.contract import Pass, PassResult
from tflq.dialects.declare import Operator
from tflq.dialects.traits.effects import Calls, Impure, Kept
from tflq.ir.core import Function, Module, Op, Value
from tflq.ir.rewriting import stand_for
from tflq.ir.types import QuantizedType, TensorType

__all__ = ["DequantizeFallback", "FloatPattern", "expressed", "is_on_quantized", "through_floats"]

FloatPattern: TypeAlias = Callable[[Emitter, Sequence[Value | None], Sequence[TensorType]], Sequence[Value]]
"""Emits what computes an op of its operands in floats; the types are those of the results. Its results, one each."""

_CASTS: Final = frozenset(
    {"tfl.quantize", "tfl.dequantize", "stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"}
)


def through_floats(op: Op, b: Emitter, pattern: FloatPattern, *, rounding: str | None = None) -> list[Value]:
    """What an op results in, computed by a pattern for floats. Values without quantization go in and out as they are.

    `rounding` is stated on each `quant.qcast`; by default none is.
    """
    operands = [v if v is None or not v.type.quantized else dequantized(b, v) for v in op.operands]
    made = pattern(b, operands, [expressed(value.type) for value in op.results])
    return [
        quantized(b, new, old.type, rounding) if old.type.quantized else new
        for old, new in zip(op.results, made, strict=True)
    ]


def expressed(type: TensorType) -> TensorType:
    """The type of what the values of a quantized type express; any other as it is."""
    element: QuantizedType = type.element  # type: ignore[assignment]
    return type.with_element(element.expressed) if type.quantized else type


def dequantized(b: Emitter, x: Value) -> Value:
    return b.emit("quant.dcast", [x], expressed(x.type))


def quantized(b: Emitter, x: Value, type: TensorType, rounding: str | None = None) -> Value:
    attributes = {} if rounding is None else {"rounding": rounding}
    return b.emit("quant.qcast", [x], type, **attributes)


def is_on_quantized(op: Op) -> bool:
    """Whether an op computes on quantized tensors: it is no cast of them, calls nothing, has no effect and no state."""
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
        modified = False
        for function in module.functions:
            modified |= self._function(function)
        return PassResult(module, modified)

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
    """The op on floats; a cast between reals and quantized values is none."""

    def pattern(b: Emitter, operands: Sequence[Value | None], types: Sequence[TensorType]) -> Sequence[Value]:
        if op.name in _CASTS and operands[0] is not None and operands[0].type == types[0]:
            return [operands[0]]
        return b.op(op.name, operands, types, op.attributes, op.info).results

    return pattern


def _become(made: Value, original: Value) -> None:
    """The op that makes one value results in another instead."""
    producer = made.producer
    assert producer is not None
    if len(producer.results) == 1:
        stand_for(made, original)
        return
    producer.results = [original if value is made else value for value in producer.results]
    original.producer = producer
