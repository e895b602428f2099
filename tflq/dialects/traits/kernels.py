"""What kernels of TFLite do with quantized tensors, beside what operators mean: measured, or read in their sources."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from tflq.dialects.declare import Trait
from tflq.ir.types import ScalarType
from tflq.light import dataclass

__all__ = [
    "AsksSameScale",
    "FloatKernel",
    "HybridKernel",
    "Interpolates",
    "LacksKernel",
    "Misread",
    "Misreads",
    "NeverRuns",
    "Unbounded",
]

Misread: TypeAlias = Literal["scales", "result type", "packed", "copied", "floats"]


class Misreads(Trait):
    """Its kernel runs on tensors that it misreads:

    scales         it asks a tensor of several scales for its one, and computes with 0
    result type    it takes the result to be of its operand's type
    packed         it reads two packed int4 as one byte
    copied         it copies packed int4 under other parameters
    floats         it reads the stored integers of a constant as floats
    """

    __slots__ = ("kinds",)

    def __init__(self, *kinds: Misread) -> None:
        self.kinds: Final = frozenset(kinds)


@dataclass(frozen=True, slots=True)
class HybridKernel(Trait):
    """A kernel computes on float activations with quantized weights of these types.

    blockwise: of these also with a scale per block; scaleless: of these the kernel runs on such weights, but finds no
    scale; symmetric: of these it refuses a zero point other than 0.
    """

    weights: tuple[ScalarType, ...]
    blockwise: tuple[ScalarType, ...] = ()
    scaleless: tuple[ScalarType, ...] = ()
    symmetric: tuple[ScalarType, ...] = ()


class AsksSameScale(Trait):
    """Its kernel refuses operands of these storage types whose scale and zero point are not the result's."""

    __slots__ = ("storages",)

    def __init__(self, *storages: ScalarType) -> None:
        self.storages: Final = frozenset(storages)


class LacksKernel(Trait):
    """No kernel takes quantized tensors of these storage types."""

    __slots__ = ("storages",)

    def __init__(self, *storages: ScalarType) -> None:
        self.storages: Final = frozenset(storages)


class FloatKernel(Trait):
    """A StableHLO operator that an interpreter computes on floats, without calling a function."""


class NeverRuns(Trait):
    """No interpreter has a kernel of it, at no batch; it becomes builtins on the shapes that are stated."""


class Interpolates(Trait):
    """Its int16 kernel interpolates between the entries of a table."""


class Unbounded(Trait):
    """Its results can be infinite or not a number, or as good as that."""
