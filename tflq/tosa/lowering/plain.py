"""Integers and truth values of any type as int32 to compute with, and back. Narrowing wraps."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.bits import BitwiseXor
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import i1, i8, i16, i32, i64, ui8
from tflq.tosa.lowering.registry import Tosa
from tflq.tosa.lowering.rescale.integers import emit_rescale
from tflq.tosa.lowering.wide import narrow

__all__ = ["INTEGERS", "UNIT", "ordered", "plain", "sign_changed", "stored"]

INTEGERS = (i1, i8, ui8, i16, i32, i64)


UNIT = np.asarray([1 << 30], np.int64), np.asarray([30], np.int64)
"""Multiplier and shift of a RESCALE by 1."""


def plain(operand: Value, t: Tosa) -> Value:
    """An operand to compute with: integers and truth values as int32, uint8 from 0 to 255; floats as they are."""
    if operand.type.storage not in INTEGERS:
        if operand.type.storage.is_float:
            return t.value(operand)
        raise Refused(f"'{operand.name}' is {operand.type.storage}, which TOSA lacks")
    if operand.type.storage == ui8:
        return emit_rescale(t, t.value(operand), *UNIT, i32, input_zp=-128)
    return t.cast(narrow(operand, t), i32)


def ordered(operand: Value, t: Tosa) -> Value:
    """An operand to compare: as `plain`, but uint8 less 128."""
    return t.cast(t.value(operand), i32) if operand.type.storage == ui8 else plain(operand, t)


def stored(y: Value, result: Value, t: Tosa) -> Value:
    """What was computed, as an int32 or a float, in a result's type; integers wrap."""
    to = result.type.storage
    if to == i64:
        raise Refused(f"'{result.name}' is int64, which TOSA lacks")
    if to == ui8:
        return sign_changed(t.cast(y, i8), t)
    return t.cast(y, to)


def sign_changed(x: Value, t: Tosa) -> Value:
    """The same bits of an int8 but for the sign: uint8's, less 128, from int8's, and back."""
    return t.emit(BitwiseXor, [x, t.constant(np.asarray(-128), i8)])
