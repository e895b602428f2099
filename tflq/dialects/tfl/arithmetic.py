"""Element by element: arithmetic, functions, activations, comparisons, logic, casts. And normalization over a dim."""

from __future__ import annotations

from typing import ClassVar, Final, TypeAlias

from tflq.dialects.declare import Operator, Trait, attribute, operand, result
from tflq.dialects.inference import Dims, Misfit, Stated, agree, product, text
from tflq.dialects.parameters import (
    FixedScale,
    Int16Symmetric,
    Interpolates,
    Misreads,
    NeedsParameters,
    ParametersUnread,
    QuantizedTogether,
    SameScale,
    SimulatesQuantization,
    Unbounded,
)
from tflq.dialects.tfl import L2_UNIT, LOG_SOFTMAX, SYMMETRIC, UNIT, Needs
from tflq.dialects.traits import (
    Broadcasts,
    ComputedEarly,
    ComputesInFloat,
    ElementTypes,
    Elementwise,
    InPlace,
    KeptIfConstant,
    MovesElements,
    NonNegative,
    SameElementType,
    SameShape,
    SizedBy,
    Undescribed,
    Unquantized,
    View,
)
from tflq.ir.core import Value
from tflq.ir.types import bf16, f16, f32, i2, i4, i8, i16, i32, i64, ui4, ui8, ui16, ui32


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

    traits = (_UNARY_TOGETHER, *Unary.traits, Misreads("scales", "result type"), Unbounded(), Interpolates())


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


# Activations that are operators.


class ScaledActivation(Operator):
    """An activation whose operand and result have scales of their own."""

    input: Value = operand()
    output: Value = result()
    traits: ClassVar[tuple[Trait, ...]] = (
        QuantizedTogether(input, output),
        SameElementType(input, output, unless_quantized=True),
        Misreads("scales"),
        Elementwise(input, output),
    )


class Relu(ScaledActivation, name="tfl.relu", newest=3):
    """max(input, 0). Source: kernels/activations.cc."""


class Relu6(ScaledActivation, name="tfl.relu6", newest=3):
    """The input, clamped to 0 to 6. Source: kernels/activations.cc."""


class ReluN1To1(ScaledActivation, name="tfl.relu_n1_to_1"):
    """The input, clamped to -1 to 1. Source: kernels/activations.cc."""


class Relu0To1(ScaledActivation, name="tfl.relu_0_to_1"):
    """The input, clamped to 0 to 1. Source: kernels/activations.cc."""


class LeakyRelu(ScaledActivation, name="tfl.leaky_relu", newest=2):
    """The input, times alpha where it is negative. Source: kernels/activations.cc."""

    alpha: float = attribute(default=0.0, finite=True)


class Prelu(Operator, name="tfl.prelu"):
    """The input, times the operand alpha where it is negative. Source: kernels/activations.cc."""

    input: Value = operand()
    alpha: Value = operand()
    output: Value = result()
    traits = (
        QuantizedTogether(input, alpha, output),
        SameElementType(input, output, unless_quantized=True),
        SameShape(input, output),
        Misreads("scales", "result type", "floats"),
    )

    def infer(self, site: Stated) -> Dims:
        """The slopes broadcast to the input, never the input to them."""
        dims = site.dims(self.input)
        found = site.broadcast([self.input, self.alpha])
        if len(found) != len(dims):
            raise Misfit(f"alpha {text(site.dims(self.alpha))} has more dims than the input {text(dims)}")
        return tuple(agree(a, b, "input and result") for a, b in zip(dims, found, strict=True))


class Elu(ScaledActivation, name="tfl.elu"):
    """The input, e^input - 1 where it is negative. Source: kernels/activations.cc."""


class Gelu(ScaledActivation, name="tfl.gelu", newest=2):
    """input * Φ(input), Φ the normal distribution or its approximation by tanh. Source: kernels/gelu.cc."""

    approximate: bool = attribute(default=False)
    traits = (*ScaledActivation.traits, Interpolates())


class HardSwish(ScaledActivation, name="tfl.hard_swish"):
    """input * clamp(input + 3, 0, 6) / 6. Source: kernels/activations.cc."""


class Logistic(ScaledActivation, name="tfl.logistic", newest=3):
    """1 / (1 + e^-input). Source: kernels/activations.cc."""

    traits = (*ScaledActivation.traits, FixedScale(UNIT), Interpolates())


class Tanh(ScaledActivation, name="tfl.tanh", newest=3):
    """The hyperbolic tangent. Source: kernels/activations.cc."""

    traits = (*ScaledActivation.traits, FixedScale(SYMMETRIC, unread=(8,)), Interpolates())


Activation: TypeAlias = Relu | Relu6 | ReluN1To1 | Relu0To1 | LeakyRelu | HardSwish | Elu | Gelu | Logistic | Tanh
"""Functions of real numbers that follow a layer, element by element."""


# Normalization over a dim.


class Normalization(Operator):
    """Over a dim, to a scale that the kernel fixes."""

    input: Value = operand()
    output: Value = result()
    traits: ClassVar[tuple[Trait, ...]] = (QuantizedTogether(input, output), SameShape(input, output))


class Softmax(Normalization, name="tfl.softmax", newest=3):
    """e^(beta * input) over its sum along the last dim. Source: kernels/activations.cc."""

    beta: float = attribute(default=0.0, finite=True)
    traits = (*Normalization.traits, FixedScale(UNIT), Misreads("result type"), InPlace(Normalization.input))


class LogSoftmax(Normalization, name="tfl.log_softmax", newest=2):
    """The logarithm of softmax. Source: kernels/activations.cc."""

    traits = (
        *Normalization.traits,
        FixedScale(LOG_SOFTMAX),
        SameElementType(Normalization.input, Normalization.output),
    )


class L2Normalization(Normalization, name="tfl.l2_normalization", newest=2):
    """The input over the root of the sum of squares along the last dim. Source: kernels/l2norm.cc."""

    fused_activation_function: str = attribute(default="NONE")
    traits = (*Normalization.traits, FixedScale(L2_UNIT), SameElementType(Normalization.input, Normalization.output))


class LocalResponseNormalization(Operator, name="tfl.local_response_normalization"):
    """The input over a power of the sum of squares of near channels. Source: kernels/local_response_norm.cc."""

    input: Value = operand()
    output: Value = result()
    radius: int = attribute(default=0)
    bias: float = attribute(default=0.0, finite=True)
    alpha: float = attribute(default=0.0, finite=True)
    beta: float = attribute(default=0.0, finite=True)
    traits = (SameElementType(input, output), SameShape(input, output))


# Comparisons, logic, choices.


class Comparison(Operator):
    """Two tensors, compared element by element."""

    lhs: Value = operand()
    rhs: Value = operand()
    output: Value = result()
    traits = (
        QuantizedTogether(lhs, rhs),
        SameElementType(lhs, rhs, unless_quantized=True),
        Broadcasts(lhs, rhs, output),
    )


class Equal(Comparison, name="tfl.equal", newest=5):
    """lhs = rhs. Source: kernels/comparisons.cc."""


class NotEqual(Comparison, name="tfl.not_equal", newest=4):
    """lhs ≠ rhs. Source: kernels/comparisons.cc."""


class Greater(Comparison, name="tfl.greater", newest=2):
    """lhs > rhs. Source: kernels/comparisons.cc."""


class GreaterEqual(Comparison, name="tfl.greater_equal", newest=3):
    """lhs ≥ rhs. Source: kernels/comparisons.cc."""


class Less(Comparison, name="tfl.less", newest=3):
    """lhs < rhs. Source: kernels/comparisons.cc."""


class LessEqual(Comparison, name="tfl.less_equal", newest=2):
    """lhs ≤ rhs. Source: kernels/comparisons.cc."""


class _Logical(Operator):
    """Two truth values, combined."""

    lhs: Value = operand()
    rhs: Value = operand()
    output: Value = result()
    traits = (Broadcasts(lhs, rhs, output), Unquantized("its tensors are truth values"))


class LogicalAnd(_Logical, name="tfl.logical_and"):
    """Whether both are true. Source: kernels/logical.cc."""


class LogicalOr(_Logical, name="tfl.logical_or"):
    """Whether one is true. Source: kernels/logical.cc."""


class LogicalNot(Operator, name="tfl.logical_not"):
    """Whether it is false. Source: kernels/elementwise.cc."""

    input: Value = operand()
    output: Value = result()
    traits = (Unquantized("its tensors are truth values"), Elementwise(input, output))


class Choice(Operator):
    """One of two elements by a condition. Of one element each, the result is left the rank that it states."""

    condition: Value = operand()
    on_true: Value = operand()
    on_false: Value = operand()
    output: Value = result()
    traits: ClassVar[tuple[Trait, ...]] = (
        SameScale(on_true, on_false, output),
        SameElementType(on_true, on_false, output),
        Misreads("copied"),
        MovesElements(on_true, on_false),
    )

    def infer(self, site: Stated) -> Dims:
        operands, stated = [self.condition, self.on_true, self.on_false], self.output.type.shape
        if stated is not None and all(product(shape) == 1 for shape in (stated, *map(site.dims, operands))):
            return (1,) * len(stated)
        return self.chosen(site)

    def chosen(self, site: Stated) -> Dims:
        """The shape of more elements, or of a result that states none."""
        raise NotImplementedError


class Select(Choice, name="tfl.select", newest=4):
    """on_true where the condition holds, else on_false; all of one shape, or a condition of rows. Source:
    kernels/select.cc."""

    versions = (Needs(3, rank=5),)

    def chosen(self, site: Stated) -> Dims:
        """A condition of rank 1 chooses rows."""
        return site.common([self.on_true, self.on_false])


class SelectV2(Choice, name="tfl.select_v2", newest=2):
    """on_true where the condition holds, else on_false; operands broadcast. Source: kernels/select.cc."""

    traits = (
        *Choice.traits,
        Broadcasts(Choice.condition, Choice.on_true, Choice.on_false, Choice.output, strict=False),
    )

    def chosen(self, site: Stated) -> Dims:
        return site.broadcast([self.condition, self.on_true, self.on_false])


class Where(Operator, name="tfl.where", newest=2):
    """The indices of the elements that are true. Source: kernels/where.cc."""

    condition: Value = operand()
    output: Value = result()
    traits = (SizedBy(condition),)
    versions = (Needs(2, condition, i8), Needs(2, condition, ui8), Needs(2, condition, i32), Needs(2, condition, i64))

    def infer(self, site: Stated) -> Dims:
        """As many rows as there are true elements."""
        found = site.array(self.condition)
        return (None if found is None else int((found != 0).sum()), len(site.dims(self.condition)))


# Bits of integers.


class BitwiseXor(Operator, name="tfl.bitwise_xor"):
    """Bits that differ. Source: kernels/bitwise_xor.cc."""

    lhs: Value = operand()
    rhs: Value = operand()
    output: Value = result()
    traits = (SameElementType(lhs, rhs, output), Broadcasts(lhs, rhs, output), Misreads("result type"))


class RightShift(Operator, name="tfl.right_shift"):
    """lhs shifted right by rhs bits; the sign stays. Source: kernels/right_shift.cc."""

    lhs: Value = operand()
    rhs: Value = operand()
    output: Value = result()
    traits = (Broadcasts(lhs, rhs, output), Misreads("result type"))


class Bitcast(Operator, name="tfl.bitcast"):
    """The same bytes as another type. Source: kernels/bitcast.cc."""

    input: Value = operand()
    output: Value = result()
    traits = (View(input), ParametersUnread(input, output))

    def infer(self, site: Stated) -> Dims:
        """Between widths the last dim appears or goes."""
        dims = site.dims(self.input)
        before, after = self.input.type.storage.bits, self.result.type.storage.bits
        if before > after:
            return (*dims, before // after)
        if before < after:
            agree(dims[-1] if dims else None, after // before, "last dim")
            return dims[:-1]
        return dims


# Between element types.


class Cast(Operator, name="tfl.cast", newest=9):
    """The numbers in another type. Source: kernels/cast.cc."""

    input: Value = operand()
    output: Value = result()
    in_data_type: str = attribute(default="FLOAT32")
    out_data_type: str = attribute(default="FLOAT32")
    traits = (
        Undescribed(),
        Misreads("packed"),
        ParametersUnread(input, output),
        ComputesInFloat(),
        Elementwise(input, output),
    )
    versions = (
        Needs(8, input, i2),
        Needs(8, output, i2),
        Needs(6, input, i4),
        Needs(6, output, i4),
        Needs(4, input, ui16),
        Needs(4, output, ui16),
        Needs(3, input, i8),
        Needs(3, output, i8),
        Needs(2, input, ui32),
        Needs(2, output, ui32),
    )


class Quantize(Operator, name="tfl.quantize", newest=6):
    """Real numbers, or quantized ones of other parameters, as quantized numbers. Source: kernels/quantize.cc."""

    input: Value = operand()
    output: Value = result()
    traits = (
        ElementTypes(output, i2, i4, ui4, i8, ui8, i16, ui16, i32),
        NeedsParameters(output),
        Misreads("scales"),
        ComputesInFloat(),
        Elementwise(input, output),
    )


class Dequantize(Operator, name="tfl.dequantize", newest=9):
    """Quantized numbers as real ones. Source: kernels/dequantize.cc."""

    input: Value = operand()
    output: Value = result()
    traits = (
        ElementTypes(input, i2, i4, ui4, i8, ui8, i16, f16, bf16),
        ElementTypes(output, f32, f16, bf16),
        NeedsParameters(input),
        ComputesInFloat(),
        Elementwise(input, output),
        KeptIfConstant(input),
    )


class FakeQuant(Operator, name="tfl.fake_quant", newest=2):
    """Real numbers, rounded as if they were quantized. Source: kernels/fake_quant.cc."""

    input: Value = operand()
    output: Value = result()
    min: float = attribute(default=0.0, finite=True)
    max: float = attribute(default=0.0, finite=True)
    num_bits: int = attribute(default=0)
    narrow_range: bool = attribute(default=False)
    traits = (
        Misreads("floats"),
        Elementwise(input, output, strict=False),
        SimulatesQuantization(input, min, max, signed=True),
    )


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

    def infer(self, site: Stated) -> Dims:
        height, width = site.ints(self.length, 2)
        return (*site.dims(self.input, least=2)[:-2], height, None if width is None else width // 2 + 1)
