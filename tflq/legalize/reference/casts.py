"""QUANTIZE, DEQUANTIZE and CAST.

    float → integer      quant.qcast: clamp(round_half_away(x / scale) + zero_point), per layer or per axis
    integer → integer    (x - z1) * input / output + z, one RESCALE; so int16 and int32 to uint8, which the kernel
                         does not take, too (per axis: `real.unary`)
    integer → float      quant.dcast: (x - zero_point) * scale, per layer or per axis

Sources: kernels/quantize.cc, dequantize.h, cast.cc, kernels/internal/reference/quantize.h, requantize.h, dequantize.h.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.casts import Cast, Dequantize, Quantize
from tflq.dialects.tfl.runtime import version_info
from tflq.errors import Refused
from tflq.ir.parameters import parameters
from tflq.ir.types import ScalarType, f16, f32, i1, i8, i16, i32, ui8
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import per_layer, scaled, symmetric
from tflq.numerics.quantize import requantize_multiplier

__all__: list[str] = []

_CAST = "the kernel converts the stored integers and ignores scales and zero points"

_REQUANTIZED: dict[ScalarType, tuple[ScalarType, ...]] = {
    i8: (i8, ui8, i16),
    ui8: (i8, ui8, i16),
    i16: (i8, ui8, i16, i32),
    i32: (i8, ui8, i16),
}
"""Result types of each integer operand type."""


@rule(Quantize)
def quantize(op: Quantize, b: RuleBuilder) -> Answer:
    """Float to integer, or integer to integer."""
    source, result = op.input, op.result
    if source.type.storage.is_float:
        if source.type.storage != f32:
            raise Refused(f"no kernel quantizes '{source.name}' of {source.type.storage}", "cast it to f32 first")
        cast = b.qcast(b.value(source), result.type)
        return b.scast(cast, cast.type.stripped())
    first, output = per_layer(op)
    storage = first.storage
    if output.storage not in _REQUANTIZED.get(storage, ()):
        raise NotApplicable(f"QUANTIZE has no form for {storage} → {output.storage}")
    if storage is i16 and output.storage is i16:
        symmetric(op, first, output)
    multiplier = requantize_multiplier(first.scale, output.scale)
    x, bound, zeros = b.value(source), 1 << storage.bits, (first.zero_point, output.zero_point)
    return scaled(b, x, multiplier, output.storage, bound, input_zp=zeros[0], output_zp=zeros[1])


@rule(Dequantize)
def dequantize(op: Dequantize, b: RuleBuilder) -> Answer:
    """Integer to float32, which is cast where the model states floats of another width."""
    kind = op.result.type.storage
    if kind not in (f32, f16):
        raise Refused(f"no kernel makes '{op.result.name}' of {kind}", "make it f32 and cast it")
    made = b.dcast(b.typed(op.input))
    return made if kind == f32 else b.emit(Cast, [made], made.type.with_element(kind))


@rule(Cast)
def cast(op: Cast, b: RuleBuilder) -> Answer:
    """result = the stored integers, converted: the kernel knows no scales; floats are truncated, and saturate."""
    x, result = op.input, op.result
    storage = result.type.storage
    whole = x.type.storage.is_float and storage.bits < 32
    type = result.type.with_element(i32) if whole else result.type.stripped()
    made = b.op(Cast, [b.value(x)], [type], op.attributes, version_info(op)).result
    if whole:
        made = b.cast(b.clamp(made, storage.minimum, storage.maximum), storage)
    return Rewritten([made], warning="" if _stored_is_real(op) else _CAST)


def _stored_is_real(op: Cast) -> bool:
    """Whether a CAST of stored integers is one of what they stand for: they are the same, or so are all parameters, or
    only what is 0 counts."""
    source, target = op.input.type, op.output.type
    if source.quantized and source.element == target.element:
        return True
    for scale, zero_point in (parameters(t) for t in (source, target) if t.quantized):
        if np.any(zero_point) or (target.storage != i1 and np.any(scale != 1)):
            return False
    return True
