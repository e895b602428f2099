"""Memory that an interpreter lets operands and results share. Source: arena_planner.cc, `inplace_operator` of the
kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tflq.dialects.declare import Slot, Trait

__all__ = ["InPlace", "View"]


@dataclass(frozen=True, slots=True)
class View(Trait):
    """The result is in the memory of the first operand."""


class InPlace(Trait):
    """The result may be written over one of these operands, if nothing else reads it."""

    __slots__ = ("slots",)

    def __init__(self, *slots: Any) -> None:
        self.slots: Final[tuple[Slot, ...]] = slots
