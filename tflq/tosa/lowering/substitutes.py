"""Equals of operators that a target lacks, by operators that it has.

    cast       an int32 to fewer bits: RESCALE by 1; where it may wrap, of the low bits, shifted to the top and back
    bitwise    an int8 and a constant: TABLE
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.dialects.tosa.elementwise import BitwiseAnd, BitwiseOr, BitwiseXor
from tflq.dialects.tosa.movement import Cast, Rescale, Table
from tflq.ir.core import Op, Value
from tflq.ir.types import i8, i16, i32
from tflq.tosa.lowering.context import Tosa

Substitute: TypeAlias = Callable[[Any, Tosa], Value | None]
_SUBSTITUTES: Final[dict[type[Op], Substitute]] = {}


def substitute(op: Op, t: Tosa) -> Value | None:
    """What stands for an operator that the target lacks; None if it has it, or nothing does. An operator whose place
    is taken is dead."""
    function = _SUBSTITUTES.get(type(op))
    if function is None:
        return None
    operands = [v.type.storage for v in op.operands if v is not None]
    if t.target.takes(op.name.removeprefix("tosa."), operands, [v.type.storage for v in op.results]):
        return None
    return function(op, t)


def _instead(*kinds: type[Op]) -> Callable[[Substitute], Substitute]:
    """Enters a function as the substitute of operators."""

    def enter(function: Substitute) -> Substitute:
        _SUBSTITUTES.update(dict.fromkeys(kinds, function))
        return function

    return enter


@_instead(Cast)
def narrowed(op: Cast, t: Tosa) -> Value | None:
    x, to = op.input, op.result.type.storage
    if x.type.storage != i32 or to not in (i8, i16):
        return None
    low, high = t.ranges.of(x)
    above = 0 if to.minimum <= low and high <= to.maximum else 32 - to.bits
    if above:
        x = t.logical_left_shift(x, t.constant(above))
    return t.emit(
        Rescale,
        [x],
        to,
        multiplier=np.asarray([1 << 30], np.int32),
        shift=np.asarray([30 + above], np.int8),
        input_zp=0,
        output_zp=0,
        rounding_mode="SINGLE_ROUND",
        scale32=True,
        per_channel=False,
    )


@_instead(BitwiseAnd, BitwiseOr, BitwiseXor)
def tabulated(op: BitwiseAnd | BitwiseOr | BitwiseXor, t: Tosa) -> Value | None:
    x, y = op.input1, op.input2
    if x.is_constant:
        x, y = y, x
    if not y.is_constant or x.type.storage != i8 or y.array.size != 1:
        return None
    function = {BitwiseAnd: np.bitwise_and, BitwiseOr: np.bitwise_or, BitwiseXor: np.bitwise_xor}[type(op)]
    entries = function(np.arange(-128, 128, dtype=np.int8), y.array.reshape(()))
    return t.reshape(t.emit(Table, [x, t.constant(entries, i8)]), op.result.type.shape or ())
