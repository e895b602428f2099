"""inline-regions: every `quant.region` becomes the ops inside of it again, wherever it stands.

A port with parameters has casts: a `quant.qcast` to its type and a `quant.dcast` back. Of statistics and widths, which
are no parameters yet, nothing is left, unless `annotations=true`: then a calibrated port has a `quant.stats`. A
`quant.rescale` becomes the casts of what it gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tflq.builder import Emitter
from tflq.contract import Pass, PassResult
from tflq.dialects.quant.casts import Dcast, Qcast
from tflq.dialects.quant.regions import Region, Rescale
from tflq.dialects.quant.statistics import Stats
from tflq.ir.core import Module, Op, Value, walk
from tflq.ir.rewriting import replace_values
from tflq.ir.types import CalibratedQuantizedType, ElementType, is_quantized

__all__ = ["InlineRegions", "body", "inlined", "through"]


@dataclass(frozen=True)
class InlineRegions(Pass):
    """Replaces regions by their ops, with casts where a port is quantized."""

    name: ClassVar[str] = "inline-regions"
    annotations: bool = False

    def run(self, module: Module) -> PassResult:
        modified = False
        for function in module.functions:
            replacements: dict[Value, Value] = {}
            ops = self._ops(function.ops, replacements)
            if ops is not function.ops or replacements:
                function.ops = ops
                replace_values(module, function, replacements)
                modified = True
        return PassResult(module, modified)

    def _ops(self, ops: list[Op], replacements: dict[Value, Value]) -> list[Op]:
        """The ops with regions inlined, also those inside of others and of regions; the same list if there are none
        among them."""
        b = Emitter()
        changed = False
        for op in ops:
            for block in (block for region in op.regions for block in region.blocks):
                block.ops = self._ops(block.ops, replacements)
            if isinstance(op, Region):
                replacements |= inlined(op, b, annotations=self.annotations)
            elif isinstance(op, Rescale):
                replacements[op.output] = through(b, op.input, op.target)
            else:
                b.ops.append(op)
                continue
            changed = True
        return b.ops if changed else ops


def inlined(region: Region, b: Emitter, *, annotations: bool = False) -> dict[Value, Value]:
    """Emits a region's ops; what its results become."""
    b.location = region.location
    given = [
        through(b, value, spec, annotations=annotations)
        for value, spec in zip(region.inputs, region.input_specs, strict=True)
    ]
    ops, returned = body(region, given)
    b.ops.extend(ops)
    return {
        result: through(b, value, spec, annotations=annotations)
        for result, value, spec in zip(region.results, returned, region.output_specs, strict=True)
    }


def body(region: Region, given: list[Value]) -> tuple[list[Op], list[Value]]:
    """A region's ops without its end, on other values than its arguments, and what it returns.

    The ops are the region's own: it is not to be used any more.
    """
    block = region.regions[0].block
    known = dict(zip(block.arguments, given, strict=True))
    for op in walk(block.ops):
        op.operands = [value and known.get(value, value) for value in op.operands]
    return block.ops[:-1], [value for value in block.ops[-1].operands if value is not None]


def through(b: Emitter, value: Value, spec: ElementType, *, annotations: bool = False) -> Value:
    """A value, rounded to what a quantized type expresses; as it is for any other."""
    if is_quantized(spec):
        stored = b.emit(Qcast, [value], value.type.with_element(spec))
        return b.emit(Dcast, [stored], value.type)
    if annotations and isinstance(spec, CalibratedQuantizedType):
        stats = np.array([spec.minimum, spec.maximum], spec.expressed.dtype if spec.expressed.numpy else np.float32)
        return b.emit(Stats, [value], value.type, layerStats=stats)
    return value
