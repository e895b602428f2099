"""Elements chosen or placed by index, and tables."""

from __future__ import annotations

from tflq.dialects.declare import ANY, INTEGER, OneOf, Operator, operand, result
from tflq.dialects.inference import Dims, Stated, agree
from tflq.dialects.traits.elements import Role, Tabulable, WithinRange
from tflq.dialects.traits.types import SameShape
from tflq.ir.core import Value
from tflq.ir.types import i8, i16, i32, ui8

__all__ = ["Gather", "Scatter", "Table"]


class Gather(Operator, name="tosa.gather"):
    """Rows of each batch by index."""

    __slots__ = ()
    T = OneOf(ANY)
    values: Value = operand(T)
    indices: Value = operand(i32)
    output: Value = result(T)
    traits = (WithinRange(values),)

    def infer(self, site: Stated) -> Dims:
        (n, _, channels), (batch, count) = site.dims(self.values, 3), site.dims(self.indices, 2)
        return (agree(n, batch, "the batches of values and indices"), count, channels)


class Scatter(Operator, name="tosa.scatter"):
    """Rows of each batch, placed by index."""

    __slots__ = ()
    T = OneOf(ANY)
    values_in: Value = operand(T)
    indices: Value = operand(i32)
    input: Value = operand(T)
    values_out: Value = result(T)
    traits = (WithinRange(values_in, input),)

    def infer(self, site: Stated) -> Dims:
        dims, (batch, count) = site.dims(self.values_in, 3), site.dims(self.indices, 2)
        n, _, channels = dims
        rows = agree(n, batch, "the batches of values and indices"), count, channels
        for dim, row in zip(site.dims(self.input, 3), rows, strict=True):
            agree(dim, row, "the dims of the input and those of the indexed rows")
        return dims


class Table(Operator, name="tosa.table"):
    """An entry of a table for each element: of 256 entries for 8 bits, the entry of the least value first; of 513 for
    int16, interpolated: (base << 7) + (next - base) * (input & 127), base the entry at (input >> 7) + 256."""

    __slots__ = ()
    T = OneOf(INTEGER)
    input: Value = operand(OneOf(i8, ui8), i16)
    table: Value = operand(T, i16, constant=True)
    output: Value = result(T, i32)
    traits = (Tabulable(input), Role("looked_up"), SameShape(input, output))
