"""What moves elements and computes no new ones."""

from __future__ import annotations

from tflq.dialects.traits.slots import OfSlots

__all__ = ["MovesElements"]


class MovesElements(OfSlots):
    """Each element of the results is an element of these operands, or a constant around them. The other operands say
    where it goes."""

    __slots__ = ()

    def moves(self, index: int) -> bool:
        """Whether the elements of the operand at an index are moved."""
        return any(slot.index == index or (slot.variadic and index > slot.index) for slot in self.slots)
