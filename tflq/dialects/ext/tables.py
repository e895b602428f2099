"""Tables of more entries than TOSA's."""

from __future__ import annotations

from tflq.dialects.declare import OneOf, Operator, operand, result
from tflq.dialects.traits.elements import Role, Tabulable, WithinRange
from tflq.dialects.traits.types import Broadcasts, SameShape
from tflq.ir.core import Value
from tflq.ir.types import i8, i16, i32, ui8

__all__ = ["Table2D", "Table16Bit"]


class Table16Bit(Operator, name="ext.table_16bit"):
    """output = table[input + 32768], of 65536 entries."""

    __slots__ = ()
    T = OneOf(i8, ui8, i16, i32)
    input: Value = operand(i16)
    table: Value = operand(T, constant=True)
    output: Value = result(T)
    traits = (Role("looked_up"), SameShape(input, output))


class Table2D(Operator, name="ext.table_2d"):
    """output = table[256 * (input1 - least of its type) + (input2 - least of its type)], of 65536 entries; the
    operands broadcast."""

    __slots__ = ()
    T = OneOf(i8, ui8)
    input1: Value = operand(OneOf(i8, ui8))
    input2: Value = operand(OneOf(i8, ui8))
    table: Value = operand(T, constant=True)
    output: Value = result(T)
    traits = (Tabulable(input1, input2), WithinRange(table), Role("looked_up"), Broadcasts(input1, input2, output))
