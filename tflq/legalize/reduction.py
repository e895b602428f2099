"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, ARG_MAX and ARG_MIN.

    MEAN, SUM    result = clamp(multiply(sum of stored - zero_point_in * count) + zero_point_out)
    MAX, MIN     result = the extreme stored integer; requantized where the result has other parameters (no kernel does)
    PROD         result = clamp(multiply(... multiply(multiply(d[0] * d[1]) * d[2]) ...) + zero_point_out)

where d is stored - zero_point_in. The sum is in int32 and wraps. Axes may be negative and may repeat.

ARG_MAX and ARG_MIN give the first index of the greatest or least stored integer. Scales are positive, so with a single
one along the axis stored integers are in the order of the values; the kernels ignore others. They take no int16, which
is compared in the same way. ARG_MIN is ARGMAX of the complement. Sources: kernels/reduce.cc,
kernels/internal/reference/reduce.h, kernels/arg_min_max.cc, kernels/internal/optimized/optimized_ops.h (ArgMinMax).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Literal, NamedTuple

import numpy as np

from tflq.dialects.quant import RescaleMean
from tflq.dialects.tfl.movement import Unpack
from tflq.dialects.tfl.pooling import (
    ArgMax,
    ArgMin,
    Mean,
    NumberReduction,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    Sum,
    TopKV2,
)
from tflq.dialects.tosa.elementwise import BitwiseNot
from tflq.dialects.tosa.movement import ArgMax as TosaArgMax
from tflq.ir.ops import Value
from tflq.ir.types import TensorType, UniformQuantizedType, i8, i16, i32, i64, ui8
from tflq.legalize.movement import move
from tflq.legalize.probing import centred, per_layer, scaled
from tflq.legalize.rescaled import multiplied
from tflq.legalize.rule import FOLLOWS_PARAMETERS, Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.convolution import product_bounds

_FACTORS = 64
"""REDUCE_PROD of more factors than this is left to the fallback: each is ten kernels."""

_WIDE_PRODUCT = "the scaled product can exceed the 32 bits that the kernel has for it"
_MOST_SHIFT = 29
"""A sum of n offsets of k bits is below 2^(k + 1) n; the mean's shift to the left is log2(n), rounded down, less."""

_BATCHES = 1 << 20
"""The largest factor by which a batch may be longer than declared with all its sums still 0."""

_MISREAD = "the reference kernel reads the operand as uint8: the result is what the parameters say"
_RAW = "the kernel compares the stored integers, though the operand has several scales along the axis"


@rule(Mean, Sum)
def mean_or_sum(op: Mean | Sum, b: RuleBuilder) -> Answer:
    """result = clamp(multiply(sum - zero_point_in * count) + zero_point_out)."""
    x, axes, source, target = _reduction(op)
    sizes = {a: x.type.dims[a] for a in axes}
    if 0 in sizes.values():
        raise _of_nothing(op, target)
    averaged, kernels = isinstance(op, Mean), b.kernel_set
    delegated = kernels.average(source, target, 1, divided=averaged) is not None
    unread = delegated or averaged or source.storage == ui8 or b.real or 0 in op.result.type.dims
    misread = not (unread or _all_zero(sizes, source, target))
    if None in sizes.values() or (0 in axes and not x.is_constant):
        result = None if delegated else _over_any_number(op, b, x, axes, source, target)
        if delegated and None in sizes.values():
            raise NotApplicable(f"the size of '{x.name}' along a reduced axis is not known")
        if result is not None:
            return _rewritten(result, misread)
        if None in sizes.values():
            raise NotApplicable(f"the size of '{x.name}' along a reduced axis is not known, and its scale is large")
    count = prod(d for d in sizes.values() if d is not None)
    factor = kernels.average(source, target, count, divided=averaged)
    if factor is not None:
        total = _reduced(op, b, "sum", centred(b, x, source), axes)
        return _rewritten(multiplied(b, total, factor, target, _offsets(source, count)), misread)
    multiplier = kernels.mean(source, target, count) if averaged else kernels.total(source, target)
    total = _reduced(op, b, "sum", b.cast(b.value(x), i32), axes)
    if source.zero_point:
        total = b.sub(total, np.asarray(source.zero_point * count))  # which wraps
    bounds = _offsets(source, count)
    reach = max(-bounds[0], bounds[1])
    known = bounds if reach < 1 << 31 else None
    result = scaled(b, total, multiplier, target.storage, reach, output_zp=target.zero_point, input_range=known)
    return _rewritten(result, misread)


def _of_nothing(op: Mean | Sum, target: UniformQuantizedType) -> NotApplicable:
    """The exception to raise where no elements are reduced."""
    reason, warning = "no elements are reduced", ""
    if isinstance(op, Mean):
        warning = f"{reason}, whose mean is not a number"
    elif target.storage == i16:  # the kernel writes one of its two bytes
        warning = _MISREAD
    elif target.zero_point:
        warning = f"{reason}: the kernel stores the integer 0, though the zero point is not 0; {FOLLOWS_PARAMETERS}"
    return NotApplicable(reason, warning)


def _all_zero(sizes: Mapping[int, int | None], source: UniformQuantizedType, target: UniformQuantizedType) -> bool:
    """Whether all sums of int8 are stored as the zero point, even with the bytes read as uint8 or a resized batch."""
    if None in sizes.values() or not source.storage == target.storage == i8 or target.zero_point < 0:
        return False
    count = prod(d or 0 for d in sizes.values()) * (_BATCHES if 0 in sizes else 1)
    return count * (ui8.maximum + abs(source.zero_point)) * float(source.scale) < target.scale / 2


def _over_any_number(
    op: Mean | Sum,
    b: RuleBuilder,
    x: Value,
    axes: Sequence[int],
    source: UniformQuantizedType,
    target: UniformQuantizedType,
) -> Value | None:
    """A mean or sum over a number of elements that depends on the batch. None if a shift to the left may take it
    out of int32."""
    multiplier, averaged = b.kernel_set.total(source, target), isinstance(op, Mean)
    if multiplier.shift > (_MOST_SHIFT - source.storage.bits if averaged else 0):
        return None
    total = _reduced(op, b, "sum", centred(b, x, source), axes)
    if not averaged:
        return scaled(b, total, multiplier, target.storage, i32.maximum, output_zp=target.zero_point)
    numbers = {"multiplier": multiplier.mantissa, "shift": multiplier.shift, "output_zp": target.zero_point}
    return b.emit(RescaleMean, [total, b.value(x)], target.storage, axes=tuple(axes), **numbers)


def _rewritten(result: Value, misread: bool) -> Rewritten:
    return Rewritten([result], warning=_MISREAD if misread else "", exception="broken" if misread else "disregarded")


@rule(ReduceMax, ReduceMin)
def extreme(op: ReduceMax | ReduceMin, b: RuleBuilder) -> Answer:
    """result = the greatest or least stored integer, requantized where the result has other parameters."""
    x, axes, source, target = _reduction(op)
    multiplier = b.kernel_set.extreme(source, target)
    reach = max(abs(v) for v in _offsets(source, 1))
    if source != target and (multiplier.shift > 29 or reach << max(multiplier.shift, 0) >= 1 << 31):
        raise NotApplicable("an element, scaled, can leave int32")
    result = _reduced(op, b, "max" if isinstance(op, ReduceMax) else "min", b.value(x), axes)
    if source == target:
        return result
    return b.rescale(result, multiplier, target.storage, input_zp=source.zero_point, output_zp=target.zero_point)


@rule(ReduceProd)
def product(op: ReduceProd, b: RuleBuilder) -> Answer:
    """result = clamp(the product, scaled after each factor, + zero_point_out)."""
    x, axes, source, target = _reduction(op)
    shape = x.type.dims
    outer = [a for a in range(len(shape)) if a not in axes]
    sizes = [shape[a] for a in axes]
    if source.storage == ui8 or None in sizes or [shape[a] for a in outer].count(None) > 1:
        raise NotApplicable("the kernel takes no uint8, or sizes are not known")
    if 0 in shape:
        reason = "there are no elements, and the kernel multiplies none"
        raise NotApplicable(reason, f"{reason}: its result is whatever its memory holds; {FOLLOWS_PARAMETERS}")
    count = prod(d for d in sizes if d is not None)
    if count > _FACTORS:
        raise NotApplicable(f"{count} factors are more than {_FACTORS}")
    by = b.kernel_set.product(source, target, count)
    scale = float(by.scale[0])
    bounds = product_bounds(max(abs(v) for v in _offsets(source, 1)), scale, count)
    if max(bounds) >= 1 << 47 or max(v * scale for v in bounds[:-1]) >= (1 << 31) - (1 << 16) or scale >= 1 << 13:
        raise NotApplicable(_WIDE_PRODUCT, f"{_WIDE_PRODUCT}; {FOLLOWS_PARAMETERS}")
    offsets = b.sub(b.cast(b.value(x), i32), source.zero_point)
    factors = b.reshape(b.transpose(offsets, (*axes, *outer)), (count, *(shape[a] for a in outer)))
    types = [TensorType(tuple(shape[a] for a in outer), i32)] * count
    result, *others = b.op(Unpack, [factors], types, {"num": count, "axis": 0}).results
    for factor, bound in zip(others, bounds, strict=False):
        wide = b.mul(b.cast(result, i64), b.cast(factor, i64))
        result = b.rescale(wide, by.multipliers, i32, input_range=(-bound, bound))
    last = (-bounds[-2], bounds[-2])
    result = b.rescale(
        b.cast(result, i64), by.multipliers, target.storage, output_zp=target.zero_point, input_range=last
    )
    return b.reshape(result, [1 if a in axes else d for a, d in enumerate(shape)]) if op.keep_dims else result


class _Reduction(NamedTuple):
    x: Value
    axes: tuple[int, ...]
    source: UniformQuantizedType
    target: UniformQuantizedType


def _reduction(op: NumberReduction) -> _Reduction:
    """The operand, axes and parameters of a reduction, if its rank and axes are known and its parameters are per
    layer."""
    x = op.input
    source, target = per_layer(op, [x, op.output])
    if source.storage != target.storage or source.storage not in (i8, ui8, i16):
        raise NotApplicable(f"no kernel reduces {source.storage} to {target.storage}")
    return _Reduction(x, axes_of(op), source, target)


def axes_of(op: NumberReduction) -> tuple[int, ...]:
    """The axes in order; NotApplicable where they, or more than one dim of the result, are not known."""
    shape, axes = op.input.type.shape, op.axes
    if shape is None or not axes.is_constant:
        raise NotApplicable(f"the rank of '{op.input.name}' or the axes are not known")
    reduced = tuple(sorted({int(a) % len(shape) for a in axes.array.reshape(-1)})) if shape else ()
    if not op.keep_dims and [d for a, d in enumerate(shape) if a not in reduced].count(None) > 1:
        raise NotApplicable("more than one dim of the result is not known")
    return reduced


def over(b: RuleBuilder, kind: Literal["sum", "max", "min"], x: Value, axes: Sequence[int]) -> Value:
    """x reduced over each axis, which stays with size 1."""
    for axis in axes:
        x = b.reduce(kind, x, axis)
    return x


def without_axes(op: NumberReduction, b: RuleBuilder, x: Value, axes: Sequence[int]) -> Value:
    """x without its reduced dims, unless `keep_dims` says otherwise."""
    if op.keep_dims or not axes:
        return x
    return b.reshape(x, [d for a, d in enumerate(x.type.dims) if a not in axes])


def _reduced(
    op: NumberReduction, b: RuleBuilder, kind: Literal["sum", "max", "min"], x: Value, axes: Sequence[int]
) -> Value:
    return without_axes(op, b, over(b, kind, x, axes), axes)


def _offsets(source: UniformQuantizedType, count: int) -> tuple[int, int]:
    """Bounds of a sum of `count` stored values less the zero point."""
    low, high = source.ends
    return count * low, count * high


@rule(ArgMax, ArgMin)
def arg(op: ArgMax | ArgMin, b: RuleBuilder) -> Answer:
    """result = the first index of the greatest (least) stored integer."""
    x, axis = op.input, op.axis
    if x.type.storage not in (i8, ui8, i16):
        raise NotApplicable(f"no kernel compares {x.type.storage}")
    if x.type.shape is None or not axis.is_constant:
        raise NotApplicable(f"the rank of '{x.name}' or the axis is not known")
    index = int(axis.array.reshape(())) % len(x.type.shape)
    ordered = isinstance(x.type.element, UniformQuantizedType) or getattr(x.type.element, "axis", index) != index
    plain = b.value(x)
    if isinstance(op, ArgMin):
        plain = b.emit(BitwiseNot, [plain])
    shape = tuple(d for a, d in enumerate(x.type.shape) if a != index)
    place = b.emit(TosaArgMax, [plain], TensorType(shape, i32), axis=index)
    return Rewritten([b.cast(place, op.result.type.storage)], warning="" if ordered else _RAW)


rule(TopKV2)(move)
