"""Shapes of pools. Sources: kernels/pooling.cc, reduce_window.cc."""

from __future__ import annotations

from tflq.dialects.tfl.pooling import AveragePool2D, L2Pool2D, MaxPool2D, ReduceWindow
from tflq.ir.types import Shape
from tflq.shapes.convolution import slide
from tflq.shapes.site import Site, shape_of

__all__: list[str] = []


@shape_of(AveragePool2D, MaxPool2D, L2Pool2D)
def _pool(op: AveragePool2D | MaxPool2D | L2Pool2D, site: Site) -> Shape:
    n, h, w, c = site.dims(op.input, 4)
    return (n, *slide((h, w), (op.filter_height, op.filter_width), (op.stride_h, op.stride_w), op.padding), c)


@shape_of(ReduceWindow)
def _reduce_window(op: ReduceWindow, site: Site) -> Shape:
    dims = site.dims(op.input)
    window, strides, dilations = (site.ints(v, len(dims)) for v in (op.shape, op.strides, op.dilations))
    out: list[int | None] = []
    for dim, size, stride, dilation in zip(dims, window, strides, dilations, strict=True):
        if dim is None or size is None or not stride or dilation is None:
            out.append(None)
        else:
            out.append(max((dim - (size - 1) * dilation - 1) // stride + 1, 0))
    return tuple(out)
