"""Complex numbers and spectra."""

from __future__ import annotations

from typing import Final

from tflq.dialects.declare import Operator, operand, result
from tflq.dialects.inference import Dims, Stated
from tflq.dialects.traits.operands import NonNegative, Unquantized
from tflq.dialects.traits.types import Elementwise
from tflq.ir.core import Value

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
