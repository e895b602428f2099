"""Elementwise functions of one operand."""

from __future__ import annotations

from typing import ClassVar, Final

from tflq.dialects.declare import Operator, Trait, operand, result
from tflq.dialects.tfl import Needs
from tflq.dialects.traits.quantization import Interpolates, Misreads, QuantizedTogether, Unbounded
from tflq.dialects.traits.types import Elementwise, SameElementType
from tflq.ir.core import Value
from tflq.ir.types import i32


class Unary(Operator):
    """A function of real numbers, element by element."""

    input: Value = operand()
    output: Value = result()
    traits: ClassVar[tuple[Trait, ...]] = (
        SameElementType(input, output, unless_quantized=True),
        Elementwise(input, output),
    )


_TOGETHER: Final = QuantizedTogether(Unary.input, Unary.output)


class Abs(Unary, name="tfl.abs", newest=3):
    """The absolute value. Source: kernels/elementwise.cc."""

    traits = (_TOGETHER, *Unary.traits, Misreads("scales"))


class Ceil(Unary, name="tfl.ceil"):
    """Rounded up. Source: kernels/ceil.cc."""


class Cos(Unary, name="tfl.cos"):
    """The cosine. Source: kernels/elementwise.cc."""

    traits = (_TOGETHER, *Unary.traits)


class Exp(Unary, name="tfl.exp", newest=2):
    """e to the power of the input. Source: kernels/exp.cc."""

    traits = (_TOGETHER, *Unary.traits, Misreads("scales", "result type"), Unbounded(), Interpolates())


class Floor(Unary, name="tfl.floor"):
    """Rounded down. Source: kernels/floor.cc."""


class Log(Unary, name="tfl.log", newest=2):
    """The natural logarithm. Source: kernels/elementwise.cc."""

    traits = (_TOGETHER, *Unary.traits, Misreads("scales"), Unbounded(), Interpolates())


class Neg(Unary, name="tfl.neg"):
    """The negative. Source: kernels/neg.cc."""

    traits = (*Unary.traits, Misreads("scales", "result type"))


class Round(Unary, name="tfl.round"):
    """To the nearest integer, half to even. Source: kernels/round.cc."""


class Rsqrt(Unary, name="tfl.rsqrt", newest=3):
    """One over the square root. Source: kernels/elementwise.cc."""

    traits = (_TOGETHER, *Unary.traits, Misreads("scales"), Unbounded(), Interpolates())


class Sign(Unary, name="tfl.sign", newest=2):
    """-1, 0 or 1. Source: kernels/sign.cc."""

    versions = (Needs(2, Unary.input, i32),)


class Sin(Unary, name="tfl.sin"):
    """The sine. Source: kernels/elementwise.cc."""

    traits = (_TOGETHER, *Unary.traits)


class Sqrt(Unary, name="tfl.sqrt", newest=2):
    """The square root. Source: kernels/elementwise.cc."""

    traits = (_TOGETHER, *Unary.traits, Misreads("scales"), Unbounded())


class Square(Unary, name="tfl.square"):
    """The square. Source: kernels/elementwise.cc."""

    traits = (*Unary.traits, Unbounded())


class ZerosLike(Operator, name="tfl.zeros_like"):
    """Zeros in the shape of the input. Source: kernels/zeros_like.cc."""

    input: Value = operand()
    output: Value = result()
    traits = (Elementwise(input, output),)
