"""Shapes of convolutions.

Sources: kernels/conv.cc, depthwise_conv.cc, transpose_conv.cc, conv3d.cc, conv3d_transpose.cc; `ComputeOutSize` in
kernels/padding.h.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.dialects.inference import Dims, Misfit, NotInferred, agree
from tflq.dialects.tfl.convolution import Conv2D, Conv3D, Conv3DTranspose, DepthwiseConv2D, TransposeConv
from tflq.ir.types import Shape
from tflq.numerics.convolution import window
from tflq.shapes.site import Site, shape_of

__all__ = ["slide"]


def slide(
    sizes: Dims, kernel: Dims, strides: Sequence[int], padding: str, dilations: Sequence[int] | None = None
) -> Dims:
    """Sizes of the results of windows that slide over spatial dims."""
    out: list[int | None] = []
    for size, extent, stride, dilation in zip(sizes, kernel, strides, dilations or (1,) * len(sizes), strict=True):
        if extent is None:
            raise NotInferred("the size of its filter is not known")
        found = window(size, extent, stride, dilation, padding)
        output = None if found is None else found.output
        if output is not None and output < 0:
            raise Misfit(f"a filter of {extent} does not fit into {size}")
        out.append(output)
    return tuple(out)


@shape_of(Conv2D)
def _conv_2d(op: Conv2D, site: Site) -> Shape:
    """[N, H, W, I] with [O, KH, KW, I / groups]."""
    n, h, w, channels = site.dims(op.input, 4)
    outputs, kh, kw, inputs = site.dims(op.filter, 4)
    if channels is not None and inputs and channels % inputs:
        raise Misfit(f"{channels} channels do not divide into groups of {inputs}")
    dilations = op.dilation_h_factor, op.dilation_w_factor
    return (n, *slide((h, w), (kh, kw), (op.stride_h, op.stride_w), op.padding, dilations), outputs)


@shape_of(DepthwiseConv2D)
def _depthwise(op: DepthwiseConv2D, site: Site) -> Shape:
    """[N, H, W, C] with [1, KH, KW, C · multiplier]."""
    n, h, w, _ = site.dims(op.input, 4)
    _, kh, kw, outputs = site.dims(op.filter, 4)
    dilations = op.dilation_h_factor, op.dilation_w_factor
    return (n, *slide((h, w), (kh, kw), (op.stride_h, op.stride_w), op.padding, dilations), outputs)


@shape_of(Conv3D)
def _conv_3d(op: Conv3D, site: Site) -> Shape:
    """[N, D, H, W, I] with [KD, KH, KW, I, O]."""
    n, *sizes, _ = site.dims(op.input, 5)
    *kernel, _, outputs = site.dims(op.filter, 5)
    strides = op.stride_d, op.stride_h, op.stride_w
    dilations = op.dilation_d_factor, op.dilation_h_factor, op.dilation_w_factor
    return (n, *slide(tuple(sizes), tuple(kernel), strides, op.padding, dilations), outputs)


@shape_of(TransposeConv)
def _transpose_conv(op: TransposeConv, site: Site) -> Shape:
    """The operand that says the shape must name the input's batch."""
    n, h, w, c = site.ints(op.output_shape, 4)
    batch = agree(n, site.dims(op.input, 4)[0], "output_shape and input have batches that")
    return (batch, h, w, agree(c, site.dims(op.filter, 4)[0], "output_shape and filter have channels that"))


@shape_of(Conv3DTranspose)
def _conv_3d_transpose(op: Conv3DTranspose, site: Site) -> Shape:
    n, d, h, w, c = site.ints(op.output_shape, 5)
    batch = agree(n, site.dims(op.input, 5)[0], "output_shape and input have batches that")
    return (batch, d, h, w, agree(c, site.dims(op.filter, 5)[3], "output_shape and filter have channels that"))
