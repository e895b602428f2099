"""Shapes of operators with windows: convolutions, pools, resizes.

Sources: kernels/conv.cc, depthwise_conv.cc, transpose_conv.cc, conv3d.cc, conv3d_transpose.cc, pooling.cc,
resize_bilinear.cc, resize_nearest_neighbor.cc; output sizes: `ComputeOutSize` in kernels/padding.h.
"""

from __future__ import annotations

from tflq.dialects.tfl.convolution import Conv2D, Conv3D, Conv3DTranspose, DepthwiseConv2D, TransposeConv
from tflq.dialects.tfl.pooling import AveragePool2D, L2Pool2D, MaxPool2D
from tflq.dialects.tfl.resize import ResizeBilinear, ResizeNearestNeighbor
from tflq.ir.types import Shape
from tflq.numerics.convolution import window
from tflq.shapes.site import Dims, Misfit, NotInferred, Site, agree, shape

__all__: list[str] = []


def _slide(site: Site, sizes: Dims, kernel: Dims, letters: str) -> Dims:
    """Output sizes of spatial dims."""
    a = site.attributes
    out: list[int | None] = []
    for size, extent, letter in zip(sizes, kernel, letters, strict=True):
        if extent is None:
            raise NotInferred("the size of its filter is not known")
        found = window(size, extent, a[f"stride_{letter}"], a.get(f"dilation_{letter}_factor", 1), a["padding"])
        output = None if found is None else found.output
        if output is not None and output < 0:
            raise Misfit(f"a filter of {extent} does not fit into {size}")
        out.append(output)
    return tuple(out)


@shape(Conv2D)
def _conv_2d(site: Site) -> Shape:
    """[N, H, W, I] with [O, KH, KW, I / groups]."""
    n, h, w, channels = site.dims(0, 4)
    outputs, kh, kw, inputs = site.dims(1, 4)
    if channels is not None and inputs and channels % inputs:
        raise Misfit(f"{channels} channels do not divide into groups of {inputs}")
    return (n, *_slide(site, (h, w), (kh, kw), "hw"), outputs)


@shape(DepthwiseConv2D)
def _depthwise(site: Site) -> Shape:
    """[N, H, W, C] with [1, KH, KW, C · multiplier]."""
    n, h, w, _ = site.dims(0, 4)
    _, kh, kw, outputs = site.dims(1, 4)
    return (n, *_slide(site, (h, w), (kh, kw), "hw"), outputs)


@shape(Conv3D)
def _conv_3d(site: Site) -> Shape:
    """[N, D, H, W, I] with [KD, KH, KW, I, O]."""
    n, *sizes, _ = site.dims(0, 5)
    *kernel, _, outputs = site.dims(1, 5)
    return (n, *_slide(site, tuple(sizes), tuple(kernel), "dhw"), outputs)


@shape(AveragePool2D, MaxPool2D, L2Pool2D)
def _pool(site: Site) -> Shape:
    n, h, w, c = site.dims(0, 4)
    a = site.attributes
    return (n, *_slide(site, (h, w), (a["filter_height"], a["filter_width"]), "hw"), c)


@shape(TransposeConv)
def _transpose_conv(site: Site) -> Shape:
    """The operand that says the shape must name the input's batch."""
    n, h, w, c = site.ints(0, 4)
    batch = agree(n, site.dims(2, 4)[0], "output_shape and input have batches that")
    return (batch, h, w, agree(c, site.dims(1, 4)[0], "output_shape and filter have channels that"))


@shape(Conv3DTranspose)
def _conv_3d_transpose(site: Site) -> Shape:
    n, d, h, w, c = site.ints(0, 5)
    batch = agree(n, site.dims(2, 5)[0], "output_shape and input have batches that")
    return (batch, d, h, w, agree(c, site.dims(1, 5)[3], "output_shape and filter have channels that"))


@shape(ResizeBilinear, ResizeNearestNeighbor)
def _resize(site: Site) -> Shape:
    n, _, _, c = site.dims(0, 4)
    return (n, *site.ints(1, 2), c)
