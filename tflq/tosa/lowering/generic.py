"""What is lowered alike, whatever its family."""

from __future__ import annotations

from tflq.dialects.quant.casts import Scast
from tflq.dialects.tosa.movement import Identity
from tflq.ir.core import Value
from tflq.tosa.lowering.registry import Tosa, lowering

__all__: list[str] = []


@lowering(Scast, Identity)
def same(op: Scast | Identity, t: Tosa) -> Value:
    """The same stored integers."""
    return t.value(op.input)
