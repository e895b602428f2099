"""Memory that an interpreter lets operands and results share. Source: arena_planner.cc, `inplace_operator` of the
kernels."""

from __future__ import annotations

from typing import Any, Final

from tflq.dialects.declare import Slot, Trait

__all__ = ["InPlace", "View"]


class _OfSlots(Trait):
    __slots__ = ("slots",)

    def __init__(self, *slots: Any) -> None:
        self.slots: Final[tuple[Slot, ...]] = slots


class View(_OfSlots):
    """The result is in the memory of this operand."""

    __slots__ = ()


class InPlace(_OfSlots):
    """The result may be written over one of these operands, if nothing else reads it."""

    __slots__ = ()
