"""Elementwise arithmetic of two operands, and sums of several."""

from __future__ import annotations

from typing import ClassVar, Final

from tflq.dialects.declare import Operator, Trait, attribute, operand, result
from tflq.dialects.tfl import Needs
from tflq.dialects.traits.operands import ComputedEarly, InPlace
from tflq.dialects.traits.quantization import Int16Symmetric, Misreads, QuantizedTogether, SameScale, Unbounded
from tflq.dialects.traits.types import Broadcasts, Elementwise, SameElementType
from tflq.ir.core import Value
from tflq.ir.types import f32, i8, i16, i64, ui32


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
    traits = (Elementwise(inputs, output, strict=False),)
