"""The windows of a convolution as rows of a matrix: [N, H, W, C] -> [N, OH, OW, KH * KW * C].

PADV2, one STRIDED_SLICE per filter tap, CONCATENATION. The slices end relative to the padded input's end, so that no size of the
input is written into the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.ir.core import Op, Value
from tflq.ir.types import Shape, TensorType
from tflq.select.lowering import Kernels

__all__ = ["Geometry", "pad_spatial", "patches", "refolded", "tap_slices"]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Filter size, padding (top, bottom, left, right), stride and dilation (y, x)."""

    kernel: tuple[int, int]
    pad: tuple[int, int, int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]

    @classmethod
    def of(cls, op: Op, kernel: Sequence[int]) -> Geometry:
        a = op.attributes
        return cls((kernel[0], kernel[1]), a["pad"], a["stride"], a["dilation"])

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
        return (size + self.pad[2 * axis] + self.pad[2 * axis + 1] - extent) // self.stride[axis] + 1


def pad_spatial(k: Kernels, x: Value, pad: Sequence[int], fill: int | float) -> Value:
    """x with rows and columns of `fill` around it."""
    top, bottom, left, right = pad
    if not any(pad):
        return x
    batch, height, width, channels = x.type.shape or (None,) * 4
    shape = (
        batch,
        None if height is None else height + top + bottom,
        None if width is None else width + left + right,
        channels,
    )
    return k.padv2(x, np.asarray([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32), fill, shape)


def tap_slices(k: Kernels, x: Value, geometry: Geometry) -> list[Value]:
    """For each filter tap, row by row, the elements of padded x that it meets: [N, OH, OW, C]."""
    (kernel_h, kernel_w), (stride_h, stride_w), (dilation_h, dilation_w) = geometry.kernel, geometry.stride, geometry.dilation
    if geometry.kernel == (1, 1) and geometry.stride == (1, 1):
        return [x]
    unpadded = Geometry(geometry.kernel, (0, 0, 0, 0), geometry.stride, geometry.dilation)
    shape = unpadded.output(x.type.shape, (x.type.shape or (0,))[-1] or 0)
    slices: list[Value] = []
    for i in range(kernel_h):
        for j in range(kernel_w):
            below, right = (kernel_h - 1 - i) * dilation_h, (kernel_w - 1 - j) * dilation_w
            to_end = 0b1001 | (0 if below else 0b10) | (0 if right else 0b100)
            begin, end = (0, i * dilation_h, j * dilation_w, 0), (0, -below, -right, 0)
            strides = (1, stride_h, stride_w, 1)
            slices.append(k.strided_slice(x, begin, end, strides, shape, begin_mask=0b1001, end_mask=to_end))
    return slices


def patches(k: Kernels, x: Value, geometry: Geometry, fill: int) -> Value:
    """[N, OH, OW, KH * KW * C]: the window of each output position, row by row, padded with `fill`."""
    slices = tap_slices(k, pad_spatial(k, x, geometry.pad, fill), geometry)
    if len(slices) == 1:
        return slices[0]
    shape = slices[0].type.shape
    depth = None if shape is None or shape[-1] is None else shape[-1] * len(slices)
    return k.concatenation(slices, 3, None if shape is None else (*shape[:-1], depth))


def refolded(k: Kernels, x: Value, shape: Shape) -> Value:
    """RESHAPE that leaves the first dim to be inferred, so that the model runs with any batch."""
    if shape is None or not shape:
        raise ValueError("a shape without a first dim")
    folded = k.reshape(x, (None, *shape[1:]))
    folded.type = TensorType(shape, x.type.element)
    return folded
