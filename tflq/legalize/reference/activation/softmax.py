"""SOFTMAX over the last axis.

8-bit: the differences to the row's maximum index a table of exponentials; the reciprocal of their sum is found by
Newton steps on the sum shifted to 31 bits, then result = round(exp * reciprocal * 2^-(35 - clz(sum))) (8-bit results;
2^-(27 - clz) for int16), plus the least value of the type. int16: table, sum, table of the reciprocal, product. The
kernels disregard the result's scale, and the operand's zero point, which cancels. The kernel aborts when a row of
8-bit results sums to 512 maxima or more.
Source: kernels/internal/reference/softmax.h (Softmax, SoftmaxInt16); arithmetic in `tflq.numerics.softmax`.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.activation import Softmax
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, UniformQuantizedType, i8, i16, i32, ui8
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import per_layer, scaled, symmetric
from tflq.numerics import softmax as numerics
from tflq.numerics.fixed_point import Multiplier, rounding_divide_by_pot

__all__ = ["reciprocal"]

_FORMS: tuple[tuple[ScalarType, ScalarType], ...] = ((i8, i8), (ui8, ui8), (i8, i16), (ui8, i16), (i16, i16))


@rule(Softmax)
def softmax(op: Softmax, b: RuleBuilder) -> Answer:
    """All forms of the kernel."""
    source, output = per_layer(op)
    if (source.storage, output.storage) not in _FORMS:
        raise NotApplicable(f"SOFTMAX has no form for {source.storage} → {output.storage}")
    if not op.input.type.rank:
        raise NotApplicable(f"the rank of '{op.input.name}' is 0 or unknown")
    _check(op, source, output)
    try:
        if source.storage is i16:
            return _softmax_16bit(op, b, numerics.multiplier_16bit(op.beta, source.scale))
        made = _softmax_8bit(op, b, numerics.difference_table(op.beta, source.scale), output.storage)
        other = output.storage is ui8 and (output.scale, output.zero_point) != (1 / 256, 0)
        return Rewritten([made], warning="the kernel ignores the result's scale and zero point" if other else "")
    except ValueError as error:
        raise NotApplicable(f"the kernel refuses these parameters: {error}") from error


def _check(op: Softmax, source: UniformQuantizedType, output: UniformQuantizedType) -> None:
    """The result's parameters, where the kernel checks them: scale 2^-bits, zero point at the least value."""
    storage = output.storage
    if source.storage is i16:
        symmetric(op, source)
    if source.storage != storage or storage is ui8:
        return
    scale, zero_point = (1 / 256, -128) if storage is i8 else (1 / 32768, 0)
    if output.zero_point != zero_point or abs(output.scale - scale) > 0.001 * scale:
        wanted = f"a result of scale {scale:g} and zero point {zero_point}"
        raise NotApplicable(f"SOFTMAX on {storage} demands {wanted}, here {output.scale:g} and {output.zero_point}")


def _constant(b: RuleBuilder, value: int) -> Value:
    return b.constant(np.asarray(value))


def _differences(op: Softmax, b: RuleBuilder) -> Value:
    """x - max of the row, as i32: at most 0."""
    x = b.value(op.input)
    return b.sub(b.cast(x, i32), b.cast(b.reduce("max", x, _last(x)), i32))


def _last(x: Value) -> int:
    return (x.type.rank or 1) - 1


def _softmax_8bit(op: Softmax, b: RuleBuilder, table: np.ndarray, storage: ScalarType) -> Value:
    index = b.cast(b.add(_differences(op, b), _constant(b, 127)), i8)
    terms = b.table(index, rounding_divide_by_pot(table, numerics.ACCUMULATOR_BITS))
    total = b.reduce("sum", terms, _last(terms))
    headroom = b.clz(total)
    inverse = reciprocal(b, b.logical_left_shift(total, b.sub(headroom, _constant(b, 1))))
    exponent = b.sub(_constant(b, numerics.ACCUMULATOR_BITS + 31 - storage.bits), headroom)
    product = b.mul(b.table(index, table), inverse, shift=31)
    result = b.arithmetic_right_shift(product, exponent, round=True)
    if storage.minimum:
        result = b.add(result, _constant(b, storage.minimum))
    return b.cast(b.minimum(result, _constant(b, storage.maximum)), storage)


def reciprocal(b: RuleBuilder, half: Value) -> Value:
    """1 / (2 * half) in Q0.31, saturated, of a value in [1/2, 1) in Q0.31.

    The last doubling saturates: 2 * min(r, 2^30), less one where r reaches 2^30.
    """
    r = b.add(b.mul(half, _constant(b, numerics.NEWTON_SLOPE), shift=31), _constant(b, numerics.NEWTON_OFFSET))
    for _ in range(numerics.NEWTON_STEPS):
        error = b.sub(_constant(b, numerics.NEWTON_ONE), b.mul(half, r, shift=31))
        r = b.add(r, b.mul(b.mul(r, error, shift=31), _constant(b, 4)))
    return b.add(b.minimum(r, _constant(b, 1 << 30)), b.minimum(r, _constant(b, (1 << 30) - 1)))


def _interpolated(b: RuleBuilder, x: Value, table: np.ndarray) -> Value:
    """An int16 table's value: TOSA's 23-bit interpolation, rounded to 16 bits; as i32."""
    return b.arithmetic_right_shift(b.table(x, table), _constant(b, 7), round=True)


def _to_16bit(b: RuleBuilder, x: Value) -> Value:
    return b.cast(b.clamp(x, i16.minimum, i16.maximum), i16)


def _softmax_16bit(op: Softmax, b: RuleBuilder, multiplier: Multiplier) -> Value:
    rescaled = scaled(b, _differences(op, b), multiplier, i32, 1 << 16)
    terms = _interpolated(b, _to_16bit(b, b.add(rescaled, _constant(b, 32767))), numerics.exp_table_16bit())
    total = b.reduce("sum", terms, _last(terms))
    headroom = b.clz(total)
    normal = b.logical_left_shift(total, b.sub(headroom, _constant(b, 1)))
    fraction = b.sub(b.arithmetic_right_shift(normal, _constant(b, 14), round=True), _constant(b, 3 << 15))
    reciprocal = _interpolated(b, _to_16bit(b, fraction), numerics.reciprocal_table_16bit())
    shift = b.sub(_constant(b, 31), headroom)
    result = b.arithmetic_right_shift(b.mul(terms, reciprocal), shift, round=True)
    return b.cast(b.clamp(result, 0, i16.maximum), i16)
