"""Normalization over a dim."""

from __future__ import annotations

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.tfl.parameters import L2_UNIT
from tflq.dialects.traits.quantization import FixedScale, QuantizedTogether
from tflq.dialects.traits.types import SameElementType, SameShape
from tflq.ir.core import Value

__all__ = ["L2Normalization", "LocalResponseNormalization"]


class L2Normalization(Operator, name="tfl.l2_normalization", newest=2):
    """The input over the root of the sum of squares along the last dim. Source: kernels/l2norm.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    fused_activation_function: str = attribute(default="NONE")
    traits = (
        QuantizedTogether(input, output),
        FixedScale(L2_UNIT),
        SameElementType(input, output),
        SameShape(input, output),
    )


class LocalResponseNormalization(Operator, name="tfl.local_response_normalization"):
    """The input over a power of the sum of squares of near channels. Source: kernels/local_response_norm.cc."""

    __slots__ = ()
    input: Value = operand()
    output: Value = result()
    radius: int = attribute(default=0)
    bias: float = attribute(default=0.0, finite=True)
    alpha: float = attribute(default=0.0, finite=True)
    beta: float = attribute(default=0.0, finite=True)
    traits = (SameElementType(input, output), SameShape(input, output))
