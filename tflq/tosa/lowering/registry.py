"""How one op of the integer form becomes operators of TOSA 1.0.

    @lowering(Add)
    def add(op: Add, t: Tosa) -> Value | Sequence[Value]: ...

`t.value(operand)` is the operand in the form being built: signed, uint8 less 128. `t.<operator>(...)` emits operators.
What the target or TOSA itself lacks is `Refused`, with a clause such as "TOSA has no 64-bit division"; all refusals of
a model are reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from tflq.dialects.quant.casts import Scast
from tflq.dialects.tfl.control import Custom
from tflq.dialects.tosa.movement import Identity
from tflq.errors import Refused
from tflq.ir.core import Op, Value
from tflq.registering import Registry
from tflq.tosa.lowering.context import Tosa

__all__ = ["Lowering", "Tosa", "lowered", "lowering"]

Lowering: TypeAlias = Callable[[Any, Tosa], Value | Sequence[Value]]
lowering: Final[Registry[Lowering]] = Registry("tflq.tosa.lowering")
"""The lowering of each op that has a form in TOSA."""


@lowering(Scast, Identity)
def same(op: Scast | Identity, t: Tosa) -> Value:
    """The same stored integers."""
    return t.value(op.input)


def lowered(op: Op, t: Tosa) -> Value | Sequence[Value]:
    """What an op becomes. Refused if it has no form in TOSA."""
    function = lowering.get(type(op))
    if function is None:
        if isinstance(op, Custom):
            remedy = "convert the part before it (--cut-before-custom), or give a rule for it (--rules FILE.py)"
            raise Refused(f"TOSA has no form of the custom operator '{op.code}'", remedy)
        raise Refused(f"TOSA has no form of {op.name} yet")
    return function(op, t)
