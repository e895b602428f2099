"""How one op of the integer form becomes operators of TOSA 1.0.

    @lowering("tosa.add")
    def add(op: Op, t: Tosa) -> Value | Sequence[Value]: ...

`t.value(operand)` is the operand in the form being built: signed, uint8 less 128. `t.<operator>(...)` emits operators.
What the target has not, or TOSA itself, is `Refused` with the reason; all refusals of a model are reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tflq.ir.core import Op, Value
from tflq.registering import registering
from tflq.tosa.lowering.context import Refused, Tosa

__all__ = ["LOWERINGS", "Lowering", "Refused", "Tosa", "lowering"]

Lowering: TypeAlias = Callable[[Op, Tosa], Value | Sequence[Value]]
LOWERINGS: dict[str, Lowering] = {}
"""The lowering of each op that has a form in TOSA."""

lowering = registering(LOWERINGS)
"""Registers a lowering for op names."""
