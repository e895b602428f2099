"""Memory that an interpreter lets operands and results share. Source: arena_planner.cc, `inplace_operator` of the
kernels."""

from __future__ import annotations

from tflq.dialects.traits.slots import OfSlots

__all__ = ["InPlace", "View"]


class View(OfSlots):
    """The result is in the memory of this operand."""

    __slots__ = ()


class InPlace(OfSlots):
    """The result may be written over one of these operands, if nothing else reads it."""

    __slots__ = ()
