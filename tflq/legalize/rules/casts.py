"""The rules of casts: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.casts import Cast, Dequantize, FakeQuant, Quantize
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

unary = later("real.unary")
casts = later("reference.casts")

RULES: Final[Rules] = {
    Cast: (casts.cast,),
    Quantize: (casts.quantize, unary.quantize),
    Dequantize: (casts.dequantize,),
    FakeQuant: (unary.real_function,),
}
