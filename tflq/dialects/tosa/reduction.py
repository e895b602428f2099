"""Reductions over one axis, which stays with size 1."""

from __future__ import annotations

from tflq.dialects.declare import FLOAT, INT, INTEGER, OneOf, Operator, attribute, operand, result
from tflq.dialects.inference import Dims, Stated
from tflq.dialects.sizes import replaced, without_dim
from tflq.dialects.traits.elements import WithinRange
from tflq.ir.core import Value
from tflq.ir.types import i1, i8, i16, i32, i64, ui8

__all__ = ["ArgMax", "ReduceAll", "ReduceAny", "ReduceMax", "ReduceMin", "ReduceProduct", "ReduceSum", "Reduction"]


class ArgMax(Operator, name="tosa.argmax"):
    """Where the greatest element is. The first index of the greatest element."""

    __slots__ = ()
    input: Value = operand(OneOf(i8, ui8, i16, i32, FLOAT))
    output: Value = result(i32)
    axis: int = attribute(INT)

    def infer(self, site: Stated) -> Dims:
        dims = site.dims(self.input)
        return without_dim(dims, site.axis(self.axis, len(dims)))


class Reduction(Operator):
    """Over one axis, which stays with size 1."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    axis: int = attribute(INT)

    def infer(self, site: Stated) -> Dims:
        dims = site.dims(self.input)
        return replaced(dims, site.axis(self.axis, len(dims)), 1)


class ReduceAll(Reduction, name="tosa.reduce_all"):
    """Whether all are true."""

    __slots__ = ()
    input: Value = operand(i1)
    output: Value = result(i1)


class ReduceAny(Reduction, name="tosa.reduce_any"):
    """Whether any is true."""

    __slots__ = ()
    input: Value = operand(i1)
    output: Value = result(i1)


class ReduceMax(Reduction, name="tosa.reduce_max"):
    """The greatest."""

    __slots__ = ()
    T = OneOf(INTEGER, FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (WithinRange(input),)


class ReduceMin(Reduction, name="tosa.reduce_min"):
    """The least."""

    __slots__ = ()
    T = OneOf(INTEGER, FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    traits = (WithinRange(input),)


class ReduceProduct(Reduction, name="tosa.reduce_product"):
    """The product."""

    __slots__ = ()
    T = OneOf(FLOAT)
    input: Value = operand(T)
    output: Value = result(T)


class ReduceSum(Reduction, name="tosa.reduce_sum"):
    """The sum."""

    __slots__ = ()
    T = OneOf(i32, i64, FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
