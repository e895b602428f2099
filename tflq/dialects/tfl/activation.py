"""Activations that are operators, and normalization over a dim."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from tflq.dialects.declare import Operator, Trait, attribute, operand, result
from tflq.dialects.inference import DeclaredShapes, Dims, Misfit, agree, text
from tflq.dialects.parameters import FixedScale, Interpolates, Misreads, QuantizedTogether
from tflq.dialects.tfl import L2_UNIT, LOG_SOFTMAX, SYMMETRIC, UNIT
from tflq.dialects.traits import Elementwise, InPlace, RankWithin, SameElementType, SameShape
from tflq.ir.ops import Value


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

    def infer(self, site: DeclaredShapes) -> Dims:
        """The slopes broadcast to the input, never the input to them."""
        dims = site.dims(self.input)
        joined = site.broadcast([self.input, self.alpha])
        if len(joined) != len(dims):
            raise Misfit(f"alpha {text(site.dims(self.alpha))} has more dims than the input {text(dims)}")
        return tuple(agree(a, b, "input and result") for a, b in zip(dims, joined, strict=True))


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
    traits: ClassVar[tuple[Trait, ...]] = (
        QuantizedTogether(input, output),
        SameShape(input, output),
    )


class Softmax(Normalization, name="tfl.softmax", newest=3):
    """e^(beta * input) over its sum along the last dim. Source: kernels/activations.cc."""

    beta: float = attribute(default=0.0, finite=True)
    traits = (
        *Normalization.traits,
        FixedScale(UNIT),
        Misreads("result type"),
        RankWithin(Normalization.input, 1),
        InPlace(Normalization.input),
    )


class LogSoftmax(Normalization, name="tfl.log_softmax", newest=2):
    """The logarithm of softmax. Source: kernels/activations.cc."""

    traits = (
        *Normalization.traits,
        FixedScale(LOG_SOFTMAX),
        SameElementType(Normalization.input, Normalization.output),
    )


class L2Normalization(Normalization, name="tfl.l2_normalization", newest=2):
    """The input over the root of the sum of squares along the last dim. Source: kernels/l2norm.cc."""

    fused_activation_function: str = attribute(default="NONE", among=("NONE",))
    traits = (
        *Normalization.traits,
        FixedScale(L2_UNIT),
        RankWithin(Normalization.input, 1),
        SameElementType(Normalization.input, Normalization.output),
    )


class LocalResponseNormalization(Operator, name="tfl.local_response_normalization"):
    """The input over a power of the sum of squares of near channels. Source: kernels/local_response_norm.cc."""

    input: Value = operand()
    output: Value = result()
    radius: int = attribute(default=0)
    bias: float = attribute(default=0.0, finite=True)
    alpha: float = attribute(default=0.0, finite=True)
    beta: float = attribute(default=0.0, finite=True)
    traits = (RankWithin(input, 4, 4), SameElementType(input, output), SameShape(input, output))
