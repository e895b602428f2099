"""STABLEHLO_REDUCE_WINDOW: stored integers dilated and padded by the initial value, then reduced over windows.

The kernel asks the function that the operator names for its one operator, and knows no scales. Source:
kernels/stablehlo_reduce_window.cc.
"""

from __future__ import annotations

from tflq.dialects.tfl.stablehlo import StablehloReduceWindow
from tflq.errors import Refused
from tflq.ir.core import Op
from tflq.ir.types import i8, i16, i32, ui8
from tflq.legalize.reference.pooling import COMBINE, reduced
from tflq.legalize.rule import Answer, Rewritten, RuleBuilder, rule
from tflq.legalize.stablehlo.builtins import builtin_name
from tflq.legalize.stablehlo.movement import padded

__all__: list[str] = []

_RAW = "the kernel reduces the stored integers and ignores scales and zero points"


@rule(StablehloReduceWindow)
def reduce_window(op: StablehloReduceWindow, b: RuleBuilder) -> Answer:
    """result = init combined with each window's elements. `op.info["body"]`: the class of the one operator of its
    function."""
    function = builtin_name(op.info.get("body") or Op)
    storage = op.result.type.storage
    operands = [v for v in op.inputs if v is not None]
    if function not in COMBINE or len(operands) != 2 or b.real or not operands[0].type.is_static:
        raise Refused(
            "STABLEHLO_REDUCE_WINDOW on quantized tensors has a form for one tensor of known shape, reduced by one "
            "ADD, MUL, MINIMUM or MAXIMUM of stored integers",
            "lower it to TFLite's builtins, or dequantize its operands",
        )
    x, init = operands
    if {x.type.storage, init.type.storage} != {storage} or storage not in (i8, ui8, i16, i32):
        raise Refused(f"no form reduces {x.type.storage} and {init.type.storage} to {storage}")
    rank = x.type.rank or 0
    window, strides, base, dilations = (
        [1] * rank if given is None else [int(v) for v in given]
        for given in (op.window_dimensions, op.window_strides, op.base_dilations, op.window_dilations)
    )
    given = op.padding
    sides = [0] * (2 * rank) if given is None else [int(v) for v in given]
    start = b.reshape(b.value(init), [])
    y = padded(b, b.value(x), start, sides[::2], sides[1::2], [d - 1 for d in base])
    extreme = function.endswith("IMUM")
    wide = storage if extreme else i32
    y = b.cast(y, wide)
    windows = list(zip(window, strides, dilations, strict=True))
    y = reduced(b, y, b.cast(start, wide), windows, COMBINE[function])
    same = extreme and len({v.type.element for v in op.tensors}) == 1
    return Rewritten([b.cast(y, storage)], warning="" if same else _RAW)
