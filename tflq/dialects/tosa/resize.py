"""Images of another size."""

from __future__ import annotations

from tflq.dialects.declare import FLOAT, OneOf, Operator, attribute, ints, operand, result, words
from tflq.dialects.inference import Dims, Stated
from tflq.dialects.traits.operands import ConstantOperands
from tflq.ir.core import Value
from tflq.ir.types import i8, i16, i32, i64, index, ui8

__all__ = ["Resize"]


class Resize(Operator, name="tosa.resize"):
    """Nearest or interpolated elements."""

    __slots__ = ()
    T = OneOf(i8, ui8, i16, FLOAT)
    input: Value = operand(T, OneOf(i8, ui8), i16)
    output: Value = result(T, i32, i64)
    scale: tuple[int, ...] = attribute(ints(4))
    offset: tuple[int, ...] = attribute(ints(2))
    border: tuple[int, ...] = attribute(ints(2))
    mode: str = attribute(words("NEAREST_NEIGHBOR", "BILINEAR"))
    traits = (ConstantOperands(scale=index, offset=index, border=index),)

    def infer(self, site: Stated) -> Dims:
        """((size - 1) * numerator - offset + border) / denominator + 1 in height and width."""
        n, *sizes, channels = site.dims(self.input, 4)
        return (n, *map(_resized, sizes, self.scale[::2], self.scale[1::2], self.offset, self.border), channels)


def _resized(size: int | None, numerator: int, denominator: int, offset: int, border: int) -> int | None:
    if size is None or denominator < 1:
        return None
    return ((size - 1) * numerator - offset + border) // denominator + 1
