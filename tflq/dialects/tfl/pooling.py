"""Many elements of a channel become one: windows, images of another size; reductions over axes, cumulative sums, places
of extremes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, Final, TypeAlias

from tflq.dialects.declare import Operator, Trait, attribute, operand, result
from tflq.dialects.inference import DeclaredShapes, Dims, Misfit, agree, places, pooled, reduced, text, without_dim
from tflq.dialects.parameters import AsksSameScale, Int16Symmetric, Misreads, QuantizedTogether, SameScale, Unbounded
from tflq.dialects.tfl import COUNT, Needs
from tflq.dialects.traits import (
    Axes,
    ComputedEarly,
    ComputesInFloat,
    ElementTypes,
    Exclusive,
    HasShape,
    MovesElements,
    NonNegative,
    NoZeros,
    OneElement,
    RankWithin,
    SameElementType,
    SameShape,
    SetsElementType,
    SizedBy,
    Unquantized,
    Window,
)
from tflq.ir.ops import Value
from tflq.ir.types import Shape, i1, i8, i16, i32, ui8


class Pool2D(Operator):
    """Windows of height and width."""

    input: Value = operand()
    output: Value = result()
    padding: str = attribute(default="SAME")
    stride_w: int = attribute(default=0, positive=True)
    stride_h: int = attribute(default=0, positive=True)
    filter_width: int = attribute(default=0, positive=True)
    filter_height: int = attribute(default=0, positive=True)
    fused_activation_function: str = attribute(default="NONE")
    traits: ClassVar[tuple[Trait, ...]] = (Window(input),)

    def infer(self, site: DeclaredShapes) -> Dims:
        n, *sizes, c = site.dims(self.input, 4)
        kernel, strides = (self.filter_height, self.filter_width), (self.stride_h, self.stride_w)
        return (n, *pooled(sizes, kernel, strides, self.padding), c)


_OF_ONE_SCALE: Final = SameScale(Pool2D.input, Pool2D.output), SameElementType(Pool2D.input, Pool2D.output)
_VERSIONS: Final = Needs(3, Pool2D.input, i16), Needs(2, Pool2D.input, i8)


class AveragePool2D(Pool2D, name="tfl.average_pool_2d", newest=3):
    """The mean of each window, of the elements inside the input. Source: kernels/pooling.cc."""

    traits = (*_OF_ONE_SCALE, *Pool2D.traits)
    versions = _VERSIONS


class MaxPool2D(Pool2D, name="tfl.max_pool_2d", newest=3):
    """The greatest element of each window. Source: kernels/pooling.cc."""

    traits = (QuantizedTogether(Pool2D.input, Pool2D.output), *_OF_ONE_SCALE, *Pool2D.traits)
    versions = _VERSIONS


class L2Pool2D(Pool2D, name="tfl.l2_pool_2d"):
    """The root of the mean square of each window. Source: kernels/pooling.cc."""


class ReduceWindow(Operator, name="tfl.reduce_window"):
    """A reduction of each window, as `reduce_function` says. Source: kernels/reduce_window.cc."""

    input: Value = operand()
    init: Value = operand()
    shape: Value = operand(indices=True)
    strides: Value = operand(indices=True)
    dilations: Value = operand(indices=True)
    output: Value = result()
    reduce_function: str = attribute(default="UNSUPPORTED")
    traits = (OneElement(init), NonNegative(shape, strides, dilations), NoZeros(strides, dilations), Unbounded())

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        window, strides, dilations = (site.ints(v, len(dims)) for v in (self.shape, self.strides, self.dilations))
        return tuple(map(places, dims, window, strides, dilations))


# Images of another size.


class ResizedImage(Operator):
    """Of another height and width."""

    input: Value = operand()
    size: Value = operand(indices=True)
    output: Value = result()
    traits: ClassVar[tuple[Trait, ...]] = (
        SameScale(input, output),
        NonNegative(size),
        SameElementType(input, output),
        HasShape(size, 2),
        SizedBy(size),
    )

    def infer(self, site: DeclaredShapes) -> Dims:
        n, h, w, c = site.dims(self.input, 4)
        height, width = site.ints(self.size, 2)
        if 0 in (h, w) and 0 not in (n, c, height, width):
            raise Misfit(f"{text((n, h, w, c))} has no elements to resize")
        return (n, height, width, c)


class ResizeBilinear(ResizedImage, name="tfl.resize_bilinear", newest=4):
    """Interpolated between the four nearest elements. Source: kernels/resize_bilinear.cc."""

    new_height: int = attribute(default=0)
    new_width: int = attribute(default=0)
    align_corners: bool = attribute(default=False)
    half_pixel_centers: bool = attribute(default=False)
    traits = (*ResizedImage.traits, Exclusive(align_corners, half_pixel_centers), ComputesInFloat())

    def infer(self, site: DeclaredShapes) -> Dims:
        """Its kernel refuses a height or width of 0."""
        dims = super().infer(site)
        if 0 in dims[1:3]:
            raise Misfit(f"a height and width of {dims[1]} and {dims[2]}, which must be positive")
        return dims


class ResizeNearestNeighbor(ResizedImage, name="tfl.resize_nearest_neighbor", newest=4):
    """The nearest element. Source: kernels/resize_nearest_neighbor.cc."""

    align_corners: bool = attribute(default=False)
    half_pixel_centers: bool = attribute(default=False)
    traits = (*ResizedImage.traits, MovesElements(ResizedImage.input))
    versions = (
        Needs(4, ResizedImage.input, i16),
        Needs(3, attribute=half_pixel_centers),
        Needs(3, attribute=align_corners),
        Needs(2, ResizedImage.input, i8),
    )


Resize: TypeAlias = ResizeBilinear | ResizeNearestNeighbor
"""Images in another size."""


# Reductions over axes, cumulative sums, places of extremes.


class AxesReduced(Operator):
    """Over axes, which go, or stay with size 1. Source: kernels/reduce.cc."""

    input: Value = operand()
    axes: Value = operand(indices=True)
    output: Value = result()
    keep_dims: bool = attribute(default=False)
    traits: ClassVar[tuple[Trait, ...]] = (Axes(axes, input), SizedBy(axes))

    def infer(self, site: DeclaredShapes) -> Dims:
        dims, axes = site.dims(self.input), site.ints(self.axes)
        if None in axes and self.keep_dims:
            return (None,) * len(dims)
        whole = site.whole(self.axes)
        return reduced(dims, {site.axis(a, len(dims)) for a in whole}, keep=self.keep_dims) if dims else ()


class NumbersReduced(AxesReduced):
    """Numbers over axes."""

    traits = (
        *AxesReduced.traits,
        SameElementType(AxesReduced.input, AxesReduced.output, unless_quantized=True),
        Misreads("scales", "result type"),
    )


class Mean(NumbersReduced, name="tfl.mean", newest=3):
    """The mean over axes. Source: kernels/reduce.cc."""

    traits = (
        QuantizedTogether(AxesReduced.input, AxesReduced.output),
        Int16Symmetric(AxesReduced.input, AxesReduced.output),
        *NumbersReduced.traits,
    )


class Sum(NumbersReduced, name="tfl.sum", newest=2):
    """The sum over axes. Source: kernels/reduce.cc."""

    versions = (Needs(2, AxesReduced.input, i8),)


class ReduceProd(NumbersReduced, name="tfl.reduce_prod", newest=2):
    """The product over axes. Source: kernels/reduce.cc."""

    traits = (
        *NumbersReduced.traits,
        Int16Symmetric(AxesReduced.input, AxesReduced.output),
        Unbounded(),
        ComputedEarly(),
    )
    versions = (Needs(2, AxesReduced.input, i16), Needs(2, AxesReduced.input, i8))


class _Extreme(NumbersReduced):
    """One of the elements over axes."""

    traits = (
        SameScale(AxesReduced.input, AxesReduced.output),
        *NumbersReduced.traits,
        AsksSameScale(i8, ui8, i16),
    )
    versions = (Needs(3, AxesReduced.input, i16), Needs(2, AxesReduced.input, i8))


class ReduceMax(_Extreme, name="tfl.reduce_max", newest=3):
    """The greatest over axes. Source: kernels/reduce.cc."""


class ReduceMin(_Extreme, name="tfl.reduce_min", newest=3):
    """The least over axes. Source: kernels/reduce.cc."""


class _Truths(AxesReduced):
    """Truth values over axes."""

    traits = (
        *AxesReduced.traits,
        ElementTypes(AxesReduced.input, i1),
        ElementTypes(AxesReduced.output, i1),
        Unquantized("its tensors are truth values"),
    )


class ReduceAny(_Truths, name="tfl.reduce_any"):
    """Whether any is true over axes. Source: kernels/reduce.cc."""


class ReduceAll(_Truths, name="tfl.reduce_all"):
    """Whether all are true over axes. Source: kernels/reduce.cc."""


NumberReduction: TypeAlias = Mean | Sum | ReduceProd | ReduceMax | ReduceMin
"""Numbers along axes, combined to one."""
Reduction: TypeAlias = NumberReduction | ReduceAny | ReduceAll
"""Operators that reduce over axes."""


class Cumsum(Operator, name="tfl.cumsum"):
    """The sum of the elements so far along an axis. Source: kernels/cumsum.cc."""

    input: Value = operand()
    axis: Value = operand(indices=True)
    output: Value = result()
    exclusive: bool = attribute(default=False)
    reverse: bool = attribute(default=False)
    traits = (
        Axes(axis, input),
        OneElement(axis),
        SameElementType(input, output, unless_quantized=True),
        SameShape(input, output),
        RankWithin(input, 1),
    )


class IndexAlong(Operator):
    """Where an element is along an axis, which goes."""

    input: Value = operand()
    axis: Value = operand(indices=True)
    output: Value = result(COUNT)
    output_type: str = attribute(default="FLOAT32")
    traits = (SetsElementType(output, output_type), Axes(axis, input), OneElement(axis), SizedBy(axis))
    versions = (Needs(2, input, i8),)

    def infer(self, site: DeclaredShapes) -> Dims:
        dims = site.dims(self.input)
        axis = site.chosen_axis(self.axis, len(dims))
        return (None,) * (len(dims) - 1) if axis is None else without_dim(dims, axis)


class ArgMax(IndexAlong, name="tfl.arg_max", newest=2):
    """Where the greatest element is along an axis. Source: kernels/arg_min_max.cc."""


class ArgMin(IndexAlong, name="tfl.arg_min", newest=2):
    """Where the least element is along an axis. Source: kernels/arg_min_max.cc."""


class TopKV2(Operator, name="tfl.topk_v2", newest=3):
    """The k greatest of the last dim, and where they are. Source: kernels/topk_v2.cc."""

    input: Value = operand()
    k: Value = operand(indices=True)
    values: Value = result()
    indices: Value = result()
    traits = (SameScale(input, values), NonNegative(k), SameElementType(input, values), SizedBy(k))
    versions = (Needs(3, input, i16), Needs(2, input, i8))

    def infer(self, site: DeclaredShapes) -> list[Shape]:
        dims = site.dims(self.input)
        (k,) = site.ints(self.k, 1)
        if not dims or (k is not None and dims[-1] is not None and k > dims[-1]):
            raise Misfit(f"{text(dims)} has no {k} elements in its last dim")
        out = (*dims[:-1], None if k is None else max(k, 0))
        return [out, out]


class SegmentSum(Operator, name="tfl.segment_sum"):
    """Sums of rows that have one segment number; these are sorted. Source: kernels/segment_sum.cc."""

    input: Value = operand()
    segments: Value = operand(i32, indices=True)
    output: Value = result()
    traits = (NonNegative(segments), SizedBy(input, segments))

    def infer(self, site: DeclaredShapes) -> Dims:
        """The number of rows by the last segment; the segments start at 0 and go up in steps of 1."""
        dims = site.dims(self.input, least=1)
        agree(site.dims(self.segments, 1)[0], dims[0], "segments and rows of the input")
        segments = site.elements(self.segments)
        if segments is None or None in segments:
            return (None, *dims[1:])
        numbers = [s for s in segments if s is not None]
        if numbers[:1] not in ([], [0]) or any(after - before not in (0, 1) for before, after in pairwise(numbers)):
            raise Misfit(f"'{self.segments.name}' does not go up from 0 in steps of 1")
        return (numbers[-1] + 1 if numbers else 0, *dims[1:])


class UnsortedSegments(Operator):
    """Rows combined by the number of their segment; `count` says how many segments there are."""

    input: Value = operand()
    segments: Value = operand(i32, indices=True)
    count: Value = operand(i32, indices=True)
    output: Value = result()
    traits: ClassVar[tuple[Trait, ...]] = (NonNegative(count), SizedBy(segments, count))

    def infer(self, site: DeclaredShapes) -> Dims:
        """The segments have a number for each block of the first dims; a negative one drops its block."""
        (count,) = site.ints(self.count, 1)
        dims, rows = site.dims(self.input), site.dims(self.segments)
        if len(rows) > len(dims):
            raise Misfit(f"segments {text(rows)} have more dims than {text(dims)}")
        for dim, row in zip(dims, rows, strict=False):
            agree(dim, row, "dims of input and segments")
        last = max((s for s in site.elements(self.segments) or () if s is not None), default=-1)
        if count is not None and last >= count:
            raise Misfit(f"'{self.segments.name}' has the segment {last}, outside the {count} that there are")
        return (count, *dims[len(rows) :])


class UnsortedSegmentSum(UnsortedSegments, name="tfl.unsorted_segment_sum"):
    """Sums of rows that have one segment number. Source: kernels/unsorted_segment.cc."""


class UnsortedSegmentProd(UnsortedSegments, name="tfl.unsorted_segment_prod"):
    """Products of rows that have one segment number. Source: kernels/unsorted_segment.cc."""

    traits = (*UnsortedSegments.traits, Unbounded())


class UnsortedSegmentMax(UnsortedSegments, name="tfl.unsorted_segment_max"):
    """The greatest of rows that have one segment number. Source: kernels/unsorted_segment.cc."""


class UnsortedSegmentMin(UnsortedSegments, name="tfl.unsorted_segment_min"):
    """The least of rows that have one segment number. Source: kernels/unsorted_segment.cc."""
