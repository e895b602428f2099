"""What moves elements and computes no new ones."""

from __future__ import annotations

from typing import Any, Final

from tflq.dialects.declare import Slot, Trait

__all__ = ["MovesElements"]


class MovesElements(Trait):
    """Each element of the results is an element of these operands, or a constant around them. The other operands say
    where it goes."""

    __slots__ = ("slots",)

    def __init__(self, *slots: Any) -> None:
        self.slots: Final[tuple[Slot, ...]] = slots

    def moves(self, index: int) -> bool:
        """Whether the elements of the operand at an index are moved."""
        return any(slot.index == index or (slot.variadic and index > slot.index) for slot in self.slots)
