"""The reusable fallback: an op on quantized tensors as casts around what computes it in floats.

The structure is the `quant` dialect's specification's ("overcoming limited quantization support"): what an integer
algorithm does not cover dequantizes its operands, takes the pattern for floats, and quantizes the results. What the
casts are is the stage's to say: `quant.dcast` and `quant.qcast` between ops of any dialect, those of the integer form
in legalization.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from tflq.ir.core import Op, Value
from tflq.ir.types import QuantizedType, TensorType

__all__ = ["Casts", "Pattern", "expressed", "through_floats"]

Pattern: TypeAlias = Callable[[Sequence[Value | None], Sequence[TensorType]], Sequence[Value]]
"""Emits what computes an op of its operands in floats; the types are those of the results. Its results, one each."""


class Casts(Protocol):
    """How values go into floats and back; those without quantization as they are."""

    def real(self, value: Value) -> Value:
        """An operand, in float if it is quantized."""

    def stored(self, made: Value, result: Value) -> Value:
        """What stands for a result of the op, of what was computed for it in float."""


def through_floats(op: Op, casts: Casts, pattern: Pattern) -> list[Value]:
    """What an op results in, computed by a pattern for floats."""
    operands = [None if value is None else casts.real(value) for value in op.operands]
    made = pattern(operands, [expressed(value.type) for value in op.results])
    return [casts.stored(new, old) for old, new in zip(op.results, made, strict=True)]


def expressed(type: TensorType) -> TensorType:
    """The type of what the values of a quantized type express; any other as it is."""
    element: QuantizedType = type.element  # type: ignore[assignment]
    return type.with_element(element.expressed) if type.quantized else type
