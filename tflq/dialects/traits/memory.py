"""Memory that an interpreter gives operands and results: which of them share it, and when their size is known. Source:
arena_planner.cc, `inplace_operator` of the kernels, SetTensorToDynamic and SetTensorToPersistentRo in the kernels."""

from __future__ import annotations

from tflq.dialects.declare import Trait
from tflq.dialects.traits.slots import OfSlots

__all__ = ["ComputedEarly", "InPlace", "KeptIfConstant", "SizedBy", "View"]


class View(OfSlots):
    """The result is in the memory of this operand."""

    __slots__ = ()


class InPlace(OfSlots):
    """The result may be written over one of these operands, if nothing else reads it."""

    __slots__ = ()


class SizedBy(OfSlots):
    """The size of its results follows from the values of these operands: where they are not known before a run, the
    results have no memory until then."""

    __slots__ = ()


class KeptIfConstant(OfSlots):
    """The result is computed once, and keeps its memory, where this operand is a constant."""

    __slots__ = ()


class ComputedEarly(Trait):
    """Its kernel computes the results before a run where all operands are known then; `always`: whatever they are."""

    __slots__ = ("always",)

    def __init__(self, always: bool = False) -> None:
        self.always = always
