"""The sums of CONV_3D, filters [KD, KH, KW, I, O], and CONV_3D_TRANSPOSE, filters [KD, KH, KW, O, I].

The transposed one is a convolution whose channels are the positions of a cell of stride steps. Its full result at
f = q * s + r (r < s) is sum_t x[q - t] * w[t * s + r], for each dim; the channels (r_d, r_h, r_w, o) of the scaled
result are moved apart, and what the padding takes off is cut away. Dilated filters have zeros between their taps.
Sources: kernels/conv3d.cc, conv3d_transpose.cc, internal/reference/conv3d_transpose.h.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.analysis.sizes import known_elements
from tflq.dialects.tfl.convolution import Conv3D, Conv3DTranspose
from tflq.dialects.tosa import convolution as tosa
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, Shape, TensorType, i8
from tflq.legalize.reference.generic.accumulate import Sums, Terms
from tflq.legalize.rule import NotApplicable, RuleBuilder
from tflq.light import dataclass
from tflq.numerics.convolution import window

__all__ = ["conv_3d_sums", "conv_3d_transpose_sums"]


def conv_3d_sums(op: Conv3D, b: RuleBuilder, terms: Terms) -> Sums:
    """tosa.conv3d."""
    x, weights = b.value(op.input), terms.weights
    shape, filters = x.type.shape, weights.type.shape or ()
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
    made: Shape = (shape[0], *(w.output if w else None for w in windows), filters[4])
    if weights.is_constant:
        moved = b.constant(np.ascontiguousarray(weights.array.transpose(4, 0, 1, 2, 3)), _unpacked(weights))
    else:
        moved = b.transpose(weights, (4, 0, 1, 2, 3))
    return Sums(_convolved(b, x, moved, terms, made, pad, stride, dilation))


@dataclass(frozen=True, slots=True)
class _Dim:
    """One dim of a transposed convolution: taps per output, padding around the input, cells, outputs to skip."""

    taps: int
    before: int
    after: int
    cells: int
    skip: int


def conv_3d_transpose_sums(op: Conv3DTranspose, b: RuleBuilder, terms: Terms) -> Sums:
    """tosa.conv3d with channels per position of a cell; then these apart."""
    size, x, weights = known_elements(op.output_shape), b.value(op.input), terms.weights
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
    for given, made, kernel, step in zip(shape[1:4], out, filters.shape, stride, strict=False):
        found = window(made, kernel, step, 1, op.padding)
        if found is None or found.output != given or not made:
            raise NotApplicable(f"an input of {given} does not make a result of {made}")
        dims.append(_placed(kernel, step, found.before, given or 0, made))
    cells = _cells(filters, stride, [d.taps for d in dims], terms.weight_zp)
    count = int(np.prod(stride))
    tiled = Terms(
        b.constant(cells, _unpacked(weights)),
        b.constant(np.tile(terms.bias.array, count), terms.acc),
        terms.input_zp,
        terms.weight_zp,
        terms.acc,
    )
    made_shape: Shape = (shape[0], *(d.cells for d in dims), cells.shape[0])
    pad = tuple(p for d in dims for p in (d.before, d.after))
    sums = _convolved(b, x, tiled.weights, tiled, made_shape, pad, (1, 1, 1), (1, 1, 1))
    return Sums(sums, count, lambda b, y: _apart(b, y, stride, dims, out))


def _steps(op: Conv3D | Conv3DTranspose) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Strides and dilations in depth, height and width."""
    strides = op.stride_d, op.stride_h, op.stride_w
    return strides, (op.dilation_d_factor, op.dilation_h_factor, op.dilation_w_factor)


def _unpacked(weights: Value) -> ScalarType:
    return i8 if weights.type.storage.bits < 8 else weights.type.storage


def _convolved(
    b: RuleBuilder,
    x: Value,
    weights: Value,
    terms: Terms,
    shape: Shape,
    pad: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Value:
    return b.emit(
        tosa.Conv3D,
        [x, weights, terms.bias],
        TensorType(shape, terms.acc),
        pad=tuple(pad),
        stride=tuple(stride),
        dilation=tuple(dilation),
        input_zp=terms.input_zp,
        weight_zp=terms.weight_zp,
    )


def _dilated(filters: np.ndarray, dilation: Sequence[int], fill: int) -> np.ndarray:
    """Filters with their zero point between the taps."""
    if max(dilation) == 1:
        return filters
    sizes = [(k - 1) * d + 1 for k, d in zip(filters.shape, dilation, strict=False)]
    full = np.full((*sizes, *filters.shape[3:]), fill, filters.dtype)
    full[:: dilation[0], :: dilation[1], :: dilation[2]] = filters
    return full


def _placed(kernel: int, stride: int, before: int, size: int, out: int) -> _Dim:
    """What the convolution reads so that cells from `skip` on hold the `out` results."""
    taps = -(-kernel // stride)
    cells = -(-(before + out) // stride)
    return _Dim(taps, taps - 1, max(cells - size, 0), max(cells, size), before)


def _cells(filters: np.ndarray, stride: Sequence[int], taps: Sequence[int], fill: int) -> np.ndarray:
    """[s_d * s_h * s_w * O, T_d, T_h, T_w, I] of [KD, KH, KW, O, I]; taps beyond the filter are its zero point."""
    outputs, inputs = filters.shape[3:]
    sizes = [t * s for t, s in zip(taps, stride, strict=True)]
    full = np.full((*sizes, outputs, inputs), fill, filters.dtype)
    full[: filters.shape[0], : filters.shape[1], : filters.shape[2]] = filters
    split = [n for pair in zip(taps, stride, strict=True) for n in pair]
    apart = full.reshape(*split, outputs, inputs)[::-1, :, ::-1, :, ::-1]
    return np.ascontiguousarray(apart.transpose(1, 3, 5, 6, 0, 2, 4, 7)).reshape(-1, *taps, inputs)


def _apart(b: RuleBuilder, x: Value, stride: Sequence[int], dims: Sequence[_Dim], out: Sequence[int]) -> Value:
    """[N, D, H, W, (r_d, r_h, r_w, O)] -> [N, D s_d, H s_h, W s_w, O], cut to the result. One dim at a time: more
    would be of more dims than kernels take."""
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
    start, size = (0, *(d.skip for d in dims), 0), (batch, *out[:3], channels)
    if tuple(size) == x.type.shape:
        return x
    return b.slice(x, start, size)
