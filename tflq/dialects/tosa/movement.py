"""Casts, elements in another order, place or number, resized images, reductions, functions and variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.dialects import inference as sizes
from tflq.dialects.declare import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    INTEGER,
    NUMBER,
    STRING,
    OneOf,
    Operator,
    array,
    attribute,
    dims,
    ints,
    operand,
    result,
    words,
)
from tflq.dialects.inference import (
    DeclaredShapes,
    Dims,
    Misfit,
    NotInferred,
    agree,
    plus,
    product,
    replaced,
    text,
    without_dim,
)
from tflq.dialects.traits import (
    Calls,
    ConstantOperands,
    Elementwise,
    Impure,
    MovesElements,
    Role,
    SameShape,
    Surrounded,
    Tabulable,
    WithinRange,
)
from tflq.ir.ops import Value
from tflq.ir.types import Shape, i1, i8, i16, i32, i64, index, ui8, ui16
from tflq.numerics.fixed_point import ROUNDINGS, Rounding
from tflq.numerics.requantize.scaling import FixedPoint

# Between element types and scales.


class Cast(Operator, name="tosa.cast"):
    """The numbers in another type; floats are rounded half to even and saturate, integers wrap."""

    input: Value = operand(OneOf(INTEGER, FLOAT, i1))
    output: Value = result(OneOf(INTEGER, FLOAT, i1))
    traits = (Tabulable(input), Elementwise(input, output))


class Rescale(Operator, name="tosa.rescale"):
    """Integers of one scale and zero point as those of another. input_range bounds the values that input - input_zp
    takes. rounding, if present, is that of (input - input_zp) * multiplier / 2^shift, once, whatever rounding_mode
    says. half_away, half_up and half_even round to nearest; toward_zero is the integer part."""

    input: Value = operand(OneOf(i8, ui8, i16, ui16, i32, i64))
    output: Value = result(OneOf(i8, ui8, i16, ui16, i32))
    multiplier: np.ndarray = attribute(array(i32))
    shift: np.ndarray = attribute(array(i8))
    input_zp: int = attribute(INT)
    output_zp: int = attribute(INT)
    rounding_mode: str = attribute(words("SINGLE_ROUND", "DOUBLE_ROUND"))
    scale32: bool = attribute(BOOL)
    per_channel: bool = attribute(BOOL)
    input_range: tuple[int, ...] | None = attribute(ints(2), default=None)
    rounding: Rounding | None = attribute(words(*ROUNDINGS), default=None)
    traits = (
        Tabulable(input),
        Role("rescaled"),
        SameShape(input, output),
        ConstantOperands(multiplier=i32, shift=i8, input_zp=input, output_zp=output),
    )

    @property
    def factor(self) -> FixedPoint:
        """The factor, where `rounding` does not say otherwise."""
        multiplier, shift = self.multiplier.astype(np.int64), self.shift.astype(np.int64)
        return FixedPoint(multiplier, shift, self.rounding_mode == "DOUBLE_ROUND" and self.scale32)


class Concat(Operator, name="tosa.concat"):
    """Operands one after the other along an axis."""

    T = OneOf(ANY)
    inputs: list[Value | None] = operand(T, variadic=True)
    output: Value = result(T)
    axis: int = attribute(INT)
    traits = (
        WithinRange(inputs),
        MovesElements(inputs),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        return site.joined(self.inputs, self.axis)


class Moved(Operator):
    """The elements of one tensor."""

    T = OneOf(ANY)
    input: Value = operand(T)
    output: Value = result(T)


class Identity(Moved, name="tosa.identity"):
    """The input."""

    traits = (
        WithinRange(Moved.input),
        MovesElements(Moved.input),
        Tabulable(Moved.input),
        Elementwise(Moved.input, Moved.output),
    )


def _padded_once(op: Pad) -> str | None:
    if len(op.operands) > 2 and "quantization_info" in op.attributes:
        return "the padding value is given twice, as an operand and in 'quantization_info'"
    return None


class Pad(Operator, name="tosa.pad"):
    """A constant around the input."""

    T = OneOf(ANY)
    input1: Value = operand(T)
    output: Value = result(T)
    padding: tuple[int, ...] = attribute(ints())
    pad_const: Any = attribute(NUMBER)
    traits = (
        MovesElements(input1),
        Surrounded(pad_const),
        Role("padded"),
        ConstantOperands(padding=index, pad_const=input1),
    )
    constraints = (_padded_once,)

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input1, len(self.padding) // 2)
        if len(self.padding) % 2:
            raise Misfit(f"{len(self.padding)} paddings are not two for each dim of {text(dims)}")
        return sizes.padded(dims, self.padding[::2], self.padding[1::2])


class Reshape(Moved, name="tosa.reshape"):
    """The elements of the input in the shape of the result's type, of which at most one dim is not known."""

    traits = (WithinRange(Moved.input), MovesElements(Moved.input), Role("reshaped"), ConstantOperands(shape=index))

    def infer(self, site: DeclaredShapes) -> Dims:
        """The result's declared shape, with a dim filled in that it leaves open."""
        declared = self.output.type.shape
        if declared is None:
            raise NotInferred("nothing says the shape that it makes")
        return sizes.reshaped(site.dims(self.input), declared)


class Reverse(Operator, name="tosa.reverse"):
    """The input, backwards along an axis."""

    T = OneOf(ANY)
    input1: Value = operand(T)
    output: Value = result(T)
    axis: int = attribute(INT)
    traits = (
        WithinRange(input1),
        MovesElements(input1),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input1)
        site.axis(self.axis, len(dims))
        return dims


class Slice(Moved, name="tosa.slice"):
    """A block of the input; a size of None is the rest of its dim, which is not known."""

    start: tuple[int, ...] = attribute(ints())
    size: tuple[int | None, ...] = attribute(dims())
    traits = (WithinRange(Moved.input), MovesElements(Moved.input), ConstantOperands(start=index, size=index))

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input, len(self.start))
        if len(self.size) != len(self.start):
            raise Misfit(f"{len(self.start)} starts and {len(self.size)} sizes for {text(dims)}")
        blocks = zip(dims, self.start, self.size, strict=True)
        return tuple(plus(dim, -start) if size is None else size for dim, start, size in blocks)


class Tile(Operator, name="tosa.tile"):
    """The input, repeated."""

    T = OneOf(ANY)
    input1: Value = operand(T)
    output: Value = result(T)
    multiples: tuple[int, ...] = attribute(ints())
    traits = (WithinRange(input1), MovesElements(input1), ConstantOperands(multiples=index))

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input1, len(self.multiples))
        return tuple(map(product, zip(dims, self.multiples, strict=True)))


class Transpose(Moved, name="tosa.transpose"):
    """Dims in another order."""

    perms: tuple[int, ...] = attribute(ints())
    traits = (WithinRange(Moved.input), MovesElements(Moved.input), Role("transposed"))

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input, len(self.perms))
        return sizes.permuted(dims, self.perms)


# Elements chosen or placed by index, and tables.


class Gather(Operator, name="tosa.gather"):
    """Rows of each batch by index."""

    T = OneOf(ANY)
    values: Value = operand(T)
    indices: Value = operand(i32)
    output: Value = result(T)
    traits = (
        WithinRange(values),
        MovesElements(values),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        (n, _, channels), (batch, count) = site.dims(self.values, 3), site.dims(self.indices, 2)
        return (agree(n, batch, "the batches of values and indices"), count, channels)

    @property
    def of_table(self) -> bool:
        """Whether it takes single elements of one constant row: a table."""
        dims = self.values.type.shape
        return self.values.is_constant and dims is not None and dims[::2] == (1, 1)


class Scatter(Operator, name="tosa.scatter"):
    """Rows of each batch, placed by index."""

    T = OneOf(ANY)
    values_in: Value = operand(T)
    indices: Value = operand(i32)
    input: Value = operand(T)
    values_out: Value = result(T)
    traits = (
        WithinRange(values_in, input),
        MovesElements(values_in, input),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        dims, (batch, count) = site.dims(self.values_in, 3), site.dims(self.indices, 2)
        n, _, channels = dims
        rows = agree(n, batch, "the batches of values and indices"), count, channels
        for dim, row in zip(site.dims(self.input, 3), rows, strict=True):
            agree(dim, row, "the dims of the input and those of the indexed rows")
        return dims


class Table(Operator, name="tosa.table"):
    """An entry of a table for each element: of 256 entries for 8 bits, the entry of the least value first; of 513 for
    int16, interpolated: (base << 7) + (next - base) * (input & 127), base the entry at (input >> 7) + 256."""

    T = OneOf(INTEGER)
    input: Value = operand(OneOf(i8, ui8), i16)
    table: Value = operand(T, i16, constant=True)
    output: Value = result(T, i32)
    traits = (Tabulable(input), Role("looked_up"), SameShape(input, output))


# Images of another size.


class Resize(Operator, name="tosa.resize"):
    """Nearest or interpolated elements."""

    T = OneOf(i8, ui8, i16, FLOAT)
    input: Value = operand(T, OneOf(i8, ui8), i16)
    output: Value = result(T, i32, i64)
    scale: tuple[int, ...] = attribute(ints(4))
    offset: tuple[int, ...] = attribute(ints(2))
    border: tuple[int, ...] = attribute(ints(2))
    mode: str = attribute(words("NEAREST_NEIGHBOR", "BILINEAR"))
    traits = (ConstantOperands(scale=index, offset=index, border=index),)

    def infer(self, site: DeclaredShapes) -> Dims:
        """((size - 1) * numerator - offset + border) / denominator + 1 in height and width."""
        n, *sizes, channels = site.dims(self.input, 4)
        return (n, *map(_resized, sizes, self.scale[::2], self.scale[1::2], self.offset, self.border), channels)


def _resized(size: int | None, numerator: int, denominator: int, offset: int, border: int) -> int | None:
    if size is None or denominator < 1:
        return None
    return ((size - 1) * numerator - offset + border) // denominator + 1


# Reductions over one axis.


class ArgMax(Operator, name="tosa.argmax"):
    """The first index of the greatest element."""

    input: Value = operand(OneOf(i8, ui8, i16, i32, FLOAT))
    output: Value = result(i32)
    axis: int = attribute(INT)

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        return without_dim(dims, site.axis(self.axis, len(dims)))


class Reduction(Operator):
    """Over one axis, which stays with size 1."""

    input: Value = operand()
    output: Value = result()
    axis: int = attribute(INT)

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        return replaced(dims, site.axis(self.axis, len(dims)), 1)


class _Truths(Reduction):
    """Of truth values."""

    input: Value = operand(i1)
    output: Value = result(i1)


class ReduceAll(_Truths, name="tosa.reduce_all"):
    """Whether all are true."""


class ReduceAny(_Truths, name="tosa.reduce_any"):
    """Whether any is true."""


class _Extreme(Reduction):
    """One of the elements."""

    T = OneOf(INTEGER, FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (WithinRange(input),)


class ReduceMax(_Extreme, name="tosa.reduce_max"):
    """The greatest."""


class ReduceMin(_Extreme, name="tosa.reduce_min"):
    """The least."""


class ReduceProduct(Reduction, name="tosa.reduce_product"):
    """The product."""

    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)


class ReduceSum(Reduction, name="tosa.reduce_sum"):
    """The sum."""

    T = OneOf(i32, i64, FLOAT)
    input: Value = operand(T)
    output: Value = result(T)


# Functions of the module.


class CondIf(Operator, name="tosa.cond_if"):
    """Runs one of two functions."""

    condition: Value = operand(i1)
    inputs: list[Value | None] = operand(ANY, variadic=True)
    outputs: list[Value] = result(ANY, variadic=True)
    then_graph: int = attribute(INT)
    else_graph: int = attribute(INT)
    traits = (Calls(then_graph, else_graph), Impure())

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        return site.branches([self.then_graph, self.else_graph], self.inputs)


class WhileLoop(Operator, name="tosa.while_loop"):
    """Runs a function as long as another says so."""

    inputs: list[Value | None] = operand(ANY, variadic=True)
    outputs: list[Value] = result(ANY, variadic=True)
    cond_graph: int = attribute(INT)
    body_graph: int = attribute(INT)
    traits = (Calls(cond_graph, body_graph), Impure())

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        return site.loop(self.cond_graph, self.body_graph, self.inputs)


# Variables.


class Variable(Operator, name="tosa.variable"):
    """A variable and what it holds at first."""

    initial_value: Value = operand(OneOf(ANY), constant=True)
    variable: str = attribute(STRING, key="name")
    traits = (Impure(),)

    def infer(self, _: DeclaredShapes) -> list[Shape]:
        return []


class VariableRead(Operator, name="tosa.variable_read"):
    """The value of a variable."""

    output: Value = result(OneOf(ANY))
    variable: str = attribute(STRING, key="name")
    traits = (Impure(),)


class VariableWrite(Operator, name="tosa.variable_write"):
    """Writes a variable."""

    input: Value = operand(OneOf(ANY))
    variable: str = attribute(STRING, key="name")
    traits = (Impure(),)

    def infer(self, _: DeclaredShapes) -> list[Shape]:
        return []
