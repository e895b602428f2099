"""convert-ml-to-arith: ops of `ml` become ops of `arith` on floats.

No integer algorithm is written here, so every quantized type takes tflq's reusable fallback: operands are dequantized,
the pattern for floats is emitted, the result is quantized. canonicalize, cse and dce simplify what is between ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import tflq
from tflq.dialects.builder import Emitter, Pattern, through_floats
from tflq.ir.module import Module
from tflq.ir.ops import Op, Value
from tflq.ir.rewriting import replace_result
from tflq.ir.types import TensorType
from tflq.transforms.floats import QuantCasts
from tflq.transforms.pass_manager import Pass, PassResult

__all__ = ["EXTENSION", "ConvertMlToArith"]

_ARITH = {"ml.add": "arith.addf", "ml.mul": "arith.mulf", "ml.div": "arith.divf", "ml.mod": "arith.remf"}


@dataclass(frozen=True)
class ConvertMlToArith(Pass):
    """Lowers ml.add, ml.mul, ml.div and ml.mod."""

    name: ClassVar[str] = "convert-ml-to-arith"

    def run(self, module: Module) -> PassResult:
        modified = False
        for function in module.functions:
            ops: list[Op] = []
            for op in function.ops:
                if op.name not in _ARITH:
                    ops.append(op)
                    continue
                b = Emitter(ops)
                b.location = op.location
                (result,) = through_floats(op, QuantCasts(b), _pattern(_ARITH[op.name], b))
                replace_result(result, op.result)
                modified = True
            function.ops = ops
        return PassResult(module, modified)


def _pattern(name: str, b: Emitter) -> Pattern:
    """The case of floats."""

    def emit(operands: Sequence[Value | None], types: Sequence[TensorType]) -> Sequence[Value]:
        return [b.emit(name, operands, types[0])]

    return emit


EXTENSION = tflq.Extension(passes=[ConvertMlToArith])
