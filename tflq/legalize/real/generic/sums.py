"""Multiply-accumulate operators on types that no kernel computes: the real value of the operands, rounded once.

    result = clamp(round_half_away((bias[o] / u[o] + sum (x - x_zp) (w - w_zp[o])) * u[o] / s_out) + zp)
    u = s_in * s_w[o]

The sum is exact, in i32, or in i64 where x is int16 or the sum can leave 32 bits. A bias at another scale than u, or of
floats, is added with as many bits behind the point as 32 bits leave. What is saturated in any case is cut off before,
so that nothing overflows. A result of int32 is within one count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from tflq.dialects.tfl.convolution import Conv2D, Conv3D, Conv3DTranspose, DepthwiseConv2D, TransposeConv
from tflq.dialects.tfl.matmul import FullyConnected
from tflq.ir.core import Value
from tflq.ir.types import (
    ScalarType,
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
from tflq.legalize.real.convolution import conv_3d_sums, conv_3d_transpose_sums
from tflq.legalize.real.generic.requantization import limited_scales, real_requantized
from tflq.legalize.reference.convolution.convolution import conv_2d_sums, depthwise_sums
from tflq.legalize.reference.convolution.transpose_conv import transpose_conv_sums
from tflq.legalize.reference.generic.accumulate import Sums, Terms, scales_of
from tflq.legalize.reference.matmul.fully_connected import fully_connected_sums
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.light import dataclass
from tflq.numerics.convolution import double_scales

__all__: list[str] = []

_NOTE = "no kernel computes it; the real sum, rounded"
_ALIKE = 1e-6
"""Relative: scales are stored in float32."""
_MOST_FRACTION = 24
_WIDEST = 52
"""Bits of sums that float64 holds."""


_Operator: TypeAlias = FullyConnected | Conv2D | DepthwiseConv2D | TransposeConv | Conv3D | Conv3DTranspose

_SUMS: Final[Mapping[type[_Operator], tuple[int, Callable[[Any, RuleBuilder, Terms], Sums]]]] = {
    Conv2D: (0, conv_2d_sums),
    DepthwiseConv2D: (3, depthwise_sums),
    FullyConnected: (0, fully_connected_sums),
    TransposeConv: (0, transpose_conv_sums),
    Conv3D: (4, conv_3d_sums),
    Conv3DTranspose: (3, conv_3d_transpose_sums),
}
"""Which dim of the weights counts the channels, and what sums the products."""


@dataclass(frozen=True, slots=True)
class _Bias:
    """The bias in counts of the sum: known, float64 [1 or C], or a tensor of the accumulator's type."""

    known: np.ndarray
    computed: Value | None = None


@rule(Conv2D, DepthwiseConv2D, TransposeConv, Conv3D, Conv3DTranspose, FullyConnected, order=3)
def real_sum(op: _Operator, b: RuleBuilder) -> Answer:
    """The sum, the bias's fraction, ext.rescale_f64, tosa.clamp."""
    axis, summed = _SUMS[type(op)]
    x, weights = op.input, op.weights if isinstance(op, FullyConnected) else op.filter
    source, target = x.type.element, op.result.type.element
    if not isinstance(source, UniformQuantizedType) or not isinstance(target, UniformQuantizedType):
        raise NotApplicable("the input or the result is not quantized per layer")
    if source.storage not in (i8, ui8, i16) or target.storage not in (i8, ui8, i16, i32):
        raise NotApplicable(f"no integer form from {source.storage} to {target.storage}")
    if source.storage == i16 and source.zero_point:
        raise NotApplicable("int16 with a zero point other than 0")
    filters, weight_zp, magnitudes = _filters(b, weights, axis)
    weight_scales = scales_of(weights)
    assert weight_scales is not None
    far = max(source.storage.maximum - source.zero_point, source.zero_point - source.storage.minimum)
    reach = magnitudes * far
    scales = double_scales(source.scale, weight_scales, target.scale)
    if np.isnan(scales).any():
        raise NotApplicable("the ratio of the scales is no number")
    bias = _bias(b, op.bias, scales * float(np.float32(target.scale)), reach, scales, target)
    whole = np.rint(bias.known)
    channels = magnitudes.size
    zeros = np.zeros(channels, np.int64)
    bounds = _bounds(reach, whole, bias.computed)
    most = max(-bounds[0], bounds[1])
    if most >= 1 << _WIDEST:
        raise NotApplicable(f"sums of more than {_WIDEST} bits")
    split = not (np.abs(bias.known - whole) <= _ALIKE * np.maximum(np.abs(whole), 1)).all() and most < 1 << 30
    apart = split or bias.computed is not None
    wide = most >= 1 << 31 or (source.storage == i16 and target.storage != i32 and not apart)
    acc = i64 if wide or (bias.computed is not None and not _room(reach, scales, target)) else i32
    offset = zeros if apart else np.broadcast_to(whole.astype(np.int64), (channels,))
    terms = Terms(filters, b.constant(offset.astype(acc.dtype), acc), source.zero_point, weight_zp, acc)
    sums = summed(op, b, terms)
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
        scales = np.tile(scales, sums.repeats)
    activation = op.fused_activation_function
    answer = real_requantized(b, total, scales, target, activation, bounds)
    return Rewritten([sums.finish(b, answer)], note=_NOTE)


def _filters(b: RuleBuilder, weights: Value, axis: int) -> tuple[Value, int, np.ndarray]:
    """The weights in the integer form, the one zero point that they have there, and sum |w - w_zp| per channel."""
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
        if (zeros != zero).any() or storage.bits < 8 or storage not in (i8, ui8, i16):
            raise NotApplicable(f"weights '{weights.name}' are not constant, and of {storage} or several zero points")
        terms = int(np.prod([shape[a] or 0 for a in others]))
        far = max(storage.maximum - zero, zero - storage.minimum)
        return plain, zero, np.full(shape[axis] or 0, terms * far, np.int64)
    if not plain.array.size:
        raise NotApplicable("the weights are empty")
    spread = [1] * len(shape)
    spread[axis] = -1
    centred = plain.array.astype(np.int32) - zeros.reshape(spread).astype(np.int32)
    magnitudes = np.abs(centred).sum(others, dtype=np.int64)
    if (zeros == zero).all() and (storage in (i8, ui8, i16) or (storage in (i2, i4) and not zero)):
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
    """The bias, of which what saturates the result in any case is cut off."""
    if bias is None:
        return _Bias(np.zeros(1))
    element, storage = bias.type.element, bias.type.storage
    if not (storage.is_integer or storage.is_float) or not storage.numpy:
        raise NotApplicable(f"bias '{bias.name}' is {storage}")
    own = scales_of(bias)
    same = own is None or (np.abs(own - units) <= _ALIKE * units).all()
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
            assert own is not None
            counts = counts * (own.astype(np.float64) / units)
    if not np.isfinite(counts).all():
        raise NotApplicable(f"bias '{bias.name}' is no number at the scale of input * weights")
    if target.storage.bits > 16:
        return _Bias(counts)
    enough = np.minimum(reach + _saturating(scales, target), 2.0**46)
    return _Bias(np.clip(counts, -enough, enough))


def _saturating(scales: np.ndarray, target: UniformQuantizedType) -> np.ndarray:
    """Counts of the sum beyond which any zero point's result is saturated."""
    return np.ceil((1 << (target.storage.bits + 1)) / limited_scales(scales, target.storage, 1 << 47))


def _bounds(reach: np.ndarray, whole: np.ndarray, computed: Value | None) -> tuple[int, int]:
    """Bounds of the accumulator, of all channels, before a computed bias is added."""
    known = np.zeros(1) if computed is not None else whole
    return int((known - reach).min()), int((known + reach).max())


def _with_computed(bounds: tuple[int, int], acc: ScalarType) -> tuple[int, int]:
    """Bounds with a bias of all that int32 holds; in i32 it is limited so that the sum does not leave that."""
    most = (1 << 31) - 1
    return (-most, most) if acc == i32 else (bounds[0] - most - 1, bounds[1] + most)


def _room(reach: np.ndarray, scales: np.ndarray, target: UniformQuantizedType) -> int:
    """What a computed bias can be limited to so that the sum stays in i32, and no result changes; 0 if it cannot."""
    most = (1 << 31) - 1 - int(reach.max())
    saturated = target.storage.bits <= 16 and (_saturating(scales, target) + reach <= most).all()
    return most if saturated else 0


def _with_fraction(b: RuleBuilder, sums: Value, bias: np.ndarray, most: int, repeats: int) -> tuple[Value, int]:
    """(sums + bias) * 2^bits, and bits."""
    bits = min(_MOST_FRACTION, 30 - int(most + 1).bit_length())
    scaled = b.mul(sums, b.constant(np.asarray(1 << bits))) if bits else sums
    row = np.tile(np.rint(bias * 2.0**bits), repeats).astype(np.int32)
    return b.add(scaled, b.constant(row)), bits
