"""The rules of shapes and fills: for each operator, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tflq.dialects.tfl.shape import BroadcastArgs, Fill, Rank, Shape
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

bits = later("reference.bits")
movement = later("reference.generic.movement")

RULES: Final[Rules] = {
    Shape: (movement.move,),
    Rank: (movement.move,),
    Fill: (movement.move,),
    BroadcastArgs: (bits.stored,),
}
