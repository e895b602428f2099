"""Lowerings that are one operator each."""

from __future__ import annotations

from tflq.ir.core import Op, Value
from tflq.tosa.registry import Tosa, lowering

__all__: list[str] = []


@lowering("quant.scast", "tosa.identity")
def same(op: Op, t: Tosa) -> Value:
    """The same stored integers."""
    return t.value(op.operand(0))


@lowering("tosa.add", "tosa.sub")
def sum_or_difference(op: Op, t: Tosa) -> Value:
    x, y = t.values(op.operands)
    return t.binary(op.name.removeprefix("tosa."), x, y)
