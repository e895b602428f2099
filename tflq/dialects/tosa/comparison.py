"""Comparisons and choices."""

from __future__ import annotations

from tflq.dialects.declare import FLOAT, INTEGER, OneOf, Operator, operand, result
from tflq.dialects.traits.elements import Tabulable, WithinRange
from tflq.dialects.traits.types import Broadcasts
from tflq.ir.core import Value
from tflq.ir.types import i1

__all__ = ["Comparison", "Equal", "Greater", "GreaterEqual", "Select"]


class Equal(Operator, name="tosa.equal"):
    """input1 = input2."""

    __slots__ = ()
    T = OneOf(INTEGER, i1, FLOAT)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(i1)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class Greater(Operator, name="tosa.greater"):
    """input1 > input2."""

    __slots__ = ()
    T = OneOf(INTEGER, FLOAT)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(i1)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class GreaterEqual(Operator, name="tosa.greater_equal"):
    """input1 ≥ input2."""

    __slots__ = ()
    T = OneOf(INTEGER, FLOAT)
    input1: Value = operand(T)
    input2: Value = operand(T)
    output: Value = result(i1)
    traits = (Tabulable(input1, input2), Broadcasts(input1, input2, output))


class Select(Operator, name="tosa.select"):
    """on_true where the condition holds, else on_false."""

    __slots__ = ()
    T = OneOf(INTEGER, FLOAT, i1)
    condition: Value = operand(i1)
    on_true: Value = operand(T)
    on_false: Value = operand(T)
    output: Value = result(T)
    traits = (
        Tabulable(condition, on_true, on_false),
        WithinRange(on_true, on_false),
        Broadcasts(condition, on_true, on_false, output),
    )


Comparison = Equal | Greater | GreaterEqual
"""Of `input1` and `input2`."""
