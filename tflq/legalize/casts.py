"""QUANTIZE, DEQUANTIZE and CAST; the casts of `quant`; resource variables.

    float → integer      quant.qcast: clamp(round_half_away(x / scale) + zero_point), per layer or per axis
    integer → integer    (x - z1) * input / output + z, one RESCALE; also int16 and int32 to uint8, which the kernel
                         does not take (per axis: `arithmetic_real.py`)
    integer → float      quant.dcast: (x - zero_point) * scale, per layer or per axis

Sources: kernels/quantize.cc, dequantize.h, cast.cc, kernels/internal/reference/quantize.h, requantize.h, dequantize.h.
"""

from __future__ import annotations

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.quant import Dcast, Qcast, Scast
from tflq.dialects.tfl.arithmetic import Mul
from tflq.dialects.tfl.casts import Bitcast, Cast, Dequantize, Quantize
from tflq.dialects.tfl.state import AssignVariable, ReadVariable
from tflq.ir.ops import Value
from tflq.ir.types import (
    ElementType,
    ScalarType,
    TensorType,
    UniformQuantizedType,
    f16,
    f32,
    i1,
    i8,
    i16,
    i32,
    parameters,
    ui8,
)
from tflq.legalize.movement import COPIED, emit_unchanged
from tflq.legalize.probing import centred, per_layer, requantized_if_plain, scaled, sloped, symmetric
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.reference import Slopes

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
        return _quantized(b, b.value(source), result.type)
    first, output = per_layer(op)
    storage = first.storage
    if output.storage not in _REQUANTIZED.get(storage, ()):
        raise NotApplicable(f"QUANTIZE has no form for {storage} → {output.storage}")
    if storage is i16 and output.storage is i16:
        symmetric(op, first, output)
    multiplier = b.kernel_set.requantization(first, output)
    if isinstance(multiplier, Slopes):
        return sloped(b, centred(b, source, first), multiplier, output)
    zeros = first.zero_point, output.zero_point
    x, bound = b.value(source), 1 << storage.bits
    return scaled(b, x, multiplier, output.storage, bound, input_zp=zeros[0], output_zp=zeros[1])


def _quantized(b: RuleBuilder, x: Value, type: TensorType) -> Value:
    """Floats quantized: divided by the scale, or by the reciprocal of one."""
    element = type.element
    reciprocal = b.kernel_set.reciprocal(element) if isinstance(element, UniformQuantizedType) else None
    if reciprocal is None:
        cast = b.qcast(x, type)
    else:
        assert isinstance(element, UniformQuantizedType)
        steps = UniformQuantizedType.of(type.storage, 1.0, element.zero_point)
        counts = b.emit(Mul, [x, b.constant(reciprocal, f32)], x.type, fused_activation_function="NONE")
        cast = b.emit(Qcast, [counts], type.with_element(steps))  # it saturates, and rounds halves to even
    return b.scast(cast, cast.type.stripped())


@rule(Dequantize)
def dequantize(op: Dequantize, b: RuleBuilder) -> Answer:
    """Integer to float32, which is cast where the model has floats of another width."""
    kind = op.result.type.storage
    if kind not in (f32, f16):
        raise Refused(f"no kernel makes '{op.result.name}' of {kind}", "make it f32 and cast it")
    real = b.dcast(b.typed(op.input))
    return real if kind == f32 else b.emit(Cast, [real], real.type.with_element(kind))


@rule(Cast)
def cast(op: Cast, b: RuleBuilder) -> Answer:
    """result = the stored integers, converted: the kernel ignores scales; floats are truncated, and saturate."""
    x, result = op.input, op.result
    storage = result.type.storage
    whole = x.type.storage.is_float and storage.bits < 32
    type = result.type.with_element(i32) if whole else result.type.stripped()
    converted = emit_unchanged(op, b, [b.value(x)], [type])[0]
    if whole:
        converted = b.cast(b.clamp(converted, storage.minimum, storage.maximum), storage)
    return Rewritten([converted], warning="" if _stored_is_real(op) else _CAST)


def _stored_is_real(op: Cast) -> bool:
    """Whether a CAST of stored integers is also one of the numbers they stand for: these are the same, or both have the
    same parameters, or it only matters which are 0."""
    source, target = op.input.type, op.output.type
    if source.quantized and source.element == target.element:
        return True
    for scale, zero_point in (parameters(t) for t in (source, target) if t.quantized):
        if np.any(zero_point) or (target.storage != i1 and np.any(scale != 1)):
            return False
    return True


# The casts of `quant`, as the evaluator has them: a qcast without a rounding rounds the quotient half to even.
#
# The integers of `quant.scast` are signless: those of an unsigned storage type are the same bits.


@rule(Dcast)
def dcast(op: Dcast, b: RuleBuilder) -> Answer:
    """(stored - zero_point) * scale"""
    return b.dcast(b.typed(op.input))


@rule(Qcast)
def qcast(op: Qcast, b: RuleBuilder) -> Answer:
    """clamp(round(x / scale) + zero_point)"""
    if op.sum_rounding is not None:
        what = "quant.qcast that rounds the sum with the zero point has no form of its own"
        raise Refused(what, "write it out first: tflq opt -p lower-quant-ops")
    quantized = b.qcast(b.value(op.input), op.result.type, op.rounding or "half_even")
    return b.scast(quantized, quantized.type.stripped())


@rule(Scast)
def scast(op: Scast, b: RuleBuilder) -> Answer:
    """The stored integers."""
    x, storage = b.value(op.input), op.result.type.storage
    return x if x.type.storage == storage else b.emit(Bitcast, [x], x.type.with_element(storage))


# Resource variables: READ_VARIABLE and ASSIGN_VARIABLE copy stored integers, whatever parameters they had.
#
# Where parameters must hold, a variable has those under which it is written first; values written or read under others
# are requantized. Sources: kernels/read_variable.cc, assign_variable.cc.


@rule(AssignVariable)
def assign(op: AssignVariable, b: RuleBuilder) -> Answer:
    """The variable = the stored integers."""
    handle, value = op.resource, op.value
    plain, element = b.value(value), value.type.element
    stored = next(iter(b.variables.elements(handle)), element)
    if b.real and stored != element:
        plain = _under(b, plain, element, stored, value, "written")
    emit_unchanged(op, b, [handle, plain])
    return []


@rule(ReadVariable)
def read(op: ReadVariable, b: RuleBuilder) -> Answer:
    """result = the integers stored in the variable."""
    element, written = op.result.type.element, b.variables.elements(op.resource)
    stored = emit_unchanged(op, b, [op.resource])[0]
    if all(other == element for other in written):
        return stored
    if not b.real:
        return Rewritten([stored], warning=COPIED)
    return stored if written[0] == element else _under(b, stored, written[0], element, op.result, "read")


def _under(b: RuleBuilder, plain: Value, source: ElementType, target: ElementType, value: Value, done: str) -> Value:
    """Stored integers under other parameters; Refused where no table does that."""
    requantized = requantized_if_plain(b, plain, source, target)
    if requantized is not None:
        return requantized
    raise Refused(
        f"'{value.name}' is {done} under other parameters than its variable has, and not per layer in 8 or 16 bits",
        "give both the same parameters, or convert with semantics 'interpreter', which copies the integers",
    )
