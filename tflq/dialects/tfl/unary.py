"""Elementwise functions of one operand."""

from __future__ import annotations

from typing import TypeAlias

from tflq.dialects.declare import Operator, operand, result
from tflq.dialects.tfl.versions import Needs
from tflq.dialects.traits.kernels import Interpolates, Misreads, Unbounded
from tflq.dialects.traits.quantization import QuantizedTogether
from tflq.dialects.traits.types import Elementwise, SameElementType
from tflq.ir.core import Value
from tflq.ir.types import i32

__all__ = [
    "Abs",
    "Ceil",
    "Cos",
    "Exp",
    "Floor",
    "Log",
    "Neg",
    "Round",
    "Rsqrt",
    "Sign",
    "Sin",
    "Sqrt",
    "Square",
    "Unary",
    "ZerosLike",
]


class Abs(Operator, name="tfl.abs", newest=3):
    """The absolute value. Source: kernels/elementwise.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (
        QuantizedTogether(input, output),
        SameElementType(input, output, unless_quantized=True),
        Misreads("scales"),
        Elementwise(input, output),
    )


class Ceil(Operator, name="tfl.ceil"):
    """Rounded up. Source: kernels/ceil.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (SameElementType(input, output, unless_quantized=True), Elementwise(input, output))


class Cos(Operator, name="tfl.cos"):
    """The cosine. Source: kernels/elementwise.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (
        QuantizedTogether(input, output),
        SameElementType(input, output, unless_quantized=True),
        Elementwise(input, output),
    )


class Exp(Operator, name="tfl.exp", newest=2):
    """e to the power of the input. Source: kernels/exp.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (
        QuantizedTogether(input, output),
        SameElementType(input, output, unless_quantized=True),
        Misreads("scales", "result type"),
        Unbounded(),
        Interpolates(),
        Elementwise(input, output),
    )


class Floor(Operator, name="tfl.floor"):
    """Rounded down. Source: kernels/floor.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (SameElementType(input, output, unless_quantized=True), Elementwise(input, output))


class Log(Operator, name="tfl.log", newest=2):
    """The natural logarithm. Source: kernels/elementwise.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (
        QuantizedTogether(input, output),
        SameElementType(input, output, unless_quantized=True),
        Misreads("scales"),
        Unbounded(),
        Interpolates(),
        Elementwise(input, output),
    )


class Neg(Operator, name="tfl.neg"):
    """The negative. Source: kernels/neg.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (
        SameElementType(input, output, unless_quantized=True),
        Misreads("scales", "result type"),
        Elementwise(input, output),
    )


class Round(Operator, name="tfl.round"):
    """To the nearest integer, half to even. Source: kernels/round.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (SameElementType(input, output, unless_quantized=True), Elementwise(input, output))


class Rsqrt(Operator, name="tfl.rsqrt", newest=3):
    """One over the square root. Source: kernels/elementwise.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (
        QuantizedTogether(input, output),
        SameElementType(input, output, unless_quantized=True),
        Misreads("scales"),
        Unbounded(),
        Interpolates(),
        Elementwise(input, output),
    )


class Sign(Operator, name="tfl.sign", newest=2):
    """-1, 0 or 1. Source: kernels/sign.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (SameElementType(input, output, unless_quantized=True), Elementwise(input, output))
    versions = (Needs(2, input, i32),)


class Sin(Operator, name="tfl.sin"):
    """The sine. Source: kernels/elementwise.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (
        QuantizedTogether(input, output),
        SameElementType(input, output, unless_quantized=True),
        Elementwise(input, output),
    )


class Sqrt(Operator, name="tfl.sqrt", newest=2):
    """The square root. Source: kernels/elementwise.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (
        QuantizedTogether(input, output),
        SameElementType(input, output, unless_quantized=True),
        Misreads("scales"),
        Unbounded(),
        Elementwise(input, output),
    )


class Square(Operator, name="tfl.square"):
    """The square. Source: kernels/elementwise.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (SameElementType(input, output, unless_quantized=True), Unbounded(), Elementwise(input, output))


class ZerosLike(Operator, name="tfl.zeros_like"):
    """Zeros in the shape of the input. Source: kernels/zeros_like.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    traits = (Elementwise(input, output),)


Unary: TypeAlias = Abs | Ceil | Cos | Exp | Floor | Log | Neg | Round | Rsqrt | Sign | Sin | Sqrt | Square
"""Functions of real numbers, element by element."""
