"""Elements in another order, place or number."""

from __future__ import annotations

from typing import Any

from tflq.dialects import sizes
from tflq.dialects.declare import ANY, INT, NUMBER, OneOf, Operator, attribute, dims, ints, operand, result
from tflq.dialects.inference import Dims, NotInferred, Stated, plus, product
from tflq.dialects.traits.elements import Role, Tabulable, WithinRange
from tflq.dialects.traits.operands import ConstantOperands
from tflq.dialects.traits.types import Elementwise
from tflq.ir.core import Value
from tflq.ir.types import index

__all__ = ["Concat", "Identity", "Pad", "Reshape", "Reverse", "Slice", "Tile", "Transpose"]


class Concat(Operator, name="tosa.concat"):
    """Operands one after the other along an axis."""

    __slots__ = ()
    T = OneOf(ANY)
    inputs: list[Value | None] = operand(T, variadic=True)
    output: Value = result(T)
    axis: int = attribute(INT)
    traits = (WithinRange(inputs),)

    def infer(self, site: Stated) -> Dims:
        return site.joined(self.inputs, self.axis)


class Identity(Operator, name="tosa.identity"):
    """The input."""

    __slots__ = ()
    T = OneOf(ANY)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (WithinRange(input), Tabulable(input), Elementwise(input, output))


class Pad(Operator, name="tosa.pad"):
    """A constant around the input."""

    __slots__ = ()
    T = OneOf(ANY)
    input1: Value = operand(T)
    output: Value = result(T)
    padding: tuple[int, ...] = attribute(ints())
    pad_const: Any = attribute(NUMBER)
    traits = (Role("padded"), ConstantOperands(padding=index, pad_const=input1))

    def infer(self, site: Stated) -> Dims:
        dims = site.dims(self.input1, len(self.padding) // 2)
        return sizes.padded(dims, self.padding[::2], self.padding[1::2])


class Reshape(Operator, name="tosa.reshape"):
    """The same elements in another shape. To the shape of the result's type, of which at most one dim is not known."""

    __slots__ = ()
    T = OneOf(ANY)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (WithinRange(input), Role("reshaped"), ConstantOperands(shape=index))

    def infer(self, site: Stated) -> Dims:
        """What the result states, with a dim filled in that it leaves open."""
        stated = self.output.type.shape
        if stated is None:
            raise NotInferred("nothing says the shape that it makes")
        return sizes.reshaped(site.dims(self.input), stated)


class Reverse(Operator, name="tosa.reverse"):
    """The input, backwards along an axis."""

    __slots__ = ()
    T = OneOf(ANY)
    input1: Value = operand(T)
    output: Value = result(T)
    axis: int = attribute(INT)
    traits = (WithinRange(input1),)

    def infer(self, site: Stated) -> Dims:
        dims = site.dims(self.input1)
        site.axis(self.axis, len(dims))
        return dims


class Slice(Operator, name="tosa.slice"):
    """A block of the input. a size of None is the rest of its dim, which is not known."""

    __slots__ = ()
    T = OneOf(ANY)
    input: Value = operand(T)
    output: Value = result(T)
    start: tuple[int, ...] = attribute(ints())
    size: tuple[int | None, ...] = attribute(dims())
    traits = (WithinRange(input), ConstantOperands(start=index, size=index))

    def infer(self, site: Stated) -> Dims:
        dims = site.dims(self.input, len(self.start))
        blocks = zip(dims, self.start, self.size, strict=True)
        return tuple(plus(dim, -start) if size is None else size for dim, start, size in blocks)


class Tile(Operator, name="tosa.tile"):
    """The input, repeated."""

    __slots__ = ()
    T = OneOf(ANY)
    input1: Value = operand(T)
    output: Value = result(T)
    multiples: tuple[int, ...] = attribute(ints())
    traits = (WithinRange(input1), ConstantOperands(multiples=index))

    def infer(self, site: Stated) -> Dims:
        dims = site.dims(self.input1, len(self.multiples))
        return tuple(map(product, zip(dims, self.multiples, strict=True)))


class Transpose(Operator, name="tosa.transpose"):
    """Dims in another order."""

    __slots__ = ()
    T = OneOf(ANY)
    input: Value = operand(T)
    output: Value = result(T)
    perms: tuple[int, ...] = attribute(ints())
    traits = (WithinRange(input), Role("transposed"))

    def infer(self, site: Stated) -> Dims:
        dims = site.dims(self.input, len(self.perms))
        return sizes.permuted(dims, self.perms)
