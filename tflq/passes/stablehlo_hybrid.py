"""`hybrid-dequantize-then-op`: what weight-only quantization means, written out."""

from __future__ import annotations

from typing import ClassVar

from tflq.contract import Pass, PassResult
from tflq.dialects.declare import Operator
from tflq.dialects.stablehlo.hybrid import Hybrid, is_hybrid
from tflq.ir.core import Block, Function, Module, Op, Value
from tflq.passes.through_floats import expressed

__all__ = ["HybridDequantizeThenOp"]


class HybridDequantizeThenOp(Pass):
    """Has ops of a floating-point lhs and a quantized rhs take the rhs dequantized: `op(lhs, dequantize(rhs))`."""

    name: ClassVar[str] = "hybrid-dequantize-then-op"

    def run(self, module: Module) -> PassResult:
        modified = False
        for function in module.functions:
            modified |= _written_out(function)
        return PassResult(module, modified)


def _written_out(owner: Function | Block) -> bool:
    ops: list[Op] = []
    modified = False
    for op in owner.ops:
        for region in op.regions:
            for block in region.blocks:
                modified |= _written_out(block)
        if isinstance(op, Operator) and op.has(Hybrid) and is_hybrid(op):
            lhs, rhs, *_ = op.tensors
            real = Value(expressed(rhs.type))
            ops.append(Op("stablehlo.uniform_dequantize", [rhs], [real], location=op.location))
            op.operands = [lhs, real]
            modified = True
        ops.append(op)
    owner.ops = ops
    return modified
