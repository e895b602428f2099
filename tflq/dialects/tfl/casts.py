"""Between element types, and between real numbers and quantized ones."""

from __future__ import annotations

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.inference import DeclaredShapes, Dims, Misfit, agree
from tflq.dialects.parameters import Misreads, NeedsParameters, ParametersUnread, SimulatesQuantization
from tflq.dialects.tfl import Needs
from tflq.dialects.traits import ComputesInFloat, ElementTypes, Elementwise, PersistentIfConstant, Undescribed, View
from tflq.ir.ops import Value
from tflq.ir.types import bf16, f16, f32, i2, i4, i8, i16, i32, ui4, ui8, ui16, ui32


class Bitcast(Operator, name="tfl.bitcast"):
    """The bytes of a tensor as another type. Source: kernels/bitcast.cc."""

    input: Value = operand()
    output: Value = result()
    traits = (View(input), ParametersUnread(input, output))

    def infer(self, site: DeclaredShapes) -> Dims:
        """Between widths the last dim appears or goes."""
        dims = site.dims(self.input)
        before, after = self.input.type.storage.bits, self.result.type.storage.bits
        if not before or not after:
            raise Misfit(f"{self.input.type.storage} and {self.result.type.storage} have no bits to compare")
        if before > after:
            return (*dims, before // after)
        if before < after:
            agree(dims[-1] if dims else None, after // before, "last dim")
            return dims[:-1]
        return dims


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
        PersistentIfConstant(input),
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
