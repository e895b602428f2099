"""Which version of an operator its types and options need. Source: tflite/tools/versioning/op_version.cc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tflq.dialects.declare import Attribute, Slot
from tflq.ir.core import Op, Value
from tflq.ir.types import ScalarType, Shape

__all__ = ["Needs"]


class Needs:
    """A version, and what needs it: the element type of a value, an attribute that is not 0, a rank of the first
    operand from `rank` on, operands of several shapes and of a rank from `broadcast_rank` on."""

    __slots__ = ("attribute", "broadcast_rank", "element", "rank", "slot", "version")

    def __init__(
        self,
        version: int,
        slot: Any = None,
        element: ScalarType | None = None,
        *,
        attribute: Any = None,
        rank: int = 0,
        broadcast_rank: int = 0,
    ) -> None:
        self.version = version
        self.slot: Final[Slot | None] = slot
        self.element = element
        self.attribute: Final[Attribute | None] = attribute
        self.rank = rank
        self.broadcast_rank = broadcast_rank

    def holds(self, op: Op) -> bool:
        """Whether an op needs the version."""
        if self.rank:
            first = op.operands[0]
            return first is not None and _rank(first.type.shape) >= self.rank
        if self.broadcast_rank:
            shapes = [v.type.shape for v in op.operands if v is not None]
            return len(set(shapes)) > 1 and max(map(_rank, shapes)) >= self.broadcast_rank
        if self.attribute is not None:
            return bool(op.attributes.get(self.attribute.key))
        slot = self.slot
        assert slot is not None
        values: Sequence[Value | None] = op.results if slot.is_result else op.operands
        value = values[slot.index] if slot.index < len(values) else None
        return value is not None and value.type.storage == self.element


def _rank(shape: Shape) -> int:
    return len(shape or ())
