"""Convolutions and products that no kernel computes: CONV_3D and its transpose, BATCH_MATMUL, blocks of weights.

CONV_3D has filters [KD, KH, KW, I, O], CONV_3D_TRANSPOSE [KD, KH, KW, O, I]; here are their sums, which `sums.py`
scales. The transposed one is a convolution whose channels are the positions of a cell of stride steps. Its full result
at f = q * s + r (r < s) is sum_t x[q - t] * w[t * s + r], for each dim; the channels (r_d, r_h, r_w, o) of the scaled
result are moved apart, and the padding is cut away. Dilated filters have zeros between their taps.
Sources: kernels/conv3d.cc, conv3d_transpose.cc, internal/reference/conv3d_transpose.h.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tflq.base import sized
from tflq.base.errors import UnsupportedError
from tflq.dialects.tfl.convolution import BatchMatMul, Conv3D, Conv3DTranspose, FullyConnected
from tflq.dialects.tosa import convolution as tosa
from tflq.dialects.tosa.convolution import MatMul
from tflq.ir.ops import Value
from tflq.ir.types import (
    Shape,
    TensorType,
    UniformQuantizedPerAxisType,
    UniformQuantizedSubChannelType,
    UniformQuantizedType,
    i8,
    i16,
    i32,
    i64,
    parameters,
    ui8,
)
from tflq.legalize.convolution import unpacked
from tflq.legalize.grid import reach_of, real_requantized, result_range
from tflq.legalize.matmul import product, rows_of, sizes_of
from tflq.legalize.probing import per_layer, rounding_shift, stored, symmetric
from tflq.legalize.rescaled import Sums, Terms, scales_of
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.numerics.convolution import double_scales, window
from tflq.numerics.fixed_point import quantize_multipliers


def conv_3d_sums(op: Conv3D, b: RuleBuilder, terms: Terms) -> Sums:
    """tosa.conv3d."""
    x, weights = b.value(op.input), terms.weights
    shape, filters = x.type.shape, weights.type.dims
    if shape is None or len(shape) != 5 or None in shape[1:] or len(filters) != 5:
        raise NotApplicable("the input's depth, height, width or channels are not known")
    if shape[4] != filters[3]:
        raise NotApplicable(f"filters of {filters[3]} input channels do not meet {shape[4]} of the input")
    stride, dilation = _steps(op)
    windows = [
        window(size, kernel or 0, s, d, op.padding)
        for size, kernel, s, d in zip(shape[1:4], filters[:3], stride, dilation, strict=True)
    ]
    pad = tuple(p for w in windows if w is not None for p in (w.before, w.after))
    if weights.is_constant:
        moved = b.constant(np.ascontiguousarray(weights.array.transpose(4, 0, 1, 2, 3)), unpacked(weights))
    else:
        moved = b.transpose(weights, (4, 0, 1, 2, 3))
    result = (shape[0], *(w.output if w else None for w in windows), filters[4])
    return Sums(_convolved(b, x, moved, terms, result, pad, stride, dilation))


class _Dim(NamedTuple):
    """One dim of a transposed convolution: taps per output, padding around the input, cells, outputs to skip."""

    taps: int
    before: int
    after: int
    cells: int
    skip: int

    @classmethod
    def of(cls, kernel: int, stride: int, before: int, size: int, out: int) -> _Dim:
        """The dim of a convolution whose cells from `skip` on hold the `out` results."""
        taps, cells = -(-kernel // stride), -(-(before + out) // stride)
        return cls(taps, taps - 1, max(cells - size, 0), max(cells, size), before)


def conv_3d_transpose_sums(op: Conv3DTranspose, b: RuleBuilder, terms: Terms) -> Sums:
    """tosa.conv3d with channels per position of a cell; then these apart."""
    known, x, weights = b.known_elements(op.output_shape), b.value(op.input), terms.weights
    size = None if known is None else known.elements()
    shape = x.type.shape
    if size is None or len(size) != 5 or None in size[1:] or shape is None or len(shape) != 5 or None in shape[1:]:
        raise NotApplicable("the shape of the input or of the result is not known")
    if not weights.is_constant or len(weights.array.shape) != 5:
        raise NotApplicable(f"weights '{op.filter.name}' are not constant")
    stride, dilation = _steps(op)
    out = [d or 0 for d in size[1:]]
    if (out[3], shape[4]) != weights.array.shape[3:]:
        raise NotApplicable(f"filters of {weights.array.shape} do not make {out[3]} channels of {shape[4]}")
    filters = _dilated(weights.array, dilation, terms.weight_zp)
    dims: list[_Dim] = []
    for size_in, size_out, kernel, step in zip(shape[1:4], out, filters.shape, stride, strict=False):
        side = window(size_out, kernel, step, 1, op.padding)
        if side is None or side.output != size_in or not size_out:
            raise NotApplicable(f"an input of {size_in} does not make a result of {size_out}")
        dims.append(_Dim.of(kernel, step, side.before, size_in or 0, size_out))
    cells = _cells(filters, stride, [d.taps for d in dims], terms.weight_zp)
    count, ones = int(np.prod(stride)), (1, 1, 1)
    moved = b.constant(cells, unpacked(weights))
    bias = b.constant(sized.tile(terms.bias.array, count), terms.acc)
    tiled = Terms(terms.weights, bias, terms.input_zp, terms.weight_zp, terms.acc)
    result = (shape[0], *(d.cells for d in dims), cells.shape[0])
    pad = tuple(p for d in dims for p in (d.before, d.after))
    sums = _convolved(b, x, moved, tiled, result, pad, ones, ones)
    return Sums(sums, count, lambda b, y: _apart(b, y, stride, dims, out))


def _steps(op: Conv3D | Conv3DTranspose) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Strides and dilations in depth, height and width."""
    strides = op.stride_d, op.stride_h, op.stride_w
    return strides, (op.dilation_d_factor, op.dilation_h_factor, op.dilation_w_factor)


def _convolved(
    b: RuleBuilder,
    x: Value,
    weights: Value,
    terms: Terms,
    shape: Shape,
    pad: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Value:
    """tosa.conv3d with these weights and the terms' bias and zero points."""
    numbers = {"pad": pad, "stride": stride, "dilation": dilation}
    zeros = {"input_zp": terms.input_zp, "weight_zp": terms.weight_zp}
    return b.emit(tosa.Conv3D, [x, weights, terms.bias], TensorType(shape, terms.acc), **numbers, **zeros)


def _dilated(filters: np.ndarray, dilation: Sequence[int], fill: int) -> np.ndarray:
    """Filters with their zero point between the taps."""
    if max(dilation) == 1:
        return filters
    sizes = [(k - 1) * d + 1 for k, d in zip(filters.shape, dilation, strict=False)]
    full = sized.full((*sizes, *filters.shape[3:]), fill, filters.dtype)
    full[:: dilation[0], :: dilation[1], :: dilation[2]] = filters
    return full


def _cells(filters: np.ndarray, stride: Sequence[int], taps: Sequence[int], fill: int) -> np.ndarray:
    """[s_d * s_h * s_w * O, T_d, T_h, T_w, I] of [KD, KH, KW, O, I]; taps beyond the filter are its zero point."""
    outputs, inputs = filters.shape[3:]
    sizes = [t * s for t, s in zip(taps, stride, strict=True)]
    full = sized.full((*sizes, outputs, inputs), fill, filters.dtype)
    full[: filters.shape[0], : filters.shape[1], : filters.shape[2]] = filters
    split = [n for pair in zip(taps, stride, strict=True) for n in pair]
    apart = full.reshape(*split, outputs, inputs)[::-1, :, ::-1, :, ::-1]
    return np.ascontiguousarray(apart.transpose(1, 3, 5, 6, 0, 2, 4, 7)).reshape(-1, *taps, inputs)


def _apart(b: RuleBuilder, x: Value, stride: Sequence[int], dims: Sequence[_Dim], out: Sequence[int]) -> Value:
    """[N, D, H, W, (r_d, r_h, r_w, O)] -> [N, D s_d, H s_h, W s_w, O], cut to the result. One dim at a time, since
    kernels take no tensors of so many dims."""
    batch = (x.type.shape or (None,))[0]
    sizes, channels = [d.cells for d in dims], (x.type.shape or (0,))[-1] or 0
    for axis, step in enumerate(stride):
        if step == 1:
            continue
        channels //= step
        inner = int(np.prod(sizes[axis + 1 :]))
        lead = None if batch is None else batch * int(np.prod(sizes[: axis + 1]))
        cells = b.reshape(x, (lead, inner, step, channels))
        sizes[axis] *= step
        x = b.reshape(b.transpose(cells, (0, 2, 1, 3)), (batch, *sizes, channels))
    size = (batch, *out[:3], channels)
    return x if size == x.type.shape else b.slice(x, (0, *(d.skip for d in dims), 0), size)


# BATCH_MATMUL on types that no kernel computes: the real product, rounded once half away from zero.
#
#     result = round_half_away(sum_k (x[..., m, k] - x_zp) (y[..., k, n] - y_zp[n]) * s_x * s_y[n] / s_out) + zp
#
# A right side may be quantized per column. The sum is exact; a result of int32 is within one count.


_NOTE = "no kernel computes it; the real product, rounded"
_STORED = (i8, ui8, i16)


@rule(BatchMatMul, order=2)
def real_product(op: BatchMatMul, b: RuleBuilder) -> Answer:
    """tosa.transpose per adjoint, tosa.matmul, ext.rescale_f64."""
    x, y = op.lhs, op.rhs
    source, target = per_layer(op, [x, op.result])
    left = b.value(x)
    filters, zero = _right_side(op, b, y)
    if x.is_constant and source.storage.bits < 8:
        left = b.constant(left.array, i8)
    if left.type.storage not in _STORED or target.storage not in (*_STORED, i32):
        raise NotApplicable(f"no integer form from {source.storage} to {target.storage}")
    if (left.type.storage == i16 and source.zero_point) or (filters.type.storage == i16 and zero):
        raise NotApplicable("int16 with a zero point other than 0")
    shape, depth = sizes_of(op)
    if depth is None:
        raise NotApplicable("the number of products in a sum is not known")
    reach = _reach(left, source.zero_point) * _reach(filters, zero) * depth
    acc = i64 if reach >= 1 << 31 else i32
    right_scales = scales_of(y)
    assert right_scales is not None
    sums = product(op, b, (left, filters), shape, acc, (source.zero_point, zero))
    scales = double_scales(source.scale, right_scales, target.scale)
    answer = real_requantized(b, sums, scales, target, "NONE", (-reach, reach))
    return Rewritten([answer], note=_NOTE)


def _right_side(op: BatchMatMul, b: RuleBuilder, y: Value) -> tuple[Value, int]:
    """The right side in the integer form, and the zero point of all its columns."""
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
    return reach_of(value.type.storage, zero)


# FULLY_CONNECTED with a scale per block of weights, on quantized activations: within one count of the real result.
#
#     result[m, o] = clamp(round(sum_b s[b, o] sum_k (x[m, b, k] - x_zp) (w[b, k, o] - w_zp[b, o]) + bias[o]) + zp)
#     s = s_in * s_w / s_out
#
# The sums of a block are exact. Scaled, they have as many bits behind the point as the total leaves in 32, are added
# up and rounded half away from zero. kernels/fully_connected.cc takes such weights only with float activations.


_BLOCKS_NOTE = "no kernel computes it; the real sum of its blocks, rounded"
_SPARE = 1
"""Bits behind the point, in addition to those that the number of blocks takes."""


@rule(FullyConnected, order=2)
def blocks(op: FullyConnected, b: RuleBuilder) -> Answer:
    """tosa.matmul of blocks, tosa.rescale per block and channel, tosa.reduce_sum, a rounding shift."""
    x, weights, element = op.input, op.weights, op.weights.type.element
    source, target = per_layer(op, [x, op.result])
    if not isinstance(element, UniformQuantizedSubChannelType) or not weights.is_constant or x.type.shape is None:
        raise NotApplicable("the weights are not a constant with a scale per block")
    if source.storage not in _STORED or target.storage not in _STORED:
        raise NotApplicable(f"no integer form from {source.storage} to {target.storage}")
    if source.storage == i16:
        symmetric(op, source)
    outputs, depth = weights.array.shape
    size = dict(zip(element.axes, element.block_sizes, strict=True)).get(1, depth)
    if depth % size:
        raise NotApplicable(f"blocks of {size} do not divide {depth} weights")
    try:
        scales, zeros = (np.broadcast_to(v, (outputs, depth)) for v in parameters(weights.type))
    except (UnsupportedError, ValueError) as error:
        raise NotApplicable(str(error)) from error
    centred = weights.array.astype(np.int32) - zeros
    if (centred != centred.astype(np.int8)).any():
        raise NotApplicable("the weights less their zero points leave 8 bits")
    count = depth // size
    reach = np.abs(centred).reshape(outputs, count, size).sum(2) * reach_of(source.storage, source.zero_point)
    ratio = scales[:, ::size].astype(np.float64) * source.scale / float(np.float32(target.scale))
    bias = _bias(b, op.bias, outputs, target.scale)
    total = float(((reach * ratio).sum(1) + np.abs(bias)).max())
    bits = 29 - math.frexp(total)[1]
    if bits < count.bit_length() + _SPARE or reach.max() >= 1 << 31:
        raise NotApplicable("the scales of the blocks are too far above the result's for 32 bits")
    bits = min(bits, 24)
    rows = rows_of(x.type.shape, depth)
    shape = (*x.type.shape[:-1], outputs) if op.keep_num_dims else (rows, outputs)
    if shape.count(None) > 1:
        raise NotApplicable("more than one dim of the result is not known")
    apart = b.transpose(b.reshape(b.value(x), (rows, count, size)), (1, 0, 2))
    filters = b.constant(np.ascontiguousarray(centred.reshape(outputs, count, size).transpose(1, 2, 0)), i8)
    sums = b.emit(MatMul, [apart, filters], TensorType((count, rows, outputs), i32), a_zp=source.zero_point, b_zp=0)
    flat = b.reshape(b.transpose(sums, (1, 0, 2)), (rows, count * outputs))
    scaled = _scaled(b, flat, ratio.T.reshape(-1) * 2.0**bits, int(reach.max()))
    added = b.reshape(b.reduce("sum", b.reshape(scaled, (rows, count, outputs)), 1), (rows, outputs))
    counts = np.rint(bias * 2.0**bits).astype(np.int32)
    added = b.add(added, counts) if counts.any() else added
    clamp = result_range(target, op.fused_activation_function)
    result = stored(b, rounding_shift(b, added, bits), target, *clamp)
    return Rewritten([b.reshape(result, shape)], note=_BLOCKS_NOTE)


def _bias(b: RuleBuilder, bias: Value | None, outputs: int, unit: float) -> np.ndarray:
    """The bias in counts of the result."""
    if bias is None:
        return np.zeros(outputs)
    if not bias.is_constant or not (bias.type.quantized or bias.type.storage.is_float):
        raise NotApplicable(f"bias '{bias.name}' is not constant, or integers without a scale")
    scale, zero = parameters(bias.type) if bias.type.quantized else (np.asarray(1.0), np.asarray(0))
    real = (b.value(bias).array.astype(np.float64).reshape(-1) - zero) * scale.astype(np.float64)
    if real.size not in (1, outputs) or not np.isfinite(real).all():
        raise NotApplicable(f"bias '{bias.name}' does not have one finite number per channel")
    return np.broadcast_to(real / unit, (outputs,))


def _scaled(b: RuleBuilder, sums: Value, ratio: np.ndarray, reach: int) -> Value:
    """Sums times a ratio per channel; a ratio that leaves less than half a count of them is 0."""
    least = 0.25 / max(reach, 1)
    mantissa, left = quantize_multipliers(np.where(ratio < least, 1.0, ratio))
    return b.rescale(sums, (np.where(ratio < least, 0, mantissa), left), i32, input_range=(-reach, reach))
