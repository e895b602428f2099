"""Products of matrices."""

from __future__ import annotations

from tflq.dialects.declare import Operator, attribute, operand, result
from tflq.dialects.inference import Dims, Stated, agree, product
from tflq.dialects.sizes import matrix_product
from tflq.dialects.tfl.versions import Needs
from tflq.dialects.traits.kernels import HybridKernel, Misreads
from tflq.dialects.traits.quantization import Int16Symmetric, MultiplyAccumulate, ParametersUnread, QuantizedTogether
from tflq.ir.core import Value
from tflq.ir.types import Shape, i2, i4, i8, i16, ui8

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

    def infer(self, site: Stated) -> list[Shape]:
        """All elements in rows of the weights' length, unless the dims are to be kept; the kernel leaves out what does
        not fill the last row."""
        dims = site.dims(self.input)
        units, length = site.dims(self.weights, 2)
        spare = [v.type.shape for v in self.results[1:]]
        if self.keep_num_dims:
            agree(dims[-1] if dims else None, length, "the input's last dim and the weights' length")
            return [(*dims[:-1], units), *spare]
        total = product(dims)
        if total is not None and length:
            return [(total // length, units), *spare]
        if dims and dims[-1] is not None and dims[-1] == length:
            return [(product(dims[:-1]), units), *spare]
        return [(None, units), *spare]


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

    def infer(self, site: Stated) -> Dims:
        a, b = site.dims(self.lhs), site.dims(self.rhs)
        a = (*a[:-2], *reversed(a[-2:])) if self.adj_x else a
        return matrix_product(a, (*b[:-2], *reversed(b[-2:])) if self.adj_y else b)
