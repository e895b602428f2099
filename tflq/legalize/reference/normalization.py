"""L2_NORMALIZATION over the last axis.

    s = sum of (x - zero_point)^2;  y = (x - zero_point) / sqrt(s) * 128 + the result's zero point

1 / sqrt(s) is a mantissa m and a right shift e, for every row: s is brought into [2^27, 2^29) by an even shift; five
Newton steps from 1 in Q3.28, r = 3/2 r - s/2 r^3, none of which saturates, give the mantissa. s of 0 counts as 1, whose
mantissa is the greatest. y is rounded twice: int8 takes the factor of 128 off the shift, uint8 multiplies by it first.
Source: kernels/l2norm.cc, kernels/internal/reference/l2normalization.h, integer_ops/l2normalization.h,
kernels/internal/common.h (GetInvSqrtQuantizedMultiplierExp).
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.normalization import L2Normalization
from tflq.ir.core import Value
from tflq.ir.types import UniformQuantizedType, i8, i32, ui8
from tflq.legalize.reference.generic.moved_parameters import seen_by_kernel
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import per_layer, rounding_shift

__all__ = ["inverse_square_root"]

_RAW = "the kernel ignores the operand's several scales and their zero points"
_BITS = 7
"""The result's scale is 2^-7."""
_GREATEST = (1 << 31) - 1
_ONE, _HALF_OF_THREE, _HALF_SQRT_2 = 1 << 28, (1 << 28) + (1 << 27), 1518500250


@rule(L2Normalization)
def l2_normalization(op: L2Normalization, b: RuleBuilder) -> Answer:
    """The kernel's fixed-point arithmetic, row by row."""
    elements = per_layer(op, op.results)
    (output,), operand = elements, op.input
    storage = output.storage
    if operand.type.storage != storage or storage not in (i8, ui8):
        raise NotApplicable(f"L2_NORMALIZATION has no kernel for {operand.type.storage} → {storage}")
    zero_point = 128 if storage is ui8 else 0
    if output.scale != 2.0**-_BITS or output.zero_point != zero_point:
        wanted = f"a result of scale 2^-{_BITS} and zero point {zero_point}"
        raise NotApplicable(f"L2_NORMALIZATION demands {wanted}, here {output.scale:g} and {output.zero_point}")
    rank = operand.type.rank
    if not rank:
        raise NotApplicable(f"the rank of '{operand.name}' is 0 or unknown")
    x, zero = b.cast(b.value(operand), i32), seen_by_kernel(operand)[1]
    x = b.sub(x, _constant(b, zero)) if zero else x
    mantissa, shift = inverse_square_root(b, b.reduce("sum", b.mul(x, x), rank - 1))
    if storage is ui8:
        x = b.mul(x, _constant(b, 1 << _BITS))
    else:
        x = b.logical_left_shift(x, b.maximum(b.sub(_constant(b, _BITS), shift), _constant(b, 0)))
        shift = b.maximum(b.sub(shift, _constant(b, _BITS)), _constant(b, 0))
    y = rounding_shift(b, b.mul(x, mantissa, shift=31), shift)
    if zero_point:
        y = b.add(y, _constant(b, zero_point))
    made = b.cast(b.clamp(y, storage.minimum, storage.maximum), storage)
    return Rewritten([made], warning="" if isinstance(operand.type.element, UniformQuantizedType) else _RAW)


def _constant(b: RuleBuilder, value: int) -> Value:
    return b.constant(np.asarray(value))


def inverse_square_root(b: RuleBuilder, s: Value) -> tuple[Value, Value]:
    """Mantissa and right shift of 1 / sqrt(s); 0 and 1, and a sum that wrapped, have the greatest mantissa."""
    positive = b.maximum(s, _constant(b, 2))
    large = b.greater_equal(positive, _constant(b, 1 << 29))
    quarters = b.select(large, _constant(b, 1), _constant(b, 0))
    positive = b.arithmetic_right_shift(positive, b.add(quarters, quarters))
    pairs = b.arithmetic_right_shift(b.sub(b.clz(positive), _constant(b, 3)), _constant(b, 1))
    half = rounding_shift(b, b.logical_left_shift(positive, b.add(pairs, pairs)), 2)
    r = _constant(b, _ONE)
    for _ in range(5):
        cube = b.mul(b.mul(b.mul(r, r, shift=31), r, shift=31), _constant(b, 1 << 6))
        step = b.sub(b.mul(r, _constant(b, _HALF_OF_THREE), shift=31), b.mul(half, cube, shift=31))
        r = b.mul(step, _constant(b, 1 << 3))
    shift = b.sub(b.add(quarters, _constant(b, 11)), pairs)
    back = b.maximum(b.sub(_constant(b, 0), shift), _constant(b, 0))
    mantissa = b.logical_left_shift(b.mul(r, _constant(b, _HALF_SQRT_2), shift=31), back)
    one = b.greater(_constant(b, 2), s)
    return b.select(one, _constant(b, _GREATEST), mantissa), b.maximum(shift, _constant(b, 0))
