"""Where the elements of a result come from, and what the result is called."""

from __future__ import annotations

from tflq.dialects.declare import Trait
from tflq.dialects.traits.slots import OfSlots
from tflq.light import dataclass

__all__ = ["Role", "Tabulable", "WithinRange"]


class Tabulable(OfSlots):
    """Elementwise arithmetic of integers, of which a table of all values may be made: each element of the result
    follows from the elements of these operands at its place; they broadcast. Another operand is a table already.

    Not so functions of floats, whose last bit is the kernel's, and bitwise ops, which lowerings join with others.
    """

    __slots__ = ()


class WithinRange(OfSlots):
    """Each element of the result is an element of one of these operands, so its range is theirs."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Role(Trait):
    """What the result is to the operator that it is a part of, in the names of tensors: `conv1/accumulator`."""

    text: str
