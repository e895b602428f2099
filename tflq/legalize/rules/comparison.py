"""The rules of comparisons, logic and choices: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.comparison import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
    Select,
    SelectV2,
    Where,
)
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

real_comparison = later("real.comparison")
reference_comparison = later("reference.comparison")
movement = later("reference.generic.movement")

RULES: Final[Rules] = {
    Equal: (reference_comparison.compare, real_comparison.compare),
    NotEqual: (reference_comparison.compare, real_comparison.compare),
    Greater: (reference_comparison.compare, real_comparison.compare),
    GreaterEqual: (reference_comparison.compare, real_comparison.compare),
    Less: (reference_comparison.compare, real_comparison.compare),
    LessEqual: (reference_comparison.compare, real_comparison.compare),
    Select: (movement.move,),
    SelectV2: (movement.move,),
    Where: (reference_comparison.where,),
}
