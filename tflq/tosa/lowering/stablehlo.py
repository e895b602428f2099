"""STABLEHLO_COMPOSITE: what its function does, in place. Kernel: stablehlo_composite.cc."""

from __future__ import annotations

from tflq.dialects.tfl.stablehlo import StablehloComposite
from tflq.ir.core import Value
from tflq.tosa.lowering.control import inlined
from tflq.tosa.lowering.registry import Tosa, lowering

__all__: list[str] = []


@lowering(StablehloComposite)
def composite(op: StablehloComposite, t: Tosa) -> list[Value]:
    return inlined(op, t, op.decomposition_subgraph_index)
