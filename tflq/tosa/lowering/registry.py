"""How one op of the integer form becomes operators of TOSA 1.0.

    @lowering(Add)
    def add(op: Add, t: Tosa) -> Value | Sequence[Value]: ...

`t.value(operand)` is the operand in the form being built: signed, uint8 less 128. `t.<operator>(...)` emits operators.
What the target has not, or TOSA itself, is `Refused` with the reason; all refusals of a model are reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from tflq.ir.core import Op, Value
from tflq.registering import Registry
from tflq.tosa.lowering.context import Refused, Tosa

__all__ = ["Lowering", "Refused", "Tosa", "lowered", "lowering"]

Lowering: TypeAlias = Callable[[Any, Tosa], Value | Sequence[Value]]
lowering: Final[Registry[Lowering]] = Registry(
    "tflq.tosa.lowering",
    {
        "ext.casts": ("casts",),
        "ext.rescale": ("low_word", "requantize", "rescale_real"),
        "ext.tables": ("tables",),
        "quant.casts": ("basic", "quantize_real"),
        "tfl.activation": ("floats.operators",),
        "tfl.arithmetic": ("floats.operators", "integer_kernels"),
        "tfl.bits": ("integer_kernels",),
        "tfl.casts": ("casts", "elementwise"),
        "tfl.comparison": ("comparison", "integer_kernels"),
        "tfl.control": ("control_flow", "variables"),
        "tfl.convolution": ("floats.convolution",),
        "tfl.indexing": ("diagonals", "gathering", "scattering"),
        "tfl.matmul": ("floats.convolution", "matmul"),
        "tfl.movement": ("gathering", "joining", "movement", "padding", "slicing", "space_blocks"),
        "tfl.normalization": ("floats.operators",),
        "tfl.pooling": ("pooling",),
        "tfl.recurrent": ("floats.recurrent",),
        "tfl.reduction": ("arg", "integer_kernels", "reduction", "top_k"),
        "tfl.resize": ("resize",),
        "tfl.shape": ("movement", "shapes_of"),
        "tfl.stablehlo": ("control_flow",),
        "tfl.state": ("variables",),
        "tfl.unary": ("floats.operators", "integer_kernels", "movement"),
        "tosa.activation": ("elementwise",),
        "tosa.arithmetic": ("basic", "elementwise"),
        "tosa.bits": ("basic",),
        "tosa.casts": ("elementwise", "requantize"),
        "tosa.comparison": ("comparison", "elementwise"),
        "tosa.convolution": ("convolution", "transpose_conv"),
        "tosa.indexing": ("gathering", "tables"),
        "tosa.matmul": ("matmul",),
        "tosa.movement": ("basic", "joining", "movement", "padding", "slicing"),
        "tosa.pooling": ("pooling",),
        "tosa.reduction": ("arg", "reduction"),
        "tosa.resize": ("resize",),
        "tosa.state": ("variables",),
    },
)
"""The lowering of each op that has a form in TOSA."""


def lowered(op: Op, t: Tosa) -> Value | Sequence[Value]:
    """What an op becomes. Refused if it has no form in TOSA."""
    function = lowering.get(type(op))
    if function is None:
        raise Refused(f"TOSA has no form of {op.name} yet")
    return function(op, t)
