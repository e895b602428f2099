"""lower-quant-ops: `quant.qcast` and `quant.dcast` become arithmetic on the stored integers and `quant.scast`.

    dialect=core    arith, math, tensor, shape and linalg, as the `quant` dialect specifies (`lower_quant_core`)
    dialect=tosa    tosa where it has the op, rounding and saturating as TFLite's kernels (`lower_quant_tosa`)

`rounding` is that of the quotient in casts that say none themselves. Without one the core lowering is the
specification's: towards zero, of the sum with the zero point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tflq.builder import Emitter
from tflq.contract import Pass, PassResult
from tflq.dialects.quant.casts import Dcast, Qcast
from tflq.ir.core import Module, Op, Value
from tflq.ir.rewriting import stand_for
from tflq.passes.lower_quant_core import dequantize, quantize
from tflq.passes.lower_quant_tosa import lowered

__all__ = ["LowerQuantOps"]


@dataclass(frozen=True)
class LowerQuantOps(Pass):
    """Lowers every quant.qcast and quant.dcast, also inside of other ops. UnsupportedError for an expressed type of 8
    bits."""

    name: ClassVar[str] = "lower-quant-ops"
    makes: ClassVar[Literal["any"]] = "any"
    dialect: Literal["core", "tosa"] = "core"
    rounding: Literal["", "half_even", "half_away", "half_up", "toward_zero"] = ""

    def run(self, module: Module) -> PassResult:
        modified = False
        for function in module.functions:
            ops = self._ops(function.ops)
            modified |= ops is not function.ops
            function.ops = ops
        return PassResult(module, modified)

    def _ops(self, ops: list[Op]) -> list[Op]:
        """The ops with their casts lowered; the same list if there are none."""
        made: list[Op] = []
        changed = False
        for op in ops:
            if isinstance(op, (Qcast, Dcast)):
                stand_for(self._lowered(op, made), op.result)
                changed = True
                continue
            for region in op.regions:
                for block in region.blocks:
                    inside = self._ops(block.ops)
                    changed |= inside is not block.ops
                    block.ops = inside
            made.append(op)
        return made if changed else ops

    def _lowered(self, op: Qcast | Dcast, ops: list[Op]) -> Value:
        if self.dialect == "tosa":
            return lowered(op, ops, self.rounding or "half_away")
        b = Emitter(ops)
        b.location = op.location
        return quantize(b, op, self.rounding or None) if isinstance(op, Qcast) else dequantize(b, op)
