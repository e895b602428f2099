"""Shapes of SLICE, STRIDED_SLICE and DYNAMIC_UPDATE_SLICE.

Sources: kernels/slice.cc (`CalculateOutputShapeVector`); kernels/strided_slice.cc (`BuildStridedSliceParams`);
kernels/dynamic_update_slice.cc.
"""

from __future__ import annotations

from typing import TypeAlias

from tflq.dialects.tfl.indexing import DynamicUpdateSlice
from tflq.dialects.tfl.movement import Slice, StridedSlice
from tflq.dialects.tfl.stablehlo import StablehloDynamicUpdateSlice
from tflq.ir.types import Shape
from tflq.shapes.site import Misfit, Site, agree, shape, text

__all__: list[str] = []

_Range: TypeAlias = tuple[int | None, int | None, int | None, bool, bool]
"""begin, end, stride; whether begin and end are left open."""


@shape(Slice)
def _slice(site: Site) -> Shape:
    """A size of -1 is all from `begin` on."""
    dims = site.dims()
    begin, size = site.ints(1, len(dims)), site.ints(2, len(dims))
    out: list[int | None] = []
    for dim, start, count in zip(dims, begin, size, strict=True):
        if count == -1:
            out.append(None if dim is None or start is None else dim - start)
            continue
        if dim is not None and start is not None and count is not None and start + count > dim:
            raise Misfit(f"{count} elements from {start} on are not within {text(dims)}")
        out.append(count)
    return tuple(out)


@shape(StridedSlice)
def _strided_slice(site: Site) -> Shape:
    """An ellipsis stands for one dim at least; what then exceeds the rank is disregarded; dims not named are whole."""
    dims = list(site.dims())
    begin, end = site.ints(1), site.ints(2)
    strides = site.ints(3, len(begin))
    a = site.attributes
    added = (a["new_axis_mask"] & ~a["ellipsis_mask"] & ((1 << len(begin)) - 1)).bit_count()
    items: list[str | _Range] = []
    for i, (first, last, stride) in enumerate(zip(begin, end, strides, strict=True)):
        bit = 1 << i
        if a["ellipsis_mask"] & bit:
            items.extend(["whole"] * max(1, len(dims) + added - len(begin) + 1))
        elif a["new_axis_mask"] & bit:
            items.append("new")
        elif a["shrink_axis_mask"] & bit:
            items.append("gone")
        else:
            if a.get("offset"):
                last = None if first is None or last is None else first + last
            items.append((first, last, stride, bool(a["begin_mask"] & bit), bool(a["end_mask"] & bit)))
    items = items[: len(dims) + added]
    out: list[int | None] = []
    for item in items:
        if item == "new":
            out.append(1)
            continue
        if not dims:
            raise Misfit("it names more dims than its input has")
        dim = dims.pop(0)
        if item == "whole":
            out.append(dim)
        elif not isinstance(item, str):
            out.append(_length(dim, item))
    return (*out, *dims)


def _length(dim: int | None, item: _Range) -> int | None:
    begin, end, stride, from_start, to_end = item
    if from_start and to_end and stride in (1, -1):
        return dim
    if dim is None or stride is None or (begin is None and not from_start) or (end is None and not to_end):
        return None
    if not stride:
        raise Misfit("a stride is 0")
    start, stop, step = slice(None if from_start else begin, None if to_end else end, stride).indices(dim)
    return len(range(start, stop, step))


@shape(DynamicUpdateSlice, StablehloDynamicUpdateSlice)
def _dynamic_update_slice(site: Site) -> Shape:
    """An update of the same rank, no larger, and a start for each dim: in a vector, or each an operand."""
    dims = site.dims()
    update = site.dims(1, len(dims))
    if any(a is not None and b is not None and a < b for a, b in zip(dims, update, strict=True)):
        raise Misfit(f"the update {text(update)} is larger than {text(dims)}")
    if isinstance(site.op, DynamicUpdateSlice):
        agree(site.dims(2, 1)[0], len(dims), "starts and dims")
    else:
        agree(len(site.op.operands) - 2, len(dims), "starts and dims")
    return dims
