"""How a float operator of TFLite becomes float operators of TOSA.

    @floating(Exp)
    def exp(op: Op, t: Tosa, x: Value) -> Value: ...

The operands come as float32: half precision is widened, and the result narrowed. Integer tensors are refused, as is any
float operator, by its name, on a target without the profile pro_fp.
"""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import TypeAlias

from tflq.dialects.declare import Operator
from tflq.errors import Refused
from tflq.ir.core import Op, Value
from tflq.ir.types import f16, f32
from tflq.tosa.lowering.floats.arithmetic import need_float
from tflq.tosa.lowering.registry import Tosa, lowering

__all__ = ["floating"]

_Floating: TypeAlias = Callable[..., Value]


def floating(*kinds: type[Operator] | UnionType) -> Callable[[_Floating], _Floating]:
    """Registers a function of an op and its operands, all float32, for classes of ops."""

    def register(function: _Floating) -> _Floating:
        @lowering(*kinds)
        def lower(op: Op, t: Tosa) -> Value:
            need_float(t, op)
            operands = [_wide(t, op, v) for v in op.operands if v is not None]
            return t.cast(function(op, t, *operands), op.result.type.storage)

        return function

    return register


def _wide(t: Tosa, op: Op, operand: Value) -> Value:
    if operand.type.storage not in (f32, f16):
        raise Refused(f"{op.short_name.upper()} of {operand.type.storage} has no form in TOSA")
    return t.cast(t.value(operand), f32)
