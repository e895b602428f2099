"""Between element types."""

from __future__ import annotations

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.tfl import Needs
from tflq.dialects.traits.operands import ComputesInFloat, KeptIfConstant, Undescribed
from tflq.dialects.traits.quantization import Misreads, NeedsParameters, ParametersUnread, SimulatesQuantization
from tflq.dialects.traits.types import ElementTypes, Elementwise
from tflq.ir.core import Value
from tflq.ir.types import bf16, f16, f32, i2, i4, i8, i16, i32, ui4, ui8, ui16, ui32


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
