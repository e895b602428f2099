"""How one op of the integer form becomes operators of TOSA 1.0.

    @lowering(Add)
    def add(op: Add, t: Tosa) -> Value | Sequence[Value]: ...

`t.value(operand)` is the operand in the form being built: signed, uint8 less 128. `t.<operator>(...)` emits operators.
What the target or TOSA itself lacks is `Refused`, with a clause such as "TOSA has no 64-bit division"; all refusals of
a model are reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from tflq.dialects.quant.casts import Scast
from tflq.dialects.tfl.control import Custom
from tflq.dialects.tosa.movement import Identity
from tflq.errors import Refused
from tflq.ir.core import Op, Value
from tflq.registering import Registry
from tflq.tosa.lowering.context import Tosa

__all__ = ["Lowering", "Tosa", "lowered", "lowering"]

_FOLDERS: Final[Mapping[str, Sequence[str]]] = {
    "arithmetic": ("angle", "integers", "kernels", "power"),
    "casts": ("conversion", "quantization"),
    "convolution": ("floats", "integers"),
    "indexing": ("diagonals", "gathering", "scattering"),
    "movement": ("joining", "padding", "reordering", "reversing", "slicing", "space_blocks"),
    "reduction": ("arg", "axes", "cumulative", "top_k"),
    "rescale": ("doubles", "integers", "low_word"),
}
"""The modules of a family that has a folder."""
_RESCALE: Final = tuple(f"rescale.{name}" for name in _FOLDERS["rescale"])
_ALSO: Final[Mapping[str, Sequence[str]]] = {"casts": _RESCALE, "indexing": ("tables",)}

Lowering: TypeAlias = Callable[[Any, Tosa], Value | Sequence[Value]]
lowering: Final[Registry[Lowering]] = Registry(
    "tflq.tosa.lowering",
    {
        "tfl.stablehlo_composite": ("control",),
        **{
            f"{dialect}.{family}": (*(f"{family}.{name}" for name in names), *_ALSO.get(family, ()))
            for family, names in _FOLDERS.items()
            for dialect in ("tosa", "tfl", "ext", "quant")
        },
    },
)
"""The lowering of each op that has a form in TOSA."""


@lowering(Scast, Identity)
def same(op: Scast | Identity, t: Tosa) -> Value:
    """The same stored integers."""
    return t.value(op.input)


def lowered(op: Op, t: Tosa) -> Value | Sequence[Value]:
    """What an op becomes. Refused if it has no form in TOSA."""
    function = lowering.get(type(op))
    if function is None:
        if isinstance(op, Custom):
            remedy = "convert the part before it (--cut-before-custom), or give a rule for it (--rules FILE.py)"
            raise Refused(f"TOSA has no form of the custom operator '{op.code}'", remedy)
        raise Refused(f"TOSA has no form of {op.name} yet")
    return function(op, t)
