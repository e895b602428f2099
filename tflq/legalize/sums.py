"""Multiply-accumulate operators on types that no kernel computes: the real value of the operands, rounded once.

    result = clamp(round_half_away((bias[o] / u[o] + sum (x - x_zp) (w - w_zp[o])) * u[o] / s_out) + zp)
    u = s_in * s_w[o]

The sum is exact, in i32, or in i64 where x is int16 or the sum can leave 32 bits. A bias at another scale than u, or of
floats, is added with as many bits behind the point as 32 bits leave. A bias is cut off beyond what saturates the result
anyway, so that nothing overflows. A result of int32 is within one count.

Functions of a sum of squares are below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np

from tflq.base import sized
from tflq.dialects.tfl.activation import L2Normalization, LocalResponseNormalization
from tflq.dialects.tfl.convolution import (
    Conv2D,
    Conv3D,
    Conv3DTranspose,
    DepthwiseConv2D,
    FullyConnected,
    TransposeConv,
)
from tflq.dialects.tfl.movement import PadV2
from tflq.dialects.tfl.pooling import L2Pool2D
from tflq.ir.ops import Op, Value
from tflq.ir.types import (
    ScalarType,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedType,
    i2,
    i4,
    i8,
    i16,
    i32,
    i64,
    ui8,
)
from tflq.legalize.convolution import PRODUCTS
from tflq.legalize.convolution_real import conv_3d_sums, conv_3d_transpose_sums
from tflq.legalize.grid import limited_scales, reach_of, real_requantized, result_range
from tflq.legalize.matmul import FULLY_CONNECTED
from tflq.legalize.pooling import over_windows
from tflq.legalize.probing import centred, gather_along, kernel_name, per_layer, stored, symmetric
from tflq.legalize.rescaled import Products, Terms, scales_of
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.convolution import double_scales, window
from tflq.numerics.roots import quotient_thresholds, response_thresholds, root_thresholds

_NOTE = "no kernel computes it; the real sum, rounded"
_STORED = (i8, ui8, i16)
_ALIKE = 1e-6
"""Relative: scales are stored in float32."""
_MOST_FRACTION = 24
_WIDEST = 52
"""The most bits of a sum that float64 holds."""

_Operator: TypeAlias = FullyConnected | Conv2D | DepthwiseConv2D | TransposeConv | Conv3D | Conv3DTranspose

_PRODUCTS: Final[Mapping[type[Op], Products]] = {
    **PRODUCTS,
    FullyConnected: FULLY_CONNECTED,
    Conv3D: Products(4, (0, 1, 2, 3), conv_3d_sums),
    Conv3DTranspose: Products(3, (0, 1, 2, 4), conv_3d_transpose_sums),
}


@dataclass(frozen=True, slots=True)
class _Bias:
    """The bias in counts of the sum: known, float64 [1 or C], or a tensor of the accumulator's type."""

    known: np.ndarray
    computed: Value | None = None


@rule(Conv2D, DepthwiseConv2D, TransposeConv, Conv3D, Conv3DTranspose, FullyConnected, order=3)
def real_sum(op: _Operator, b: RuleBuilder) -> Answer:
    """The sum, the bias's fraction, ext.rescale_f64, tosa.clamp."""
    products = _PRODUCTS[type(op)]
    weights = op.weights if isinstance(op, FullyConnected) else op.filter
    source, target = per_layer(op, [op.input, op.result])
    if source.storage not in _STORED or target.storage not in (*_STORED, i32):
        raise NotApplicable(f"no integer form from {source.storage} to {target.storage}")
    if source.storage == i16:
        symmetric(op, source)
    filters, weight_zp, magnitudes = _filters(b, weights, products.channels)
    weight_scales = scales_of(weights)
    assert weight_scales is not None
    reach = magnitudes * reach_of(source.storage, source.zero_point)
    scales = double_scales(source.scale, weight_scales, target.scale)
    if np.isnan(scales).any():
        raise NotApplicable("the ratio of the scales is not a number")
    bias = _bias(b, op.bias, scales * float(np.float32(target.scale)), reach, scales, target)
    whole, channels = np.rint(bias.known), magnitudes.size
    bounds = int((whole - reach).min()), int((whole + reach).max())
    most = max(-bounds[0], bounds[1])
    if most >= 1 << _WIDEST:
        raise NotApplicable(f"sums of more than {_WIDEST} bits")
    split = not (np.abs(bias.known - whole) <= _ALIKE * np.maximum(np.abs(whole), 1)).all() and most < 1 << 30
    apart = split or bias.computed is not None
    wide = most >= 1 << 31 or (source.storage == i16 and target.storage != i32 and not apart)
    acc = i64 if wide or (bias.computed is not None and not _room(reach, scales, target)) else i32
    offset = np.broadcast_to(whole.astype(np.int64) if not apart else np.int64(0), (channels,))
    terms = Terms(filters, b.constant(offset, acc), source.zero_point, weight_zp, acc)
    sums = products.sums(op, b, terms)
    total = sums.value
    if split:
        total, bits = _with_fraction(b, total, np.broadcast_to(bias.known, (channels,)), most, sums.repeats)
        scales, bounds = scales / (1 << bits), ((bounds[0] - 1) << bits, (bounds[1] + 1) << bits)
    elif bias.computed is not None:
        room = _room(reach, scales, target)
        added = b.clamp(bias.computed, -room, room) if acc == i32 else b.cast(bias.computed, i64)
        row = b.concat([added] * sums.repeats, 0) if sums.repeats > 1 else added
        total, bounds = b.add(total, row), _with_computed(bounds, acc)
    if scales.size > 1:
        scales = sized.tile(scales, sums.repeats)
    result = real_requantized(b, total, scales, target, op.fused_activation_function, bounds)
    return Rewritten([sums.finish(b, result)], note=_NOTE)


def _filters(b: RuleBuilder, weights: Value, axis: int) -> tuple[Value, int, np.ndarray]:
    """The weights in the integer form, the zero point that all of them have there, and sum |w - w_zp| per channel."""
    element, shape = weights.type.element, weights.type.shape
    if not isinstance(element, (UniformQuantizedType, UniformQuantizedPerAxisType)):
        raise NotApplicable(f"weights '{weights.name}' have no scales per layer or per axis")
    if shape is None or None in shape or axis >= len(shape):
        raise NotApplicable(f"the shape of weights '{weights.name}' is not known")
    if isinstance(element, UniformQuantizedPerAxisType) and (
        element.axis != axis or element.scales.size != shape[axis]
    ):
        raise NotApplicable(f"weights '{weights.name}' are not quantized along dim {axis}")
    storage = element.storage
    if storage.bits > 16:
        raise NotApplicable(f"weights '{weights.name}' are stored in {storage}")
    zeros = np.atleast_1d(getattr(element, "zero_points", getattr(element, "zero_point", 0)))
    zero = int(zeros[0])
    plain = b.value(weights)
    others = tuple(a for a in range(len(shape)) if a != axis)
    if not weights.is_constant:
        if (zeros != zero).any() or storage not in _STORED:
            raise NotApplicable(f"weights '{weights.name}' are not constant, and of {storage} or several zero points")
        terms = int(np.prod([shape[a] or 0 for a in others]))
        return plain, zero, sized.full(shape[axis] or 0, terms * reach_of(storage, zero), np.int64)
    if not plain.array.size:
        raise NotApplicable("the weights are empty")
    spread = [1] * len(shape)
    spread[axis] = -1
    centred = plain.array.astype(np.int32) - zeros.reshape(spread).astype(np.int32)
    magnitudes = np.abs(centred).sum(others, dtype=np.int64)
    if (zeros == zero).all() and (storage in _STORED or (storage in (i2, i4) and not zero)):
        return plain, zero, magnitudes
    narrow = i8 if (centred == centred.astype(np.int8)).all() else i16
    if (centred != centred.astype(np.int16)).any():
        raise NotApplicable(f"weights '{weights.name}' less their zero points leave 16 bits")
    return b.constant(centred, narrow), 0, magnitudes


def _bias(
    b: RuleBuilder,
    bias: Value | None,
    units: np.ndarray,
    reach: np.ndarray,
    scales: np.ndarray,
    target: UniformQuantizedType,
) -> _Bias:
    """The bias, cut off beyond what saturates the result anyway."""
    if bias is None:
        return _Bias(np.zeros(1))
    element, storage = bias.type.element, bias.type.storage
    if not (storage.is_integer or storage.is_float) or not storage.numpy:
        raise NotApplicable(f"bias '{bias.name}' is {storage}")
    bias_scales = scales_of(bias)
    same = bias_scales is None or (np.abs(bias_scales - units) <= _ALIKE * units).all()
    zeros = np.atleast_1d(getattr(element, "zero_points", getattr(element, "zero_point", 0)))
    if not bias.is_constant:
        if storage != i32 or not same or zeros.any() or bias.type.shape != reach.shape:
            raise NotApplicable(f"bias '{bias.name}' is not constant, and not int32 at the scale of input * weights")
        return _Bias(np.zeros(1), b.value(bias))
    counts = b.value(bias).array.astype(np.float64).reshape(-1) - zeros
    if counts.size not in (1, reach.size) or not np.isfinite(counts).all():
        raise NotApplicable(f"bias '{bias.name}' does not have one finite number per channel")
    with np.errstate(all="ignore"):
        if storage.is_float:
            counts = counts / units
        elif not same:
            assert bias_scales is not None
            counts = counts * (bias_scales.astype(np.float64) / units)
    if not np.isfinite(counts).all():
        raise NotApplicable(f"bias '{bias.name}' is not a finite number at the scale of input * weights")
    if target.storage.bits > 16:
        return _Bias(counts)
    enough = np.minimum(reach + _saturating(scales, target), 2.0**46)
    return _Bias(np.clip(counts, -enough, enough))


def _saturating(scales: np.ndarray, target: UniformQuantizedType) -> np.ndarray:
    """Counts of the sum beyond which the result is saturated, whatever its zero point is."""
    return np.ceil((1 << (target.storage.bits + 1)) / limited_scales(scales, target.storage, 1 << 47))


def _with_computed(bounds: tuple[int, int], acc: ScalarType) -> tuple[int, int]:
    """Bounds with any int32 bias; in i32 the bias is limited so that the sum stays within 32 bits."""
    most = i32.maximum
    return (-most, most) if acc == i32 else (bounds[0] - most - 1, bounds[1] + most)


def _room(reach: np.ndarray, scales: np.ndarray, target: UniformQuantizedType) -> int:
    """The limit for a computed bias with which the sum stays in i32 and no result changes; 0 if there is none."""
    most = i32.maximum - int(reach.max())
    saturated = target.storage.bits <= 16 and (_saturating(scales, target) + reach <= most).all()
    return most if saturated else 0


def _with_fraction(b: RuleBuilder, sums: Value, bias: np.ndarray, most: int, repeats: int) -> tuple[Value, int]:
    """(sums + bias) * 2^bits, and bits."""
    bits = min(_MOST_FRACTION, 30 - int(most + 1).bit_length())
    scaled = b.mul(sums, 1 << bits) if bits else sums
    row = sized.tile(np.rint(bias * 2.0**bits), repeats).astype(np.int32)
    return b.add(scaled, row), bits


# L2_POOL_2D, LOCAL_RESPONSE_NORMALIZATION and L2_NORMALIZATION of 8-bit tensors that no kernel takes.
#
#     L2_POOL_2D                    sqrt(mean of x^2 over a window)
#     L2_NORMALIZATION              x / sqrt(sum of x^2 over the last dim)
#     LOCAL_RESPONSE_NORMALIZATION  x (bias + alpha sum of x^2 over neighbouring channels)^-beta
#
# The sum of squares is an integer, and so is the threshold that it must reach (or stay below) for each stored value of
# the result: the stored value is how many of these thresholds are met, which a binary search in a table finds. Sources,
# for floats: kernels/pooling.cc and internal/reference/reference_ops.h (L2Pool, LocalResponseNormalization: of channels
# c - radius to c + radius - 1), l2norm.cc.


_SQUARE_SUMS_NOTE = "no kernel computes it; the real function, rounded"
_TERMS = 1 << 15
"""The most squares of 8-bit values whose sum int32 holds."""
_LEAST_SCALE = 1e-6
"""L2_NORMALIZATION divides by 1e-6 at least, which is more than the roots of sums with smaller scales."""


def _elements(
    op: L2Pool2D | L2Normalization | LocalResponseNormalization,
) -> tuple[UniformQuantizedType, UniformQuantizedType]:
    """The types of the operand and the result. NotApplicable unless both are the same 8-bit type, of finite scales."""
    elements = per_layer(op)
    source, output = elements
    if source.storage != output.storage or source.storage not in (i8, ui8) or not op.input.type.is_static:
        raise NotApplicable(f"{kernel_name(op)} has an integer form only for 8 bits and known shapes")
    if not all(0 < e.scale < np.inf for e in elements):
        raise NotApplicable(f"{kernel_name(op)} has no integer form for scales of 0 or infinite ones")
    return source, output


@rule(L2Pool2D, order=2)
def l2_pool(op: L2Pool2D, b: RuleBuilder) -> Answer:
    """The root of each window's mean square."""
    (source, output), x = _elements(op), op.input
    kernel, strides = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    shape = x.type.sizes
    sides = [window(n, k, s, 1, op.padding) for n, k, s in zip(shape[1:3], kernel, strides, strict=True)]
    if kernel[0] * kernel[1] > _TERMS or None in sides:
        raise NotApplicable("the windows are too large for int32")
    low, high = result_range(output, op.fused_activation_function)
    wide = centred(b, x, source)
    total = b.mul(wide, wide)
    counts = np.ones((), np.int64)
    for axis, (side, size, stride) in enumerate(zip(sides, kernel, strides, strict=True), 1):
        assert side is not None
        assert side.output is not None
        first = sized.arange(side.output) * stride - side.before
        inside = np.minimum(first + size, shape[axis]) - np.maximum(first, 0)
        total = over_windows(
            b, _padded(b, total, axis, side.before, side.after), axis, size, stride, 1, RuleBuilder.add
        )
        counts = counts[..., None] * inside
    different, which = np.unique(counts, return_inverse=True)
    steps = output.ends[1]
    if not steps or not counts.size:
        zeros = sized.full(op.result.type.sizes, min(high, output.zero_point))
        return Rewritten([b.constant(zeros, output.storage)], note=_SQUARE_SUMS_NOTE)
    ratio = Fraction(source.scale) / Fraction(output.scale)
    table = np.stack([root_thresholds(ratio, int(n), steps) for n in different])
    rows = b.constant(which.reshape(1, *counts.shape, 1))
    root = _count_thresholds(b, rows, table, (1 << 31) - 1, lambda threshold: b.greater_equal(total, threshold))
    return Rewritten([stored(b, root, output, low, high)], note=_SQUARE_SUMS_NOTE)


def _padded(b: RuleBuilder, x: Value, axis: int, before: int, after: int) -> Value:
    """x with zeros before and after it along an axis."""
    if not (before or after):
        return x
    shape = list(x.type.sizes)
    around = np.zeros((len(shape), 2), np.int32)
    around[axis] = before, after
    shape[axis] += before + after
    operands = [x, b.constant(around), b.constant(0)]
    return b.emit(PadV2, operands, TensorType(tuple(shape), i32))


@rule(LocalResponseNormalization, order=2)
def local_response(op: LocalResponseNormalization, b: RuleBuilder) -> Answer:
    """Each element by a power of the sum over its neighbours."""
    (source, output), x = _elements(op), op.input
    alpha, beta, bias = (float(np.float32(number)) for number in (op.alpha, op.beta, op.bias))
    if alpha <= 0 or beta <= 0 or bias < 0 or not x.type.rank:
        raise NotApplicable("alpha and beta are not positive: the result does not fall with the sum of squares")
    axis, depth = x.type.rank - 1, (x.type.shape or (0,))[-1] or 0
    radius = min(op.radius, depth)
    wide = centred(b, x, source)
    if radius <= 0:
        raise NotApplicable("a radius of 0 sums no squares")
    padded = _padded(b, b.mul(wide, wide), axis, radius, radius - 1)
    total = over_windows(b, padded, axis, 2 * radius, 1, 1, RuleBuilder.add)
    ratio, weight = source.scale / output.scale, alpha * source.scale**2
    table = response_thresholds(ratio, bias, weight, beta, *_reaches(source, output))
    return Rewritten([_signed(b, wide, total, table, output)], note=_SQUARE_SUMS_NOTE)


@rule(L2Normalization, order=2)
def l2_normalization(op: L2Normalization, b: RuleBuilder) -> Answer:
    """Each element by the root of the sum over the last dim; with parameters that no kernel takes."""
    (source, output), x = _elements(op), op.input
    shape = x.type.dims
    if not shape or (shape[-1] or 0) > _TERMS or source.scale < _LEAST_SCALE:
        raise NotApplicable("rows are too long for int32, or the operand's scale is below 1e-6")
    if op.fused_activation_function != "NONE":
        raise NotApplicable("L2_NORMALIZATION has no fused activation")
    wide = centred(b, x, source)
    total = b.reduce("sum", b.mul(wide, wide), len(shape) - 1)
    table = quotient_thresholds(Fraction(output.scale), *_reaches(source, output))
    return Rewritten([_signed(b, wide, total, table, output)], note=_SQUARE_SUMS_NOTE)


def _reaches(*elements: UniformQuantizedType) -> tuple[int, ...]:
    return tuple(reach_of(e.storage, e.zero_point) for e in elements)


def _signed(b: RuleBuilder, wide: Value, total: Value, table: np.ndarray, output: UniformQuantizedType) -> Value:
    """The number of thresholds that the sum stays below, with the sign of the element, as stored in the result."""
    magnitude = b.maximum(wide, b.sub(0, wide))
    count = _count_thresholds(b, magnitude, table, -1, lambda threshold: b.greater_equal(threshold, total))
    signed = b.select(b.greater(0, wide), b.sub(0, count), count)
    return stored(b, signed, output)


def _count_thresholds(
    b: RuleBuilder, rows: Value, table: np.ndarray, never: int, test: Callable[[Value], Value]
) -> Value:
    """The number of a row's thresholds, which come in order, that pass the test: a binary search. `never` is one
    that does not pass."""
    bits = int(table.shape[1]).bit_length()
    width = 1 << bits
    every = np.full((len(table), width), never, np.int64)
    every[:, : table.shape[1]] = table
    entries = b.constant(every.reshape(-1))
    base = b.mul(rows, width)
    count = b.constant(np.zeros((1,) * len(rows.type.dims), np.int32))
    for bit in reversed(range(bits)):
        candidate = b.add(count, 1 << bit)
        place = b.add(base, b.sub(candidate, 1))
        threshold = gather_along(b, entries, place)
        count = b.select(test(threshold), candidate, count)
    return count
