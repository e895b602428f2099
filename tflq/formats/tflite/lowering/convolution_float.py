"""Convolutions of floats, and convolutions of integers with their requantization in float32.

The builtins read an input that is padded first where TFLite lacks a name for its padding. A CLAMP that is RELU or
RELU6, and the only reader of the result, becomes the activation of the builtin.

On integers, from float twin to float twin:

    sum t w + (o - x_zp) sum w + bias        t the twin of x, o its offset; the constant terms are the kernel's bias

Padding is zero, so where there is any, t is x - x_zp itself. Sums are exact in any order while none reaches 2^24
(`tflq.numerics.float_basics`); a channel that has one result whatever its inputs are need not be exact
(`tflq.numerics.requantize`). Input channels are split until sums are: two parts are added in float32, which
rounds once and only beyond 2^24, where the result is at its end already; more than two are added in int32.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from tflq.dialects.quant import RescaleF32, RescaleF64
from tflq.dialects.tfl.convolution import Conv2D, DepthwiseConv2D
from tflq.dialects.tosa.convolution import Convolution
from tflq.dialects.tosa.elementwise import Clamp
from tflq.dialects.tosa.movement import Rescale
from tflq.formats.tflite.lowering.casts import rectifier
from tflq.formats.tflite.lowering.im2col import Geometry
from tflq.formats.tflite.lowering.lowering import Tflite, Twin, centred, twin_of
from tflq.formats.tflite.lowering.matmul import channels_of, conv_options, padded_for, weights_of
from tflq.formats.tflite.lowering.rescale_float import FloatRescale, float_rescales
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType, f32, i32
from tflq.numerics.float_basics import ProductBounds, signed_sums
from tflq.numerics.requantize.float_forms import Prepare
from tflq.numerics.requantize.scaling import Bounds


def conv2d_of_floats(k: Tflite, x: Value, weights: Value, bias: Value, geometry: Geometry) -> Value:
    """CONV_2D with weights [O, KH, KW, I]."""
    padded, padding = padded_for(k, x, geometry)
    outputs = (weights.type.shape or (None,))[0]
    type = TensorType(geometry.output(x.type.shape, outputs or 0), x.type.storage)
    options = conv_options(geometry, padding) | {"quantized_bias_type": "FLOAT32"}
    return k.emit(Conv2D, [padded, weights, bias], type, **options)


def depthwise_of_floats(k: Tflite, x: Value, weights: Value, bias: Value, geometry: Geometry) -> Value:
    """DEPTHWISE_CONV_2D with weights [KH, KW, C, M]."""
    padded, padding = padded_for(k, x, geometry)
    *window, depth, multiplier = weights.type.sizes
    shape = (1, *window, depth * multiplier)
    if weights.is_constant:
        filters = Value(TensorType(shape, weights.type.element), buffer=weights.buffer)
    else:
        filters = k.reshape(weights, shape)
    type = TensorType(geometry.output(x.type.shape, shape[-1]), x.type.storage)
    options = conv_options(geometry, padding) | {"depth_multiplier": multiplier}
    return k.emit(DepthwiseConv2D, [padded, filters, bias], type, **options)


def activated(k: Tflite, op: Convolution, result: Value) -> Value:
    """`result`, a builtin in the place of `op`; the clamp after it becomes its activation, if it has that one."""
    clamp, producer = k.only_user(op.output, Clamp), result.producer
    if clamp is None or not isinstance(producer, (Conv2D, DepthwiseConv2D)):
        return result
    name = rectifier(clamp.min_val, clamp.max_val, result.type.storage)
    if name is None:
        return result
    producer.attributes["fused_activation_function"] = name
    return k.fuse(clamp, result)


# Requantized convolutions.

_ADDED: Final = 2
"""The number of parts that are added in float32 with one rounding."""


def requantized_convolve(
    k: Tflite, op: Convolution, x: Value, weights: Value, bias: Value, geometry: Geometry
) -> Value | None:
    """CONV_2D with weights [O, KH, KW, I] and the op that requantizes it: the integers, with a float twin. None where
    the only reader does not requantize, or without a proof."""
    if not weights.is_constant:
        return None
    filters = weights.array.astype(np.float32) - np.float32(op.weight_zp)
    return _requantized(k, op, x, filters, (1, 2), bias, geometry, {"quantized_bias_type": "FLOAT32"})


def requantized_depthwise(
    k: Tflite, op: Convolution, x: Value, weights: Value, bias: Value, geometry: Geometry
) -> Value | None:
    """DEPTHWISE_CONV_2D with weights [KH, KW, C, M], otherwise like `requantized_convolve`."""
    if not weights.is_constant:
        return None
    *window, depth, multiplier = weights.array.shape
    filters = weights.array.astype(np.float32).reshape(1, *window, depth * multiplier) - np.float32(op.weight_zp)
    return _requantized(k, op, x, filters, (0, 1, 2), bias, geometry, {"depth_multiplier": multiplier})


def _requantized(
    k: Tflite,
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
    if storage.bits != 8 or not bias.is_constant or not isinstance(rescaling, (Rescale, RescaleF64, RescaleF32)):
        return None
    if not bias.array.size or (isinstance(rescaling, Rescale) and rescaling.input_zp):
        return None
    sums = _Sums.of(filters, axes, bias.array)
    for fit in float_rescales(rescaling, k, sums.bounds(*storage.less(op.input_zp)), convolution=True):
        prepare = fit.form.prepare()
        prepared = sums.prepared(prepare)
        source = _operand(k, x, op.input_zp, prepared, fit, padded=any(geometry.pad))
        if source is not None:
            taps = np.float32(0) - filters if prepare.negate else filters
            return fit.emit(k, _convolve(k, source, taps, prepared, prepare.relu, geometry, options))
    return None


def _convolve(
    k: Tflite,
    source: _Operand,
    filters: np.ndarray,
    sums: _Sums,
    relu: bool,
    geometry: Geometry,
    options: dict[str, object],
) -> Value:
    """The sums, in as many kernels as make them exact."""
    activation = "RELU" if relu else "NONE"
    padded, padding = padded_for(k, source.twin.value, geometry)
    kind = DepthwiseConv2D if "depth_multiplier" in options else Conv2D
    type = TensorType(geometry.output(source.twin.value.type.shape, sums.bias.size), f32)
    fused_activation = activation if len(source.runs) == 1 else "NONE"
    options = conv_options(geometry, padding) | options | {"fused_activation_function": fused_activation}
    parts, added = [], sums.biased(source.twin.offset)
    for run in source.runs:
        piece, taps = padded, filters
        if len(source.runs) > 1:
            piece, taps = channels_of(k, padded, run), filters[..., run]
        offset = constant(added.astype(np.float32))
        offset.role = "bias"
        parts.append(k.emit(kind, [piece, weights_of(k, taps), offset], type, **options))
        added = np.zeros_like(added)
    return _total(k, parts, activation)


def _total(k: Tflite, parts: list[Value], activation: str) -> Value:
    """The sum of whole numbers in float32, rounded once, with an activation; one part has its kernel's own."""
    if len(parts) == 1:
        return parts[0]
    if len(parts) > _ADDED:
        parts = [k.cast(part, i32) for part in parts]
    *some, last = parts
    return k.cast(k.add(functools.reduce(k.add, some), last, activation), f32)


class _Sums(NamedTuple):
    """The terms of a convolution, whole numbers: `signed_sums` of the weights of each input [C, I], and the bias,
    float64 [C]. `sums`: those of all weights by sign."""

    positive: np.ndarray
    negative: np.ndarray
    bias: np.ndarray
    sums: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, filters: np.ndarray, axes: tuple[int, ...], bias: np.ndarray) -> _Sums:
        positive, negative = (v.reshape(bias.size, -1) for v in signed_sums(filters, axes))
        return cls(positive, negative, bias.astype(np.float64), ProductBounds(positive, negative, 0, 0).sums)

    def bounds(self, low: int, high: int) -> Bounds:
        """Least and greatest accumulators of inputs in [low, high] and of padding."""
        least, most = (v + self.bias for v in ProductBounds(*self[:2], low, high, self.sums).ends)
        return Bounds(least.astype(np.int64), most.astype(np.int64))

    def prepared(self, prepare: Prepare) -> _Sums:
        """The sums that a form takes, but for its rectifier."""
        if prepare.negate:
            positive, negative = self.sums
            return _Sums(-self.negative, -self.positive, prepare.add - self.bias, (-negative, -positive))
        return self._replace(bias=self.bias + prepare.add)

    def biased(self, offset: int) -> np.ndarray:
        """The bias for inputs that are `offset` less."""
        return self.bias + (self.sums[0] + self.sums[1]) * offset if offset else self.bias

    def runs(self, live: np.ndarray, low: int, high: int, offset: int) -> list[slice] | None:
        """Runs of inputs in [low, high], less by `offset`, that make the sums of live channels exact."""
        terms = self.positive, self.negative, self.biased(offset), *self.sums
        positive, negative, bias, *sums = terms if live.all() else (v[live] for v in terms)
        return ProductBounds(positive, negative, low, high, (sums[0], sums[1])).runs(bias)


@dataclass(frozen=True, slots=True)
class _Operand:
    """The input of the float kernel, the offset by which it is less than x - zero_point, and the runs of its
    channels."""

    twin: Twin
    runs: list[slice]


def _operand(k: Tflite, x: Value, zero_point: int, sums: _Sums, fit: FloatRescale, *, padded: bool) -> _Operand | None:
    """The operand in as few runs as make sums exact; None if none do."""
    storage, live = x.type.storage, np.broadcast_to(fit.form.live, sums.bias.shape)
    ends = storage.less(zero_point)
    runs = sums.runs(live, *ends, 0)
    twin = None if padded else twin_of(k, x)
    if twin is not None:
        offset = twin.offset - zero_point
        twin_runs = sums.runs(live, ends[0] - offset, ends[1] - offset, offset)
        if twin_runs is not None and (runs is None or len(twin_runs) <= len(runs)):
            return _Operand(Twin(twin.value, offset), twin_runs)
    return None if runs is None else _Operand(Twin(centred(k, x, zero_point), 0), runs)
