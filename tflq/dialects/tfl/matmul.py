"""Products of matrices."""

from __future__ import annotations

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.tfl.versions import Needs
from tflq.dialects.traits.kernels import HybridKernel, Misreads
from tflq.dialects.traits.quantization import Int16Symmetric, MultiplyAccumulate, ParametersUnread, QuantizedTogether
from tflq.ir.core import Value
from tflq.ir.types import i2, i4, i8, i16, ui8

__all__ = ["BatchMatMul", "FullyConnected"]


class FullyConnected(Operator, name="tfl.fully_connected", newest=14):
    """input × weightsᵀ + bias; weights are [outputs, inputs]. Source: kernels/fully_connected.cc."""

    __slots__ = ()
    input: Value = operand()
    weights: Value = operand()
    bias: Value | None = operand(optional=True)
    output: Value = result()
    shuffled: Value | None = result(optional=True)
    fused_activation_function: str = attribute(default="NONE")
    weights_format: str = attribute(default="DEFAULT")
    keep_num_dims: bool = attribute(default=False)
    asymmetric_quantize_inputs: bool = attribute(default=False)
    quantized_bias_type: str = attribute(default="FLOAT32")
    traits = (
        MultiplyAccumulate(input, weights, bias, axis=0, strict=True, takes_zero_point=True),
        QuantizedTogether(input, weights, output),
        Int16Symmetric(input, output),
        HybridKernel((i2, i4, i8, ui8), blockwise=(i4,), scaleless=(i8,), symmetric=(i2, i4)),
    )


class BatchMatMul(Operator, name="tfl.batch_matmul", newest=4):
    """lhs × rhs of the last two dims; the others broadcast. Source: kernels/batch_matmul.cc."""

    __slots__ = ()
    lhs: Value = operand()
    rhs: Value = operand()
    output: Value = result()
    adj_x: bool = attribute(default=False)
    adj_y: bool = attribute(default=False)
    asymmetric_quantize_inputs: bool = attribute(default=False)
    traits = (
        Int16Symmetric(lhs, rhs, output),
        Misreads("scales"),
        HybridKernel((i8,), scaleless=(i8,)),
        ParametersUnread(lhs, rhs),
    )
    versions = (Needs(3, lhs, i16), Needs(2, lhs, i8))
