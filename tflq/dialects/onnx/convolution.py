"""Convolutions, products of matrices, pools, resized images. Layouts are NCHW, or with a dim of depth before height."""

from __future__ import annotations

from tflq.dialects.declare import INT, STRING, OneOf, Operator, attribute, ints, operand, result
from tflq.dialects.inference import Dims, NotInferred, Stated, convolved, matrix_product, plus
from tflq.ir.core import Value
from tflq.ir.types import f32, f64, i8, i32, i64, ui8


class _Windows(Operator):
    """Windows over the spatial dims; `pads` has the elements before each, then those after each."""

    strides: tuple[int, ...] = attribute(ints())
    pads: tuple[int, ...] = attribute(ints())


def _placed(sizes: Dims, kernel: Dims, op: _Windows, dilations: tuple[int, ...] | None = None) -> Dims:
    half = len(sizes)
    pairs = [n for pair in zip(op.pads[:half], op.pads[half:], strict=True) for n in pair]
    if None in kernel:
        raise NotInferred("the size of its filter is not known")
    return convolved(sizes, kernel, op.strides, pairs, dilations)


class Conv(_Windows, name="onnx.conv"):
    """Windows times a weight [outputs, inputs of a group, ...], plus a bias."""

    x: Value = operand(f32)
    w: Value = operand(f32)
    b: Value | None = operand(f32, optional=True)
    y: Value = result(f32)
    dilations: tuple[int, ...] = attribute(ints())
    group: int = attribute(INT, default=1)

    def infer(self, site: Stated) -> Dims:
        n, _, *sizes = site.dims(self.x)
        outputs, _, *kernel = site.dims(self.w)
        return (n, outputs, *_placed(tuple(sizes), tuple(kernel), self, self.dilations))


class ConvTranspose(_Windows, name="onnx.conv_transpose"):
    """The transpose of a convolution, by a weight [inputs, outputs of a group, ...]."""

    x: Value = operand(f32)
    w: Value = operand(f32)
    b: Value | None = operand(f32, optional=True)
    y: Value = result(f32)

    def infer(self, site: Stated) -> Dims:
        n, _, *sizes = site.dims(self.x)
        _, outputs, *kernel = site.dims(self.w)
        half = len(sizes)
        steps = [None if size is None else (size - 1) * s for size, s in zip(sizes, self.strides, strict=True)]
        cropped = [-a - b for a, b in zip(self.pads[:half], self.pads[half:], strict=True)]
        return (n, outputs, *map(plus, steps, kernel, cropped))


class MatMul(Operator, name="onnx.mat_mul"):
    """Products of the last two dims; those before them broadcast."""

    T = OneOf(f32, f64, i32, i64)
    a: Value = operand(T)
    b: Value = operand(T)
    y: Value = result(T)

    def infer(self, site: Stated) -> Dims:
        return matrix_product(site.dims(self.a), site.dims(self.b))


class Gemm(Operator, name="onnx.gemm"):
    """Rows times a matrix, or with transB its transpose, plus a row."""

    a: Value = operand(f32)
    b: Value = operand(f32)
    c: Value | None = operand(f32, optional=True)
    y: Value = result(f32)
    transposed: int = attribute(INT, default=0, key="transB")

    def infer(self, site: Stated) -> Dims:
        outputs = site.dims(self.b, 2)[0 if self.transposed else 1]
        return (site.dims(self.a, 2)[0], outputs)


class AveragePool(_Windows, name="onnx.average_pool"):
    """The mean of each window; with count_include_pad zeros around the input count."""

    x: Value = operand(f32)
    y: Value = result(f32)
    kernel_shape: tuple[int, ...] = attribute(ints())
    count_include_pad: int = attribute(INT, default=0)

    def infer(self, site: Stated) -> Dims:
        n, c, *sizes = site.dims(self.x)
        return (n, c, *_placed(tuple(sizes), self.kernel_shape, self))


class MaxPool(_Windows, name="onnx.max_pool"):
    """The greatest element of each window."""

    T = OneOf(f32, f64, i8, ui8)
    x: Value = operand(T)
    y: Value = result(T)
    kernel_shape: tuple[int, ...] = attribute(ints())

    def infer(self, site: Stated) -> Dims:
        n, c, *sizes = site.dims(self.x)
        return (n, c, *_placed(tuple(sizes), self.kernel_shape, self))


class Resize(Operator, name="onnx.resize"):
    """Images of other sizes, which are those of all dims. mode: nearest or linear."""

    x: Value = operand(f32)
    roi: Value | None = operand(f32, optional=True)
    scales: Value | None = operand(f32, optional=True)
    sizes: Value = operand(i64)
    y: Value = result(f32)
    mode: str = attribute(STRING)
    coordinate_transformation_mode: str = attribute(STRING)
    nearest_mode: str = attribute(STRING, default="round_prefer_floor")

    def infer(self, site: Stated) -> Dims:
        return tuple(site.ints(self.sizes))
