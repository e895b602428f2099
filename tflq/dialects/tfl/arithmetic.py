"""Arithmetic of two tensors, element by element, functions of one, and of complex numbers."""

from __future__ import annotations

from typing import ClassVar, Final

from tflq.dialects.declare import Operator, Trait, attribute, operand, result
from tflq.dialects.inference import DeclaredShapes, Dims
from tflq.dialects.parameters import (
    Int16Symmetric,
    Interpolates,
    Misreads,
    QuantizedTogether,
    SameScale,
    Unbounded,
)
from tflq.dialects.tfl import Needs
from tflq.dialects.traits import (
    Broadcasts,
    ComputedEarly,
    Elementwise,
    InPlace,
    NonNegative,
    SameElementType,
    Unquantized,
)
from tflq.ir.ops import Value
from tflq.ir.types import f32, i8, i16, i32, i64, ui32


class Binary(Operator):
    """Of two tensors that broadcast, element by element."""

    lhs: Value = operand()
    rhs: Value = operand()
    output: Value = result()
    traits: ClassVar[tuple[Trait, ...]] = (
        SameElementType(lhs, rhs, output, unless_quantized=True),
        Broadcasts(lhs, rhs, output),
    )


_TOGETHER: Final = (
    QuantizedTogether(Binary.lhs, Binary.rhs, Binary.output),
    Int16Symmetric(Binary.lhs, Binary.rhs, Binary.output),
)
_IN_PLACE: Final = InPlace(Binary.lhs, Binary.rhs)


class Add(Binary, name="tfl.add", newest=5):
    """lhs + rhs, then the fused activation. Source: kernels/add.cc."""

    fused_activation_function: str = attribute(default="NONE")
    pot_scale_int16: bool = attribute(default=True)
    traits = (*_TOGETHER, *Binary.traits, Misreads("result type"), _IN_PLACE)
    versions = (Needs(5, Binary.lhs, i16), Needs(4, Binary.lhs, i64))


class Sub(Binary, name="tfl.sub", newest=5):
    """lhs - rhs, then the fused activation. Source: kernels/sub.cc."""

    fused_activation_function: str = attribute(default="NONE")
    pot_scale_int16: bool = attribute(default=True)
    traits = (*_TOGETHER, *Binary.traits, Misreads("scales", "result type"), _IN_PLACE)
    versions = (Needs(4, Binary.lhs, i64), Needs(3, broadcast_rank=5))


class Mul(Binary, name="tfl.mul", newest=7):
    """lhs * rhs, then the fused activation. Source: kernels/mul.cc."""

    fused_activation_function: str = attribute(default="NONE")
    traits = (
        *_TOGETHER,
        SameElementType(Binary.lhs, Binary.rhs, unless_quantized=True),
        Broadcasts(Binary.lhs, Binary.rhs, Binary.output),
        Misreads("scales"),
        Unbounded(),
        _IN_PLACE,
        ComputedEarly(),
    )
    versions = (Needs(7, Binary.lhs, i16), Needs(7, Binary.lhs, ui32), Needs(5, Binary.lhs, i64))


class Div(Binary, name="tfl.div", newest=2):
    """lhs / rhs, then the fused activation. Source: kernels/div.cc."""

    fused_activation_function: str = attribute(default="NONE")
    traits = (*Binary.traits, Misreads("scales", "result type"), Unbounded(), _IN_PLACE)
    versions = (Needs(2, broadcast_rank=5),)


class FloorDiv(Binary, name="tfl.floor_div", newest=3):
    """floor(lhs / rhs). Source: kernels/floor_div.cc."""

    traits = (*Binary.traits, Misreads("result type"), Unbounded())
    versions = (Needs(3, Binary.lhs, i16), Needs(3, Binary.lhs, i8), Needs(2, Binary.lhs, f32))


class FloorMod(Binary, name="tfl.floor_mod", newest=2):
    """lhs - floor(lhs / rhs) * rhs. Source: kernels/floor_mod.cc."""

    traits = (*Binary.traits, Misreads("result type"), Unbounded())
    versions = (Needs(2, Binary.lhs, i16), Needs(2, Binary.lhs, i8))


class Pow(Binary, name="tfl.pow"):
    """lhs to the power of rhs. Source: kernels/pow.cc."""

    traits = (*Binary.traits, Unbounded())


class SquaredDifference(Binary, name="tfl.squared_difference", newest=2):
    """(lhs - rhs)². Source: kernels/squared_difference.cc."""

    traits = (*_TOGETHER, *Binary.traits, Misreads("result type"), Unbounded())


class Extreme(Binary):
    """One of the two elements."""

    traits = (SameScale(Binary.lhs, Binary.rhs, Binary.output), *Binary.traits, Misreads("result type"))
    versions = (Needs(4, Binary.lhs, i16), Needs(3, broadcast_rank=5), Needs(2, Binary.lhs, i8))


class Maximum(Extreme, name="tfl.maximum", newest=4):
    """The greater of two. Source: kernels/maximum_minimum.cc."""


class Minimum(Extreme, name="tfl.minimum", newest=4):
    """The lesser of two. Source: kernels/maximum_minimum.cc."""


class Atan2(Operator, name="tfl.atan2"):
    """The angle of the point (x, y). Source: kernels/atan2.cc."""

    y: Value = operand()
    x: Value = operand()
    output: Value = result()
    traits = (SameElementType(y, x, output, unless_quantized=True), Broadcasts(y, x, output))


class AddN(Operator, name="tfl.add_n"):
    """The sum of all operands. Source: kernels/add_n.cc."""

    inputs: list[Value | None] = operand(variadic=True)
    output: Value = result()
    traits = (SameElementType(inputs, output, unless_quantized=True), Elementwise(inputs, output, strict=False))


# Functions of one operand.


class Unary(Operator):
    """A function of real numbers, element by element."""

    input: Value = operand()
    output: Value = result()
    traits: ClassVar[tuple[Trait, ...]] = (
        SameElementType(input, output, unless_quantized=True),
        Elementwise(input, output),
    )


_UNARY_TOGETHER: Final = QuantizedTogether(Unary.input, Unary.output)


class Abs(Unary, name="tfl.abs", newest=3):
    """The absolute value. Source: kernels/elementwise.cc."""

    traits = (_UNARY_TOGETHER, *Unary.traits, Misreads("scales"))


class Ceil(Unary, name="tfl.ceil"):
    """Rounded up. Source: kernels/ceil.cc."""


class Cos(Unary, name="tfl.cos"):
    """The cosine. Source: kernels/elementwise.cc."""

    traits = (_UNARY_TOGETHER, *Unary.traits)


class Exp(Unary, name="tfl.exp", newest=2):
    """e to the power of the input. Source: kernels/exp.cc."""

    traits = (
        _UNARY_TOGETHER,
        Int16Symmetric(Unary.input, Unary.output),
        *Unary.traits,
        Misreads("scales", "result type"),
        Unbounded(),
        Interpolates(),
    )


class Floor(Unary, name="tfl.floor"):
    """Rounded down. Source: kernels/floor.cc."""


class Log(Unary, name="tfl.log", newest=2):
    """The natural logarithm. Source: kernels/elementwise.cc."""

    traits = (_UNARY_TOGETHER, *Unary.traits, Misreads("scales"), Unbounded(), Interpolates())


class Neg(Unary, name="tfl.neg"):
    """The negative. Source: kernels/neg.cc."""

    traits = (*Unary.traits, Misreads("scales", "result type"))


class Round(Unary, name="tfl.round"):
    """To the nearest integer, half to even. Source: kernels/round.cc."""


class Rsqrt(Unary, name="tfl.rsqrt", newest=3):
    """One over the square root. Source: kernels/elementwise.cc."""

    traits = (_UNARY_TOGETHER, *Unary.traits, Misreads("scales"), Unbounded(), Interpolates())


class Sign(Unary, name="tfl.sign", newest=2):
    """-1, 0 or 1. Source: kernels/sign.cc."""

    versions = (Needs(2, Unary.input, i32),)


class Sin(Unary, name="tfl.sin"):
    """The sine. Source: kernels/elementwise.cc."""

    traits = (_UNARY_TOGETHER, *Unary.traits)


class Sqrt(Unary, name="tfl.sqrt", newest=2):
    """The square root. Source: kernels/elementwise.cc."""

    traits = (_UNARY_TOGETHER, *Unary.traits, Misreads("scales"), Unbounded())


class Square(Unary, name="tfl.square"):
    """The square. Source: kernels/elementwise.cc."""

    traits = (*Unary.traits, Unbounded())


class ZerosLike(Operator, name="tfl.zeros_like"):
    """Zeros in the shape of the input. Source: kernels/zeros_like.cc."""

    input: Value = operand()
    output: Value = result()
    traits = (Elementwise(input, output),)


# Complex numbers and spectra.


_COMPLEX: Final = Unquantized("its tensors are complex numbers, or floats that become such")


class OfComplex(Operator):
    """A real function of complex numbers, element by element."""

    input: Value = operand()
    output: Value = result()
    traits = (_COMPLEX, Elementwise(input, output, strict=False))


class Real(OfComplex, name="tfl.real"):
    """The real part. Source: kernels/complex_support.cc."""


class Imag(OfComplex, name="tfl.imag"):
    """The imaginary part. Source: kernels/complex_support.cc."""


class ComplexAbs(OfComplex, name="tfl.complex_abs"):
    """The absolute value. Source: kernels/complex_support.cc."""


class RFFT2D(Operator, name="tfl.rfft2d"):
    """The Fourier transform of the last two dims. Source: kernels/rfft2d.cc."""

    input: Value = operand()
    length: Value = operand(indices=True)
    output: Value = result()
    traits = (NonNegative(length), _COMPLEX)

    def infer(self, site: DeclaredShapes) -> Dims:
        height, width = site.ints(self.length, 2)
        return (*site.dims(self.input, least=2)[:-2], height, None if width is None else width // 2 + 1)
