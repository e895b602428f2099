"""The windows of a convolution as rows of a matrix: [N, H, W, C] -> [N, OH, OW, KH * KW * C].

PADV2, GATHER along the width, GATHER of the rows that each row of the filter meets, CONCATENATION: pieces as long as
they can be, since the kernels copy piece by piece. STRIDED_SLICE, 50 times slower, is left for inputs whose height or
width is not known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from tflq.base import sized
from tflq.dialects.tosa.convolution import Conv2D, Convolution, DepthwiseConv2D
from tflq.formats.tflite.lowering.lowering import Tflite
from tflq.formats.tflite.lowering.shifts import fits_int32
from tflq.ir.ops import Value
from tflq.ir.types import ScalarType, Shape, i32


class Geometry:
    """Filter size, padding (top, bottom, left, right), stride and dilation (y, x)."""

    __slots__ = ("dilation", "kernel", "pad", "stride")

    def __init__(
        self, kernel: tuple[int, ...], pad: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
    ) -> None:
        self.kernel: Final = kernel
        self.pad: Final = pad
        self.stride: Final = stride
        self.dilation: Final = dilation

    @classmethod
    def of(cls, op: Conv2D | DepthwiseConv2D, kernel: Sequence[int]) -> Geometry:
        """The geometry of a convolution with a filter of a size."""
        return cls((kernel[0], kernel[1]), op.pad, op.stride, op.dilation)

    @property
    def pointwise(self) -> bool:
        """Whether each output reads the one input at its own position."""
        return self.kernel == (1, 1) and self.stride == (1, 1) and not any(self.pad)

    def output(self, shape: Shape, channels: int) -> Shape:
        """The output's shape for an input's."""
        batch, height, width, _ = shape or (None,) * 4
        return (batch, self._size(height, 0), self._size(width, 1), channels)

    def _size(self, size: int | None, axis: int) -> int | None:
        if size is None:
            return None
        extent = (self.kernel[axis] - 1) * self.dilation[axis] + 1
        return max((size + self.pad[2 * axis] + self.pad[2 * axis + 1] - extent) // self.stride[axis] + 1, 0)


class Layer(NamedTuple):
    """A convolution of integers: x and weights, less their zero points, are multiplied and added up in `element`."""

    x: Value
    weights: Value
    bias: Value
    geometry: Geometry
    zero_points: tuple[int, int]
    element: ScalarType

    @classmethod
    def of(cls, k: Tflite, op: Convolution, x: Value, weights: Value, bias: Value, geometry: Geometry) -> Layer:
        """The layer of an op: in int32 if its accumulator is of int32, or stays within it."""
        acc = op.output.type.storage
        element = i32 if acc == i32 or fits_int32(k, op) else acc
        return cls(x, weights, bias, geometry, (op.input_zp, op.weight_zp), element)


def pad_spatial(k: Tflite, x: Value, pad: Sequence[int], fill: int | float) -> Value:
    """x with rows and columns of `fill` around it."""
    top, bottom, left, right = pad
    if not any(pad):
        return x
    return k.padv2(x, ((0, 0), (top, bottom), (left, right), (0, 0)), fill)


def patches(k: Tflite, x: Value, geometry: Geometry, fill: int) -> Value:
    """[N, OH, OW, KH * KW * C]: the window of each output position, row by row, padded with `fill`."""
    padded = pad_spatial(k, x, geometry.pad, fill)
    if geometry.kernel == (1, 1) and geometry.stride == (1, 1):
        return padded
    _, out_h, out_w, channels = geometry.output(x.type.shape, (x.type.shape or (0,))[-1] or 0) or ()
    if out_h is None or out_w is None:
        pieces = list(_strided_taps(k, padded, geometry))
    else:
        wide = _windows_of_rows(k, padded, geometry, out_w, channels or 0)
        stride, dilation = geometry.stride[0], geometry.dilation[0]
        pieces = [_picked(k, wide, 1, i * dilation, stride, out_h) for i in range(geometry.kernel[0])]
    return pieces[0] if len(pieces) == 1 else k.concatenation(pieces, 3)


def _windows_of_rows(k: Tflite, x: Value, geometry: Geometry, out_w: int, channels: int) -> Value:
    """[N, H, OW, KW * C]: along each row, the elements under each position of the filter."""
    batch, height, width, _ = x.type.shape or (None,) * 4
    kernel, stride, dilation = geometry.kernel[1], geometry.stride[1], geometry.dilation[1]
    sized.need_few(out_w * kernel)
    columns = (np.arange(out_w)[:, None] * stride + np.arange(kernel) * dilation).reshape(-1).astype(np.int32)
    if not np.array_equal(columns, np.arange(width or 0)):
        x = k.gather(x, k.constant(columns), axis=2)
    return x if kernel == 1 else k.refold(x, (batch, height, out_w, kernel * channels))


def tap_sum(
    k: Tflite,
    x: Value,
    geometry: Geometry,
    function: Callable[[Value, int], Value],
    *,
    fold: int,
    element: ScalarType,
) -> Value:
    """The sum of `function` of what each filter tap meets in padded x: [N, OH, OW / fold, fold * C].

    `function` is elementwise and takes x in `element`, and the tap's number. What the taps of a row of the filter give
    lies in the same rows, and is added up before these are cut out.
    """
    (kernel_h, kernel_w), (stride_h, stride_w) = geometry.kernel, geometry.stride
    dilation_h, dilation_w = geometry.dilation
    unpadded = Geometry(geometry.kernel, (0, 0, 0, 0), geometry.stride, geometry.dilation)
    batch, out_h, out_w, _ = unpadded.output(x.type.shape, 0) or (None,) * 4
    if out_h is None or out_w is None:
        pieces = enumerate(_strided_taps(k, x, geometry))
        return functools.reduce(k.add, (function(k.cast(tap, element), number) for number, tap in pieces))
    _, height, _, channels = x.type.shape or (None,) * 4

    def column(j: int) -> Value:
        picked = _picked(k, x, 2, j * dilation_w, stride_w, out_w)
        if fold > 1:
            picked = k.refold(picked, (batch, height, out_w // fold, fold * (channels or 0)))
        return k.cast(picked, element)

    phases = [i * dilation_h % stride_h for i in range(kernel_h)]
    starts = [i * dilation_h // stride_h for i in range(kernel_h)]

    def rows_of(column: Value) -> dict[int, Value]:
        counts = {phase: -(-((height or 0) - phase) // stride_h) for phase in phases}
        return {phase: _picked(k, column, 1, phase, stride_h, count) for phase, count in counts.items()}

    if element.is_float:  # these are added up one by one, in their order
        columns = [rows_of(column(j)) for j in range(kernel_w)]
        terms = [
            _picked(k, function(columns[j][phases[i]], i * kernel_w + j), 1, starts[i], 1, out_h)
            for i in range(kernel_h)
            for j in range(kernel_w)
        ]
        return functools.reduce(k.add, terms)
    sums: dict[int, Value] = {}  # by row of the filter: a column is needed no longer than for its own products
    for j in range(kernel_w):
        rows = rows_of(column(j))
        for i, phase in enumerate(phases):
            term = function(rows[phase], i * kernel_w + j)
            sums[i] = k.add(sums[i], term) if i in sums else term
    return functools.reduce(k.add, [_picked(k, sums[i], 1, starts[i], 1, out_h) for i in range(kernel_h)])


def _picked(k: Tflite, x: Value, axis: int, start: int, stride: int, count: int) -> Value:
    """`count` positions of an axis from `start`, `stride` apart, by GATHER. It is as fast as SLICE, which keeps a
    stated shape when the model is resized, and makes its result dynamic where none is stated."""
    if x.type.shape is not None and (start, stride, count) == (0, 1, x.type.shape[axis]):
        return x
    return k.gather(x, k.constant(sized.arange(count, dtype=np.int32) * stride + start), axis)


def _strided_taps(k: Tflite, x: Value, geometry: Geometry) -> Iterator[Value]:
    """The slice of x under each filter tap, if height or width is not known: it ends relative to the end of x."""
    (kernel_h, kernel_w), (dilation_h, dilation_w) = geometry.kernel, geometry.dilation
    for i in range(kernel_h):
        for j in range(kernel_w):
            below, right = (kernel_h - 1 - i) * dilation_h, (kernel_w - 1 - j) * dilation_w
            to_end = 0b1001 | (0 if below else 0b10) | (0 if right else 0b100)
            begin, end = (0, i * dilation_h, j * dilation_w, 0), (0, -below, -right, 0)
            yield k.strided_slice(x, begin, end, (1, *geometry.stride, 1), begin_mask=0b1001, end_mask=to_end)
