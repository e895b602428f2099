"""A convolution and its requantization in float32, from float twin to float twin.

    sum t w + (o - x_zp) sum w + bias        t the twin of x, o its offset; the constant terms are the kernel's bias

Padding is zero, so where there is any, t is x - x_zp itself. Sums are exact below 2^24 in any order
(`tflq.select.mac_float`); a channel that has one result whatever its inputs are need not be
(`tflq.numerics.float_requantize`).
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.ext.rescale import RescaleF64
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D
from tflq.dialects.tosa.casts import Rescale
from tflq.dialects.tosa.convolution import Convolution
from tflq.ir.core import Op, Value, constant
from tflq.ir.types import TensorType, f32
from tflq.light import NamedTuple
from tflq.numerics.float_requantize import EXACT
from tflq.select.im2col import Geometry
from tflq.select.lowering import Kernels
from tflq.select.mac_float import conv_options, padded_for
from tflq.select.rescale.floats import FloatRescale, float_rescale
from tflq.select.twins import Twin, centred, twin_of

__all__ = ["requantized_convolve", "requantized_depthwise"]


def requantized_convolve(
    k: Kernels, op: Convolution, x: Value, weights: Value, bias: Value, geometry: Geometry
) -> Value | None:
    """CONV_2D with weights [O, KH, KW, I] and what requantizes it: the integers, with a float twin. None where the one
    reader does not, or without a proof."""
    if not weights.is_constant:
        return None
    filters = weights.array.astype(np.float32) - np.float32(op.weight_zp)
    return _requantized(k, op, x, filters, (1, 2, 3), bias, geometry, {"quantized_bias_type": "FLOAT32"})


def requantized_depthwise(
    k: Kernels, op: Convolution, x: Value, weights: Value, bias: Value, geometry: Geometry
) -> Value | None:
    """The same for DEPTHWISE_CONV_2D with weights [KH, KW, C, M]."""
    if not weights.is_constant:
        return None
    *window, depth, multiplier = weights.array.shape
    filters = weights.array.astype(np.float32).reshape(1, *window, depth * multiplier) - np.float32(op.weight_zp)
    return _requantized(k, op, x, filters, (0, 1, 2), bias, geometry, {"depth_multiplier": multiplier})


def _requantized(
    k: Kernels,
    op: Convolution,
    x: Value,
    filters: np.ndarray,
    axes: tuple[int, ...],
    bias: Value,
    geometry: Geometry,
    options: dict[str, object],
) -> Value | None:
    """`filters` float32, summed over `axes`."""
    storage, rescaling = x.type.storage, k.only_user(op.output, Op)
    if storage.bits != 8 or not bias.is_constant or not isinstance(rescaling, (Rescale, RescaleF64)):
        return None
    if not bias.array.size:
        return None
    sums = _Sums.of(filters, axes, bias.array)
    fit = float_rescale(rescaling, k, *sums.bounds(storage.minimum - op.input_zp, storage.maximum - op.input_zp))
    source = None if fit is None else _operand(k, x, op.input_zp, sums, fit, padded=any(geometry.pad))
    if fit is None or source is None:
        return None
    constants = constant(filters), constant(sums.biased(source.offset).astype(np.float32))
    for value, role in zip(constants, ("weights", "bias"), strict=True):
        value.role = role
    padded, padding = padded_for(k, source.value, geometry)
    type = TensorType(geometry.output(x.type.shape, sums.bias.size), f32)
    kind = DepthwiseConv2D if "depth_multiplier" in options else Conv2D
    accumulator = k.emit(kind, [padded, *constants], type, **conv_options(geometry, padding), **options)
    return fit.emit(k, accumulator)


class _Sums(NamedTuple):
    """What a convolution adds up, float64 [C], whole numbers: sums of weights and of their magnitudes, the bias."""

    total: np.ndarray
    magnitude: np.ndarray
    bias: np.ndarray

    @classmethod
    def of(cls, filters: np.ndarray, axes: tuple[int, ...], bias: np.ndarray) -> _Sums:
        magnitude = np.abs(filters).sum(axes, dtype=np.float64)
        return cls(filters.sum(axes, dtype=np.float64), magnitude, bias.astype(np.float64))

    def bounds(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """Least and greatest accumulators, int64, of inputs in [low, high] and of padding."""
        low, high = min(low, 0), max(high, 0)
        positive, negative = (self.magnitude + self.total) / 2, (self.total - self.magnitude) / 2
        ends = positive * low + negative * high + self.bias, positive * high + negative * low + self.bias
        return ends[0].astype(np.int64), ends[1].astype(np.int64)

    def biased(self, offset: int) -> np.ndarray:
        """The bias for inputs that are `offset` less."""
        return self.bias + self.total * offset

    def exact(self, live: np.ndarray, low: int, high: int, offset: int) -> bool:
        """Whether no partial sum of a live channel, bias included, reaches 2^24, of inputs in [low, high]."""
        reach = self.magnitude * max(-low, high) + np.abs(self.biased(offset))
        return bool((reach < EXACT)[live].all())


def _operand(k: Kernels, x: Value, zero_point: int, sums: _Sums, fit: FloatRescale, *, padded: bool) -> Twin | None:
    """What the float kernel reads, and how much less than x - zero_point it is; None where sums are not exact."""
    storage, live = x.type.storage, np.broadcast_to(fit.fit.m > 0, sums.bias.shape)
    twin = None if padded else twin_of(k, x)
    if twin is not None and sums.exact(
        live, storage.minimum - twin.offset, storage.maximum - twin.offset, twin.offset - zero_point
    ):
        return Twin(twin.value, twin.offset - zero_point)
    if not sums.exact(live, storage.minimum - zero_point, storage.maximum - zero_point, 0):
        return None
    return Twin(centred(k, x, zero_point), 0)
