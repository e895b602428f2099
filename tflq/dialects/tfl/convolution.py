"""Convolutions (windows of the input times a filter, plus a bias) and products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from tflq.dialects.declare import QUANTIZED, Operator, Trait, Types, attribute, operand, result
from tflq.dialects.inference import DeclaredShapes, Dims, Misfit, agree, matrix_product, product, slide
from tflq.dialects.parameters import (
    HybridKernel,
    Int16Symmetric,
    Misreads,
    MultiplyAccumulate,
    ParametersUnread,
    QuantizedTogether,
)
from tflq.dialects.tfl import Needs
from tflq.dialects.traits import FilterChannels, HasShape, NonNegative, SizedBy, Window
from tflq.ir.ops import Value
from tflq.ir.types import Shape, f32, i2, i4, i8, i16, i32, i64, ui8

BIAS: Final = Types(f32, i32, i64, QUANTIZED)
"""Element types of biases: of floats, of plain accumulators, and quantized."""


def _check_biases(site: DeclaredShapes, bias: Value | None, count: int | None, what: str) -> None:
    """Misfit if there is not a bias for each channel or unit. The kernels count elements, whatever the rank is."""
    if bias is not None:
        agree(count, product(site.dims(bias)), f"{what} and biases")


class Windowed2D(Operator):
    """Windows of height and width times a filter, plus a bias."""

    input: Value = operand()
    filter: Value = operand()
    bias: Value | None = operand(BIAS, optional=True)
    output: Value = result()
    padding: str = attribute(default="SAME")
    stride_w: int = attribute(default=0, positive=True)
    stride_h: int = attribute(default=0, positive=True)
    dilation_w_factor: int
    dilation_h_factor: int
    traits: ClassVar[tuple[Trait, ...]] = (QuantizedTogether(input, filter, output), Int16Symmetric(input, output))

    def places(self, sizes: Sequence[int | None], kernel: Sequence[int | None]) -> Dims:
        """Height and width of the result, from those of the input and of the filter."""
        dilations = self.dilation_h_factor, self.dilation_w_factor
        return slide(sizes, kernel, (self.stride_h, self.stride_w), self.padding, dilations)


_OF_WINDOWS: Final = Windowed2D.input, Windowed2D.filter, Windowed2D.bias
_WINDOW: Final = Window(Windowed2D.input)


class Conv2D(Windowed2D, name="tfl.conv_2d", newest=8):
    """2-D convolution of an NHWC input and an OHWI filter; a filter of fewer input channels makes groups. Source:
    kernels/conv.cc."""

    fused_activation_function: str = attribute(default="NONE")
    dilation_w_factor: int = attribute(default=1, positive=True)
    dilation_h_factor: int = attribute(default=1, positive=True)
    quantized_bias_type: str = attribute(default="FLOAT32")
    traits = (
        MultiplyAccumulate(*_OF_WINDOWS, axis=0, zero_point="refuse"),
        *Windowed2D.traits,
        FilterChannels(*_OF_WINDOWS, output=0, input=3),
        _WINDOW,
        HybridKernel((i4, i8, ui8), scaleless=(i4, i8)),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        """[N, H, W, I] with [O, KH, KW, I / groups]."""
        n, *sizes, channels = site.dims(self.input, 4)
        outputs, *kernel, inputs = site.dims(self.filter, 4)
        if channels is not None and inputs and channels % inputs:
            raise Misfit(f"{channels} channels do not divide into groups of {inputs}")
        groups = channels // inputs if channels and inputs else 1
        if outputs is not None and outputs % groups:
            raise Misfit(
                f"{outputs} output channels do not divide into the {groups} groups of {channels} input channels"
            )
        return (n, *self.places(sizes, kernel), outputs)


class DepthwiseConv2D(Windowed2D, name="tfl.depthwise_conv_2d", newest=6):
    """2-D convolution of each channel by itself; the filter is [1, H, W, channels * multiplier]. Source:
    kernels/depthwise_conv.cc."""

    depth_multiplier: int = attribute(default=0, unread=True)
    fused_activation_function: str = attribute(default="NONE")
    dilation_w_factor: int = attribute(default=1, positive=True)
    dilation_h_factor: int = attribute(default=1, positive=True)
    traits = (
        MultiplyAccumulate(*_OF_WINDOWS, axis=3),
        *Windowed2D.traits,
        FilterChannels(*_OF_WINDOWS, output=3, input=3),
        _WINDOW,
        HybridKernel((i8,)),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        """[N, H, W, C] with [1, KH, KW, C · multiplier]."""
        n, *sizes, channels = site.dims(self.input, 4)
        one, *kernel, outputs = site.dims(self.filter, 4)
        agree(one, 1, "the first dim of the filter, and what it must be, that")
        if channels and outputs is not None and outputs % channels:
            raise Misfit(f"{outputs} channels of the filter are not a multiple of the {channels} of the input")
        return (n, *self.places(sizes, kernel), outputs)


class TransposeConv(Operator, name="tfl.transpose_conv", newest=5):
    """The transpose of a 2-D convolution: each input adds a scaled filter OHWI to the result. Source:
    kernels/transpose_conv.cc."""

    output_shape: Value = operand(indices=True)
    filter: Value = operand()
    input: Value = operand()
    bias: Value | None = operand(BIAS, optional=True)
    output: Value = result()
    padding: str = attribute(default="SAME")
    stride_w: int = attribute(default=0, positive=True)
    stride_h: int = attribute(default=0, positive=True)
    fused_activation_function: str = attribute(default="NONE")
    quantized_bias_type: str = attribute(default="FLOAT32")
    traits = (
        MultiplyAccumulate(input, filter, bias, axis=0),
        QuantizedTogether(input, filter, output),
        Int16Symmetric(input, output),
        NonNegative(output_shape),
        HasShape(output_shape, 4),
        FilterChannels(input, filter, bias, output=0, input=3),
        HybridKernel((i8,)),
        SizedBy(output_shape),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        """The operand that says the shape must name the input's batch."""
        n, h, w, c = site.ints(self.output_shape, 4)
        inputs, filters = site.dims(self.input, 4), site.dims(self.filter, 4)
        agree(inputs[3], filters[3], "input and filter have channels that")
        batch = agree(n, inputs[0], "output_shape and input have batches that")
        return (batch, h, w, agree(c, filters[0], "output_shape and filter have channels that"))


class Windowed3D(Operator):
    """Windows of depth, height and width."""

    padding: str = attribute(default="SAME")
    stride_d: int = attribute(default=0, positive=True)
    stride_w: int = attribute(default=0, positive=True)
    stride_h: int = attribute(default=0, positive=True)
    fused_activation_function: str = attribute(default="NONE")
    dilation_d_factor: int = attribute(default=1, positive=True)
    dilation_w_factor: int = attribute(default=1, positive=True)
    dilation_h_factor: int = attribute(default=1, positive=True)


class Conv3D(Windowed3D, name="tfl.conv_3d"):
    """3-D convolution of an NDHWC input and a DHWIO filter. Source: kernels/conv3d.cc."""

    input: Value = operand()
    filter: Value = operand()
    bias: Value | None = operand(BIAS, optional=True)
    output: Value = result()

    def infer(self, site: DeclaredShapes) -> Dims:
        """[N, D, H, W, I] with [KD, KH, KW, I, O]."""
        n, *sizes, channels = site.dims(self.input, 5)
        *kernel, inputs, outputs = site.dims(self.filter, 5)
        agree(channels, inputs, "input and filter have channels that")
        _check_biases(site, self.bias, outputs, "channels")
        strides = self.stride_d, self.stride_h, self.stride_w
        dilations = self.dilation_d_factor, self.dilation_h_factor, self.dilation_w_factor
        return (n, *slide(sizes, kernel, strides, self.padding, dilations), outputs)


class Conv3DTranspose(Windowed3D, name="tfl.conv_3d_transpose"):
    """The transpose of a 3-D convolution. Source: kernels/conv3d_transpose.cc."""

    output_shape: Value = operand(indices=True)
    filter: Value = operand()
    input: Value = operand()
    bias: Value | None = operand(BIAS, optional=True)
    output: Value = result()
    traits = (NonNegative(output_shape), SizedBy(output_shape))

    def infer(self, site: DeclaredShapes) -> Dims:
        n, d, h, w, c = site.ints(self.output_shape, 5)
        inputs, filters = site.dims(self.input, 5), site.dims(self.filter, 5)
        agree(inputs[4], filters[4], "input and filter have channels that")
        batch, channels = agree(n, inputs[0], "output_shape and input have batches that"), filters[3]
        _check_biases(site, self.bias, channels, "channels")
        return (batch, d, h, w, agree(c, channels, "output_shape and filter have channels that"))


# Products of matrices.


class FullyConnected(Operator, name="tfl.fully_connected", newest=14):
    """input × weightsᵀ + bias; weights are [outputs, inputs]. Source: kernels/fully_connected.cc."""

    input: Value = operand()
    weights: Value = operand()
    bias: Value | None = operand(BIAS, optional=True)
    output: Value = result()
    shuffled: Value | None = result(optional=True)
    fused_activation_function: str = attribute(default="NONE")
    weights_format: str = attribute(default="DEFAULT")
    keep_num_dims: bool = attribute(default=False)
    asymmetric_quantize_inputs: bool = attribute(default=False)
    quantized_bias_type: str = attribute(default="FLOAT32")
    traits = (
        MultiplyAccumulate(input, weights, bias, axis=0, strict=True, zero_point="read"),
        QuantizedTogether(input, weights, output),
        Int16Symmetric(input, output),
        HybridKernel((i2, i4, i8, ui8), blockwise=(i4,), scaleless=(i8,), symmetric=(i2, i4)),
    )

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        """All elements in rows of the weights' length, unless the dims are to be kept. The kernel leaves out
        elements that do not fill the last row. Shuffled weights have a second result, the input in their order."""
        dims = site.dims(self.input)
        units, length = site.dims(self.weights, 2)
        _check_biases(site, self.bias, units, "units")
        spare = [] if self.weights_format == "DEFAULT" else [v.type.shape for v in self.results[1:2]]
        if self.keep_num_dims:
            agree(dims[-1] if dims else None, length, "the input's last dim and the weights' length")
            return [(*dims[:-1], units), *spare]
        total = product(dims)
        if total is not None and length:
            return [(total // length, units), *spare]
        if dims and dims[-1] is not None and dims[-1] == length:
            return [(product(dims[:-1]), units), *spare]
        return [(None, units), *spare]


class BatchMatMul(Operator, name="tfl.batch_matmul", newest=4):
    """lhs × rhs of the last two dims; the others broadcast. Source: kernels/batch_matmul.cc."""

    lhs: Value = operand()
    rhs: Value = operand()
    output: Value = result()
    adj_x: bool = attribute(default=False)
    adj_y: bool = attribute(default=False)
    asymmetric_quantize_inputs: bool = attribute(default=False)
    traits = (
        Int16Symmetric(lhs, rhs, output),
        Misreads("scales"),
        HybridKernel((i8,), scaleless=(i8,)),
        ParametersUnread(lhs, rhs),
    )
    versions = (Needs(3, lhs, i16), Needs(2, lhs, i8))

    def infer(self, site: DeclaredShapes) -> Dims:
        a, b = site.dims(self.lhs), site.dims(self.rhs)
        a = (*a[:-2], *reversed(a[-2:])) if self.adj_x else a
        return matrix_product(a, (*b[:-2], *reversed(b[-2:])) if self.adj_y else b)
