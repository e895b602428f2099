"""Networks to search: chains of operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, f32
from tflq.tools.quantize.recipe import Settings
from tflq.tools.quantize.report import QuantizedRow
from tflq.tools.quantize.search.moves import alternatives

KINDS: Final = ("tanh", "relu", "tanh", "relu", "logistic", "relu", "relu", "relu")
CHOICES: Final = alternatives(Settings("int8"), is_chosen=False)


def chain(kinds: Sequence[str], sizes: Sequence[int] = ()) -> Module:
    """Operators of one input each, one behind the other, whose results are a, b, c, ..., of some sizes."""
    sizes = sizes or [4] * len(kinds)
    values = [Value(TensorType((1, 4), f32), "x")]
    ops = []
    for name, kind, size in zip("abcdefghijklmnopqrstuvw", kinds, sizes, strict=False):
        values.append(Value(TensorType((1, size), f32), name))
        ops.append(Op(f"tfl.{kind}", [values[-2]], [values[-1]], {}))
    return Module([Function("main", [values[0]], [values[-1]], ops)])


def rows(module: Module) -> list[QuantizedRow]:
    return [QuantizedRow(op.short_name, op.result.name, quantized=True) for op in module.main.ops]
