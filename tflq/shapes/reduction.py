"""Shapes of reductions. Sources: kernels/reduce.cc, arg_min_max.cc, topk_v2.cc, segment_sum.cc, unsorted_segment.cc."""

from __future__ import annotations

from tflq.dialects.inference import Misfit, text
from tflq.dialects.tfl.reduction import (
    ArgMax,
    ArgMin,
    Reduction,
    SegmentSum,
    TopKV2,
    UnsortedSegmentMax,
    UnsortedSegmentMin,
    UnsortedSegmentProd,
    UnsortedSegmentSum,
)
from tflq.ir.types import Shape
from tflq.shapes.site import Site, shape_of

__all__: list[str] = []


@shape_of(Reduction)
def _reduce(op: Reduction, site: Site) -> Shape:
    dims = site.dims(op.input)
    keep = op.keep_dims
    axes = site.ints(op.axes)
    if None in axes:
        if keep:
            return (None,) * len(dims)
        site.whole(op.axes)
    if not dims:
        return ()
    reduced = {site.axis(a, len(dims)) for a in axes if a is not None}
    if keep:
        return tuple(1 if i in reduced else d for i, d in enumerate(dims))
    return tuple(d for i, d in enumerate(dims) if i not in reduced)


@shape_of(ArgMax, ArgMin)
def _arg(op: ArgMax | ArgMin, site: Site) -> Shape:
    dims = site.dims(op.input)
    (axis,) = site.ints(op.axis, 1)
    if axis is None:
        return (None,) * (len(dims) - 1)
    along = site.axis(axis, len(dims))
    return (*dims[:along], *dims[along + 1 :])


@shape_of(SegmentSum)
def _segment_sum(op: SegmentSum, site: Site) -> Shape:
    """As many rows as the last segment says."""
    segments = site.ints(op.segments)
    rows = None if not segments or None in segments else max(s for s in segments if s is not None) + 1
    return (rows, *site.dims(op.input)[1:])


@shape_of(UnsortedSegmentSum, UnsortedSegmentProd, UnsortedSegmentMin, UnsortedSegmentMax)
def _unsorted_segment(
    op: UnsortedSegmentSum | UnsortedSegmentProd | UnsortedSegmentMin | UnsortedSegmentMax, site: Site
) -> Shape:
    (count,) = site.ints(op.count, 1)
    return (count, *site.dims(op.input)[len(site.dims(op.segments)) :])


@shape_of(TopKV2)
def _topk(op: TopKV2, site: Site) -> list[Shape]:
    dims = site.dims(op.input)
    (k,) = site.ints(op.k, 1)
    if not dims or (k is not None and dims[-1] is not None and k > dims[-1]):
        raise Misfit(f"{text(dims)} has no {k} elements in its last dim")
    out = (*dims[:-1], None if k is None else max(k, 0))
    return [out, out]
