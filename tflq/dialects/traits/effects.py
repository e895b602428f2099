"""What an operator does beside computing its results, and which functions it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tflq.dialects.declare import Attribute, Slot, Trait
from tflq.ir.core import Op
from tflq.light import dataclass

__all__ = ["Atomic", "Calls", "ComputesInFloat", "Impure", "Kept", "Recurrent", "Undescribed", "Unquantized"]


class Atomic(Trait):
    """It is one unit to passes: what is inside of it stays as it is until it is inlined."""


class Impure(Trait):
    """It has an effect beside its results, or results that differ from run to run: it is neither removed nor merged."""


class Calls(Trait):
    """It runs functions of its module; these attributes name them by index.

    inputs: the operands that it copies to the functions' arguments, as it copies their results to its own; none if the
    functions say only how to combine elements.
    """

    __slots__ = ("attributes", "inputs")

    def __init__(self, *attributes: Any, inputs: Any = None) -> None:
        self.attributes: Final[tuple[Attribute, ...]] = attributes
        self.inputs: Final[Slot | None] = inputs

    def called(self, op: Op) -> Iterator[tuple[str, int]]:
        """The functions that an op names: the attribute and the index."""
        for attribute in self.attributes:
            stated = op.attributes.get(attribute.key)
            indices = () if stated is None else (stated,) if isinstance(stated, int) else stated
            yield from ((attribute.key, int(index)) for index in indices)


class ComputesInFloat(Trait):
    """Its reference kernel computes in float on integers, too."""


@dataclass(frozen=True, slots=True)
class Kept(Trait):
    """It keeps its quantized tensors in the integer form; `reason` says why."""

    reason: str


class Recurrent(Trait):
    """It keeps a state in variable tensors, which `reset_all_variables()` resets."""


@dataclass(frozen=True, slots=True)
class Unquantized(Trait):
    """It has no quantized signature; `reason` says why none of its tensors holds numbers that could be scaled."""

    reason: str


class Undescribed(Trait):
    """Its tensors say what its options say: a file may leave the options out."""
