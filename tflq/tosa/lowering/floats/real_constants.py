"""Float operands of operators that TFLite computes in float on quantized constants (hybrid kernels).

Their kernels quantize the activations as they run, or dequantize the constants; here constants are dequantized once:

    (stored - zero_point) * scale        in float32, per layer or per axis
"""

from __future__ import annotations

import numpy as np

from tflq.ir.core import Value, constant
from tflq.ir.parameters import parameters
from tflq.ir.types import f16, f32
from tflq.tosa.lowering.context import Refused, Tosa

__all__ = ["real"]


def real(t: Tosa, operand: Value) -> Value:
    """A float operand as float32; a quantized or half-precision constant as what it stands for."""
    if operand.type.quantized:
        if not operand.is_constant:
            raise Refused(f"'{operand.name}' is quantized and not constant")
        t.note(f"'{operand.name}' is dequantized, the activations stay float: the interpreter may quantize them")
        scale, zero = parameters(operand.type)
        return constant((operand.array.astype(np.int32) - zero).astype(np.float32) * scale)
    found = t.value(operand)
    if found.type.storage == f16 and found.is_constant:
        return constant(found.array.astype(np.float32))
    if found.type.storage != f32:
        raise Refused(f"'{operand.name}' is {found.type.storage}, not f32")
    return found
