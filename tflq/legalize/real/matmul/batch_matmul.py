"""BATCH_MATMUL on types that no kernel computes: the real product, rounded once half away from zero.

    result = round_half_away(sum_k (x[..., m, k] - x_zp) (y[..., k, n] - y_zp[n]) * s_x * s_y[n] / s_out) + zp

A right side may be quantized per column. The sum is exact; a result of int32 is within one count.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.dialects.tfl.matmul import BatchMatMul
from tflq.ir.core import Value
from tflq.ir.types import UniformQuantizedPerAxisType, UniformQuantizedType, i8, i16, i32, i64, ui8
from tflq.legalize.real.generic.requantization import real_requantized
from tflq.legalize.reference.generic.accumulate import scales_of
from tflq.legalize.reference.matmul.batch_matmul import product, sizes_of
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.convolution import double_scales

__all__: list[str] = []

_NOTE = "no kernel computes it; the real product, rounded"
_STORED = (i8, ui8, i16)


@rule(BatchMatMul, order=2)
def real_product(op: BatchMatMul, b: RuleBuilder) -> Answer:
    """tosa.transpose per adjoint, tosa.matmul, ext.rescale_f64."""
    x, y, result = op.lhs, op.rhs, op.result
    source, target = x.type.element, result.type.element
    if not isinstance(source, UniformQuantizedType) or not isinstance(target, UniformQuantizedType):
        raise NotApplicable("the left side or the result is not quantized per layer")
    left = b.value(x)
    filters, zero = _right_side(op, b, y)
    if x.is_constant and source.storage.bits < 8:
        left = b.constant(left.array, i8)
    if left.type.storage not in _STORED or target.storage not in (*_STORED, i32):
        raise NotApplicable(f"no integer form from {source.storage} to {target.storage}")
    if (left.type.storage == i16 and source.zero_point) or (filters.type.storage == i16 and zero):
        raise NotApplicable("int16 with a zero point other than 0")
    sizes = sizes_of(op)
    if sizes.depth is None:
        raise NotApplicable("the number of products in a sum is not known")
    reach = _reach(left, source.zero_point) * _reach(filters, zero) * sizes.depth
    acc = i64 if reach >= 1 << 31 else i32
    right_scales = scales_of(y)
    assert right_scales is not None
    sums = product(op, b, (left, filters), sizes.shape, acc, (source.zero_point, zero))
    scales = double_scales(source.scale, right_scales, target.scale)
    answer = real_requantized(b, sums, scales, target, "NONE", (-reach, reach))
    return Rewritten([answer], note=_NOTE)


def _right_side(op: BatchMatMul, b: RuleBuilder, y: Value) -> tuple[Value, int]:
    """The right side in the integer form and its one zero point."""
    element, rank = y.type.element, y.type.rank or 0
    if not isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType)):
        raise NotApplicable("the right side has no scales per layer or per axis")
    zeros = np.atleast_1d(getattr(element, "zero_points", getattr(element, "zero_point", 0)))
    columns = rank - (2 if op.adj_y else 1)
    if isinstance(element, UniformQuantizedPerAxisType) and element.axis != columns:
        raise NotApplicable(f"the right side is quantized along dim {element.axis}, not along its columns")
    plain, zero, uniform = b.value(y), int(zeros[0]), bool((zeros == zeros[0]).all())
    if uniform and plain.type.storage in _STORED:
        return plain, zero
    if not y.is_constant or plain.type.storage.bits > 16:
        raise NotApplicable(f"the right side is {plain.type.storage}, or its columns have several zero points")
    spread = [-1 if a == columns else 1 for a in range(rank)]
    centred = plain.array.astype(np.int32) - zeros.reshape(spread if zeros.size > 1 else 1)
    if (centred != centred.astype(np.int16)).any():
        raise NotApplicable("the right side less its zero points leaves 16 bits")
    return b.constant(centred, i8 if (centred == centred.astype(np.int8)).all() else i16), 0


def _reach(value: Value, zero: int) -> int:
    """The largest magnitude of the stored integers less their zero point."""
    if value.is_constant and math.prod(value.array.shape):
        return max(int(value.array.max()) - zero, zero - int(value.array.min()), 1)
    storage = value.type.storage
    return max(storage.maximum - zero, zero - storage.minimum)
