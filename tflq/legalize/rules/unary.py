"""The rules of elementwise functions: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.unary import (
    Abs,
    Ceil,
    Cos,
    Exp,
    Floor,
    Log,
    Neg,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sqrt,
    Square,
    ZerosLike,
)
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

real_unary = later("real.unary")
reference_unary = later("reference.unary")

RULES: Final[Rules] = {
    Abs: (reference_unary.absolute, real_unary.real_function),
    Ceil: (real_unary.real_function,),
    Cos: (real_unary.real_function,),
    Exp: (reference_unary.lookup, real_unary.real_function),
    Floor: (real_unary.real_function,),
    Log: (reference_unary.lookup, real_unary.real_function),
    Neg: (reference_unary.negate, real_unary.real_function),
    Round: (real_unary.real_function,),
    Rsqrt: (reference_unary.lookup, real_unary.real_function),
    Sign: (real_unary.real_function,),
    Sin: (real_unary.real_function,),
    Sqrt: (reference_unary.sqrt, real_unary.real_function),
    Square: (real_unary.real_function,),
    ZerosLike: (reference_unary.zeros_like,),
}
