"""How TOSA takes what the IR keeps as attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tflq.dialects.declare import Slot, Trait
from tflq.ir.types import ScalarType

__all__ = ["ConstantOperands"]


class ConstantOperands(Trait):
    """TOSA takes these as constant operands, in this order after the others: attributes, and the result's `shape`.

    Each has an element type: a scalar type, that of an operand or result, or `index` for a shape.
    """

    __slots__ = ("types",)

    def __init__(self, **types: Any) -> None:
        self.types: Final[Mapping[str, ScalarType | Slot]] = types
