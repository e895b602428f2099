"""How a float operator of TFLite becomes float operators of TOSA.

    @floating("tfl.exp")
    def exp(op: Op, t: Tosa, x: Value) -> Value: ...

The operands come as float32: half precision is widened, and the result narrowed. Integer tensors are refused, as is any
float operator, by its name, on a target without the profile pro_fp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tflq.ir.core import Op, Value
from tflq.ir.types import f16, f32
from tflq.tosa.lowering.floats.arithmetic import need_float
from tflq.tosa.lowering.registry import Refused, Tosa, lowering

__all__ = ["floating"]

_Floating: TypeAlias = Callable[..., Value]


def floating(*names: str) -> Callable[[_Floating], _Floating]:
    """Registers a function of an op and its operands, all float32, for op names."""

    def register(function: _Floating) -> _Floating:
        @lowering(*names)
        def lower(op: Op, t: Tosa) -> Value:
            kernel = op.name.removeprefix("tfl.").upper()
            need_float(t, kernel)
            operands = [_wide(t, kernel, v) for v in op.operands if v is not None]
            return t.cast(function(op, t, *operands), op.result.type.storage)

        return function

    return register


def _wide(t: Tosa, kernel: str, operand: Value) -> Value:
    if operand.type.storage not in (f32, f16):
        raise Refused(f"{kernel} of {operand.type.storage} has no form in TOSA")
    return t.cast(t.value(operand), f32)
