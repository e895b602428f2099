"""Float operands of operators that TFLite computes in float on quantized constants (hybrid kernels).

Constants are dequantized once, as the kernels read them: stored * scale in float32, per layer, per axis or per block.
They take no zero point, and bytes of uint8 as int8; where they find no scale they take 0. What parameters say that is
not this has been made float before where it must hold (`tflq.legalize.hybrid`).

Their kernels multiply by activations that they round to 8 bits, by a scale per row of the input or per item of the
batch, as they run. Activations stay float here, which is nearer to the real value; the report says how far that is from
the interpreter's. An activation is rounded by half a step of 1/127 of the largest at most, twice that if the range is
not symmetric.

Sources: kernels/conv.cc, depthwise_conv.cc, transpose_conv.cc, fully_connected.cc, batch_matmul.cc, svdf.cc,
basic_rnn.cc, embedding_lookup.cc, internal/portable_tensor_utils.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.matmul import FullyConnected
from tflq.errors import Refused
from tflq.ir.core import Op, Value, constant
from tflq.ir.parameters import parameters
from tflq.ir.types import UniformQuantizedSubChannelType, f16, f32, i4, ui8
from tflq.tosa.lowering.context import Tosa

__all__ = ["factor", "real"]

_HALF_STEP = 1 / 254
_STEP = 1 / 127
_ROUNDED = (
    "the interpreter's kernel rounds the activations that meet '{}' to 8 bits as it runs, but TOSA's operators do not: "
    "their products are up to {:.3g} times the largest activation apart"
)
_QUANTIZED = "allow for the difference, or quantize the activations as well, which makes both exact"
_BLOCKS = (
    "the interpreter's reference kernel finds no scale of '{}' and gives only the bias; others, and this, take the "
    "scale per block"
)


def real(t: Tosa, operand: Value) -> Value:
    """A float operand as float32; a quantized or half-precision constant as what it stands for to a kernel."""
    if operand.type.quantized:
        if not operand.is_constant:
            raise Refused(f"'{operand.name}' is quantized and not constant")
        stored = np.ascontiguousarray(operand.array)
        scale, _ = parameters(operand.type)
        return constant((stored.view(np.int8) if operand.type.storage == ui8 else stored).astype(np.float32) * scale)
    found = t.value(operand)
    if found.type.storage == f16 and found.is_constant:
        return constant(found.array.astype(np.float32))
    if found.type.storage != f32:
        raise Refused(f"'{operand.name}' is {found.type.storage}, not f32")
    return found


def factor(op: Op, t: Tosa, operand: Value, axis: int) -> Value:
    """An operand of a product as float32. Of quantized weights, whose dim `axis` counts the results, a warning how far
    the product is from the kernel's."""
    found = real(t, operand)
    if not operand.type.quantized:
        return found
    if isinstance(operand.type.element, UniformQuantizedSubChannelType):
        if not (isinstance(op, FullyConnected) and operand.type.storage == i4):
            return constant(np.zeros_like(found.array))  # the kernel finds no scale, and says so
        t.warn(_BLOCKS.format(operand.name), "inexact", "do not compare this with the reference kernels")
    sums = np.abs(found.array).sum(tuple(a for a in range(found.array.ndim) if a != axis % found.array.ndim))
    step = _STEP if getattr(op, "asymmetric_quantize_inputs", False) else _HALF_STEP
    t.warn(_ROUNDED.format(operand.name, float(sums.max(initial=0)) * step), "inexact", _QUANTIZED)
    return found
