"""Convolutions NHWC × OHWI with a wide accumulator, products of matrices, pools."""

from __future__ import annotations

from typing import TypeAlias

from tflq.dialects.declare import FLOAT, INT, OneOf, Operator, attribute, ints, operand, result
from tflq.dialects.inference import DeclaredShapes, Dims, agree, convolved, matrix_product, plus, product
from tflq.dialects.traits import ConstantOperands, Role, WithinRange
from tflq.ir.ops import Value
from tflq.ir.types import i2, i4, i8, i16, i32, i64, ui8


class Weighted(Operator):
    """Windows of the input times a weight, plus a bias, in a wide accumulator."""

    F = OneOf(FLOAT)
    C = OneOf(i32, i64)
    input: Value = operand(OneOf(i8, ui8, i16), F)
    weight: Value = operand(OneOf(i2, i4, i8, ui8, i16), F)
    bias: Value = operand(C, F)
    output: Value = result(C, F)
    stride: tuple[int, ...] = attribute(ints(2))
    input_zp: int = attribute(INT)
    weight_zp: int = attribute(INT)
    traits = (Role("accumulator"), ConstantOperands(input_zp=input, weight_zp=weight))


class Conv2D(Weighted, name="tosa.conv2d"):
    """2-D convolution."""

    pad: tuple[int, ...] = attribute(ints(4))
    dilation: tuple[int, ...] = attribute(ints(2))

    def infer(self, site: DeclaredShapes) -> Dims:
        return _convolved(self, site)


class Conv3D(Weighted, name="tosa.conv3d"):
    """3-D convolution."""

    stride: tuple[int, ...] = attribute(ints(3))
    pad: tuple[int, ...] = attribute(ints(6))
    dilation: tuple[int, ...] = attribute(ints(3))

    def infer(self, site: DeclaredShapes) -> Dims:
        return _convolved(self, site)


def _convolved(op: Conv2D | Conv3D, site: DeclaredShapes) -> Dims:
    """The weight has a filter for each channel of the result, its spatial dims, and the channels of the input."""
    rank = len(op.stride) + 2
    n, *sizes, channels = site.dims(op.input, rank)
    outputs, *kernel, inputs = site.dims(op.weight, rank)
    agree(channels, inputs, "the channels of input and weight")
    return (n, *convolved(sizes, kernel, op.stride, op.pad, op.dilation), outputs)


class DepthwiseConv2D(Weighted, name="tosa.depthwise_conv2d"):
    """2-D convolution of each channel by itself; the weight is [H, W, C, M]."""

    pad: tuple[int, ...] = attribute(ints(4))
    dilation: tuple[int, ...] = attribute(ints(2))

    def infer(self, site: DeclaredShapes) -> Dims:
        n, *sizes, channels = site.dims(self.input, 4)
        *kernel, inputs, multiplier = site.dims(self.weight, 4)
        each = agree(channels, inputs, "the channels of input and weight")
        return (n, *convolved(sizes, kernel, self.stride, self.pad, self.dilation), product((each, multiplier)))


class TransposeConv2D(Weighted, name="tosa.transpose_conv2d"):
    """The transpose of a 2-D convolution. out_pad (top, bottom, left, right) is added to the full result; less than 0
    crops it."""

    out_pad: tuple[int, ...] = attribute(ints(4))

    def infer(self, site: DeclaredShapes) -> Dims:
        n, *sizes, channels = site.dims(self.input, 4)
        outputs, *kernel, inputs = site.dims(self.weight, 4)
        agree(channels, inputs, "the channels of input and weight")
        steps = [None if size is None else (size - 1) * stride for size, stride in zip(sizes, self.stride, strict=True)]
        return (n, *map(plus, steps, kernel, self.out_pad[::2], self.out_pad[1::2]), outputs)


Convolution: TypeAlias = Conv2D | Conv3D | DepthwiseConv2D | TransposeConv2D
"""All of them have `input`, `weight`, `bias`, `stride` and the zero points of both."""


# Products of matrices.


class MatMul(Operator, name="tosa.matmul"):
    """Products of the last two dims; the dims before them broadcast. output[..., m, n] = sum over k of (input1[...,
    m, k] - a_zp) * (input2[..., k, n] - b_zp)."""

    F = OneOf(FLOAT)
    input1: Value = operand(OneOf(i8, ui8, i16), F)
    input2: Value = operand(OneOf(i8, ui8, i16), F)
    output: Value = result(OneOf(i32, i64), F)
    a_zp: int = attribute(INT)
    b_zp: int = attribute(INT)
    traits = (Role("accumulator"), ConstantOperands(a_zp=input1, b_zp=input2))

    def infer(self, site: DeclaredShapes) -> Dims:
        return matrix_product(site.dims(self.input1), site.dims(self.input2))


# Windows of one channel each.


class Pool(Operator):
    """Windows of height and width."""

    T = OneOf(i8, ui8, i16, FLOAT)
    input: Value = operand(T)
    output: Value = result(T)
    kernel: tuple[int, ...] = attribute(ints(2))
    stride: tuple[int, ...] = attribute(ints(2))
    pad: tuple[int, ...] = attribute(ints(4))

    def infer(self, site: DeclaredShapes) -> Dims:
        n, *sizes, channels = site.dims(self.input, 4)
        return (n, *convolved(sizes, self.kernel, self.stride, self.pad), channels)


class AvgPool2D(Pool, name="tosa.avg_pool2d"):
    """The mean of each window."""

    input_zp: int = attribute(INT)
    output_zp: int = attribute(INT)
    traits = (ConstantOperands(input_zp=Pool.input, output_zp=Pool.output),)


class MaxPool2D(Pool, name="tosa.max_pool2d"):
    """The greatest element of each window."""

    traits = (WithinRange(Pool.input),)
