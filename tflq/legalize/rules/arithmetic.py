"""The rules of elementwise arithmetic: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.arithmetic import (
    Add,
    AddN,
    Atan2,
    Div,
    FloorDiv,
    FloorMod,
    Maximum,
    Minimum,
    Mul,
    Pow,
    SquaredDifference,
    Sub,
)
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

arithmetic = later("real.arithmetic.arithmetic")
functions = later("real.arithmetic.functions")
with_number = later("real.arithmetic.with_number")
division = later("reference.arithmetic.division")
elementwise = later("reference.arithmetic.elementwise")

RULES: Final[Rules] = {
    Add: (elementwise.add, arithmetic.add),
    Sub: (elementwise.add, arithmetic.add),
    Mul: (elementwise.mul, arithmetic.mul),
    Div: (division.div, arithmetic.div),
    FloorDiv: (division.floor_division, with_number.function_with_a_number),
    FloorMod: (division.floor_division, with_number.function_with_a_number),
    Pow: (functions.function_of_two, with_number.function_with_a_number),
    SquaredDifference: (elementwise.squared_difference, functions.function_of_two, arithmetic.squared_difference),
    Maximum: (elementwise.maximum_minimum, arithmetic.maximum_minimum),
    Minimum: (elementwise.maximum_minimum, arithmetic.maximum_minimum),
    Atan2: (functions.function_of_two, with_number.function_with_a_number),
    AddN: (functions.add_n,),
}
