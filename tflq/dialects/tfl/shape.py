"""Shapes, ranges, tensors made of one value, and tensors of random numbers."""

from __future__ import annotations

import math
from typing import Final

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.inference import DeclaredShapes, Dims, Misfit
from tflq.dialects.parameters import AsksSameScale, Misreads, SameScale
from tflq.dialects.tfl import COUNT, Needs
from tflq.dialects.traits import (
    ComputedEarly,
    HasShape,
    Impure,
    MovesElements,
    NonNegative,
    OneElement,
    ReadsShapes,
    SameElementType,
    SetsElementType,
    SizedBy,
    Unquantized,
)
from tflq.ir.ops import Value
from tflq.ir.types import i1, i8, i16, i32, i64, ui8

_OF_SHAPES: Final = Unquantized("its tensors are shapes, or what a shape follows from")


class Shape(Operator, name="tfl.shape"):
    """The shape of the input. Source: kernels/shape.cc."""

    input: Value = operand()
    output: Value = result(COUNT)
    out_type: str = attribute(default="FLOAT32")
    traits = (SetsElementType(output, out_type), ReadsShapes())

    def infer(self, site: DeclaredShapes) -> Dims:
        return (len(site.dims(self.input)),)


class Rank(Operator, name="tfl.rank"):
    """The number of dims of the input. Source: kernels/rank.cc."""

    input: Value = operand()
    output: Value = result(i32)
    traits = (SetsElementType(output, i32), ReadsShapes())

    def infer(self, _: DeclaredShapes) -> Dims:
        return ()


class Range(Operator, name="tfl.range"):
    """start, start + delta, ... below limit. Source: kernels/range.cc."""

    start: Value = operand()
    limit: Value = operand()
    delta: Value = operand()
    output: Value = result()
    traits = (_OF_SHAPES, OneElement(start, limit, delta), SizedBy(start, limit, delta), ComputedEarly())
    versions = (Needs(2, start, i64),)

    def infer(self, site: DeclaredShapes) -> Dims:
        """ceil((limit - start) / delta) elements. Source: `GetSize` in range.cc."""
        ends = [array for value in (self.start, self.limit, self.delta) if (array := site.array(value)) is not None]
        if len(ends) != 3:
            return (None,)
        start, limit, delta = (array.reshape(-1)[0] for array in ends)
        if not delta or (limit - start) * delta < 0:
            raise Misfit(f"steps of {delta} do not lead from {start} to {limit}")
        if ends[0].dtype.kind == "f":
            return (math.ceil(abs((limit - start) / delta)),)
        return (-(-abs(int(limit) - int(start)) // abs(int(delta))),)


class Fill(Operator, name="tfl.fill", newest=5):
    """One value in a given shape. Source: kernels/fill.cc."""

    dims: Value = operand(indices=True)
    value: Value = operand()
    output: Value = result()
    traits = (
        SameScale(value, output),
        HasShape(value),
        NonNegative(dims),
        OneElement(value),
        SameElementType(value, output),
        Misreads("copied"),
        AsksSameScale(i8, ui8, i16),
        MovesElements(value),
        SizedBy(dims),
    )
    versions = (Needs(3, value, i8), Needs(3, value, i16), Needs(2, value, i1))

    def infer(self, site: DeclaredShapes) -> Dims:
        site.dims(self.dims, 1)
        return tuple(site.ints(self.dims))


class BroadcastArgs(Operator, name="tfl.broadcast_args"):
    """The shape that two shapes broadcast to. Source: kernels/broadcast_args.cc."""

    lhs: Value = operand(indices=True)
    rhs: Value = operand(indices=True)
    output: Value = result()
    traits = (_OF_SHAPES, ComputedEarly())

    def infer(self, site: DeclaredShapes) -> Dims:
        (a,), (b,) = site.dims(self.lhs, 1), site.dims(self.rhs, 1)
        return (None if a is None or b is None else max(a, b),)


_DRAWN: Final = Unquantized("it draws random numbers, as floats or bits")


class RandomTensor(Operator):
    """Random numbers in a given shape."""

    shape: Value = operand(indices=True)
    output: Value = result()
    seed: int = attribute(default=0)
    seed2: int = attribute(default=0)
    traits = (NonNegative(shape), Impure(), _DRAWN, SizedBy(shape))

    def infer(self, site: DeclaredShapes) -> Dims:
        return tuple(site.ints(self.shape))


class RandomUniform(RandomTensor, name="tfl.random_uniform"):
    """Uniform ones in [0, 1). Source: kernels/random_ops.cc."""


class RandomStandardNormal(RandomTensor, name="tfl.random_standard_normal"):
    """Normal ones. Source: kernels/random_ops.cc."""


class Multinomial(Operator, name="tfl.multinomial"):
    """Samples of classes by their logits. Source: kernels/random_ops.cc."""

    logits: Value = operand()
    samples: Value = operand(indices=True)
    output: Value = result()
    seed: int = attribute(default=0)
    seed2: int = attribute(default=0)
    traits = (NonNegative(samples), Impure(), _DRAWN, SizedBy(logits, samples))

    def infer(self, site: DeclaredShapes) -> Dims:
        return (site.dims(self.logits, 2)[0], *site.ints(self.samples, 1))
