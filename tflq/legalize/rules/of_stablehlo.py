"""The rules of the `stablehlo` dialect, which has the specification's semantics."""

from __future__ import annotations

from typing import Final

from tflq.dialects.stablehlo.casts import UniformDequantize, UniformQuantize
from tflq.dialects.stablehlo.reduction import Reduce
from tflq.dialects.stablehlo.windows import ReduceWindow, SelectAndScatter
from tflq.legalize.later import later
from tflq.legalize.rule import Rules

__all__ = ["RULES"]

quantizing = later("stablehlo.quantizing")
reductions = later("stablehlo.reductions")

RULES: Final[Rules] = {
    Reduce: (reductions.reduce,),
    ReduceWindow: (reductions.reduce_window,),
    SelectAndScatter: (reductions.select_and_scatter,),
    UniformQuantize: (quantizing.uniform_quantize,),
    UniformDequantize: (quantizing.uniform_dequantize,),
}
