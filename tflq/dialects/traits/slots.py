"""What traits of several operands and results share."""

from __future__ import annotations

from typing import Any, Final

from tflq.dialects.declare import Slot, Trait

__all__ = ["OfSlots"]


class OfSlots(Trait):
    """A trait of several operands and results."""

    __slots__ = ("slots",)

    def __init__(self, *slots: Any) -> None:
        self.slots: Final[tuple[Slot, ...]] = slots
