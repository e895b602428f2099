"""The rules of bits: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.bits import Bitcast, BitwiseXor, RightShift
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

bits = later("reference.bits")

RULES: Final[Rules] = {
    BitwiseXor: (bits.stored,),
    RightShift: (bits.stored,),
    Bitcast: (bits.bitcast,),
}
