"""Shapes of operators that move whole tensors: reshape, pad, slice, concatenate, split, stack, repeat and others.

Sources: the kernels of these names in kernels/; `ResolveOutputShape` in reshape.cc, `CalculateOutputShapeVector` in
slice.cc, `BuildStridedSliceParams` in strided_slice.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tflq.dialects.inference import Dims, Misfit, NotInferred, agree, plus, product, text
from tflq.dialects.tfl.movement import (
    BatchToSpaceND,
    BroadcastTo,
    Concatenation,
    DepthToSpace,
    Dilate,
    ExpandDims,
    MirrorPad,
    Pack,
    Pad,
    PadV2,
    Reshape,
    Slice,
    SpaceToBatchND,
    SpaceToDepth,
    Split,
    SplitV,
    Squeeze,
    StridedSlice,
    Tile,
    Transpose,
    Unpack,
)
from tflq.ir.types import Shape, i32
from tflq.shapes.site import Site, shape_of

__all__ = ["filled"]

_Range: TypeAlias = tuple[int | None, int | None, int | None, bool, bool]
"""begin, end, stride; whether begin and end are left open."""


def filled(dims: Dims, wanted: Sequence[int | None]) -> Dims:
    """A wanted shape for the elements of `dims`: one -1, or else one unknown dim, is what is left."""
    total, left = product(dims), [i for i, d in enumerate(wanted) if d == -1]
    unknown = [i for i, d in enumerate(wanted) if d is None]
    if len(left) > 1:
        raise Misfit(f"the shape {text(tuple(wanted))} leaves more than one dim open")
    if not left and not unknown:
        if total is not None and product(wanted) != total:
            raise Misfit(f"{text(dims)} has not as many elements as the shape {text(tuple(wanted))}")
        return tuple(wanted)
    free = unknown or left
    rest = product(d for i, d in enumerate(wanted) if i not in free)
    if len(left) + len(unknown) > 1 or total is None or not rest:
        return tuple(None if d == -1 else d for d in wanted)
    if total % rest:
        raise Misfit(f"{text(dims)} does not fill the shape {text(tuple(wanted))}")
    return tuple(total // rest if i in free else d for i, d in enumerate(wanted))


@shape_of(Reshape)
def _reshape(op: Reshape, site: Site) -> Shape:
    """By the operand if it is a vector of int32, else by the option, where [0] stands for a scalar."""
    if op.shape is not None and op.shape.type.storage is i32:
        stated = site.shape(op.shape)
        if stated is None or len(stated) == 1:
            return filled(site.dims(op.input), site.ints(op.shape))
    option = [] if op.new_shape is None else [int(d) for d in op.new_shape]
    return filled(site.dims(op.input), [] if option == [0] else option)


@shape_of(Squeeze)
def _squeeze(op: Squeeze, site: Site) -> Shape:
    """The dims named, or every dim of 1."""
    dims, named = site.dims(op.input), op.squeeze_dims
    if named is None or not len(named):
        if None in dims:
            raise NotInferred(f"which dims of {text(dims)} are 1 is not known")
        return tuple(d for d in dims if d != 1)
    gone = {site.axis(int(a), len(dims)) for a in named}
    for axis in gone:
        agree(dims[axis], 1, f"dim {axis} that is squeezed")
    return tuple(d for i, d in enumerate(dims) if i not in gone)


@shape_of(ExpandDims)
def _expand_dims(op: ExpandDims, site: Site) -> Shape:
    dims = site.dims(op.input)
    (axis,) = site.whole(op.axis, 1)
    at = site.axis(axis, len(dims) + 1)
    return (*dims[:at], 1, *dims[at:])


@shape_of(Transpose)
def _transpose(op: Transpose, site: Site) -> Shape:
    dims = site.dims(op.input)
    perm = site.ints(op.perm, len(dims))
    if None in perm:
        return (None,) * len(dims)
    return tuple(dims[site.axis(p, len(dims))] for p in perm if p is not None)


@shape_of(Pad, PadV2, MirrorPad)
def _pad(op: Pad | PadV2 | MirrorPad, site: Site) -> Shape:
    dims = site.dims(op.input)
    sides = site.ints(op.paddings, 2 * len(dims))
    return tuple(plus(d, *sides[2 * i : 2 * i + 2]) for i, d in enumerate(dims))


@shape_of(Concatenation)
def _concatenation(op: Concatenation, site: Site) -> Shape:
    return site.joined(op.values, op.axis)


@shape_of(Split)
def _split(op: Split, site: Site) -> list[Shape]:
    dims, count = site.dims(op.input), len(op.outputs)
    (axis,) = site.ints(op.axis, 1)
    if axis is None:
        return [(None,) * len(dims)] * count
    along = site.axis(axis, len(dims))
    size = dims[along]
    if size is not None and size % count:
        raise Misfit(f"{size} does not divide into {count} parts")
    return [(*dims[:along], None if size is None else size // count, *dims[along + 1 :])] * count


@shape_of(SplitV)
def _split_v(op: SplitV, site: Site) -> list[Shape]:
    """At most one size is -1: what is left."""
    dims = site.dims(op.input)
    sizes = site.ints(op.sizes, len(op.outputs))
    (axis,) = site.ints(op.axis, 1)
    if axis is None:
        return [(None,) * len(dims)] * len(sizes)
    along = site.axis(axis, len(dims))
    rest = plus(dims[along], *(None if s is None else -max(s, 0) for s in sizes))
    if rest is not None and (rest < 0 or (rest and -1 not in sizes)):
        raise Misfit(f"sizes {sizes} do not add up to {dims[along]}")
    return [(*dims[:along], rest if s == -1 else s, *dims[along + 1 :]) for s in sizes]


@shape_of(Pack)
def _pack(op: Pack, site: Site) -> Shape:
    dims = site.common(op.values)
    at = site.axis(op.axis, len(dims) + 1)
    return (*dims[:at], len(op.values), *dims[at:])


@shape_of(Unpack)
def _unpack(op: Unpack, site: Site) -> list[Shape]:
    dims = site.dims(op.input)
    at = site.axis(op.axis, len(dims))
    agree(dims[at], len(op.outputs), "the dim that is unpacked and the results")
    return [(*dims[:at], *dims[at + 1 :])] * len(op.outputs)


@shape_of(Tile)
def _tile(op: Tile, site: Site) -> Shape:
    dims = site.dims(op.input)
    return tuple(product(pair) for pair in zip(dims, site.ints(op.multiples, len(dims)), strict=True))


@shape_of(BroadcastTo)
def _broadcast_to(op: BroadcastTo, site: Site) -> Shape:
    dims, wanted = site.dims(op.input), site.ints(op.shape)
    if len(dims) > len(wanted):
        raise Misfit(f"{text(dims)} has more dims than the shape {text(tuple(wanted))}")
    for dim, want in zip(reversed(dims), reversed(wanted), strict=False):
        if dim != 1:
            agree(dim, want, f"{text(dims)} does not broadcast to {text(tuple(wanted))}")
    return tuple(wanted)


@shape_of(SpaceToDepth)
def _space_to_depth(op: SpaceToDepth, site: Site) -> Shape:
    (n, h, w, c), block = site.dims(op.input, 4), op.block_size
    return (n, _over(h, block), _over(w, block), product((c, block * block)))


@shape_of(DepthToSpace)
def _depth_to_space(op: DepthToSpace, site: Site) -> Shape:
    (n, h, w, c), block = site.dims(op.input, 4), op.block_size
    return (n, product((h, block)), product((w, block)), _over(c, block * block))


def _over(dim: int | None, block: int | None) -> int | None:
    if dim is None or block is None:
        return None
    if not block or dim % block:
        raise Misfit(f"{dim} is no multiple of the block's {block}")
    return dim // block


@shape_of(SpaceToBatchND)
def _space_to_batch(op: SpaceToBatchND, site: Site) -> Shape:
    n, *sizes, c = site.dims(op.input, least=2)
    blocks, sides = site.ints(op.block, len(sizes)), site.ints(op.paddings, 2 * len(sizes))
    padded = [plus(d, *sides[2 * i : 2 * i + 2]) for i, d in enumerate(sizes)]
    return (product((n, *blocks)), *(_over(d, b) for d, b in zip(padded, blocks, strict=True)), c)


@shape_of(BatchToSpaceND)
def _batch_to_space(op: BatchToSpaceND, site: Site) -> Shape:
    n, *sizes, c = site.dims(op.input, least=2)
    blocks, sides = site.ints(op.block, len(sizes)), site.ints(op.crops, 2 * len(sizes))
    whole = [product(pair) for pair in zip(sizes, blocks, strict=True)]
    crops = [None if s is None else -s for s in sides]
    cut = [plus(d, *crops[2 * i : 2 * i + 2]) for i, d in enumerate(whole)]
    return (_over(n, product(blocks)), *cut, c)


@shape_of(Slice)
def _slice(op: Slice, site: Site) -> Shape:
    """A size of -1 is all from `begin` on."""
    dims = site.dims(op.input)
    begin, size = site.ints(op.begin, len(dims)), site.ints(op.size, len(dims))
    out: list[int | None] = []
    for dim, start, count in zip(dims, begin, size, strict=True):
        if count == -1:
            out.append(None if dim is None or start is None else dim - start)
            continue
        if dim is not None and start is not None and count is not None and start + count > dim:
            raise Misfit(f"{count} elements from {start} on are not within {text(dims)}")
        out.append(count)
    return tuple(out)


@shape_of(StridedSlice)
def _strided_slice(op: StridedSlice, site: Site) -> Shape:
    """An ellipsis stands for one dim at least; what then exceeds the rank is disregarded; dims not named are whole."""
    dims = list(site.dims(op.input))
    begin, end = site.ints(op.begin), site.ints(op.end)
    strides = site.ints(op.strides, len(begin))
    added = (op.new_axis_mask & ~op.ellipsis_mask & ((1 << len(begin)) - 1)).bit_count()
    items: list[str | _Range] = []
    for i, (first, last, stride) in enumerate(zip(begin, end, strides, strict=True)):
        bit = 1 << i
        if op.ellipsis_mask & bit:
            items.extend(["whole"] * max(1, len(dims) + added - len(begin) + 1))
        elif op.new_axis_mask & bit:
            items.append("new")
        elif op.shrink_axis_mask & bit:
            items.append("gone")
        else:
            if op.offset:
                last = None if first is None or last is None else first + last
            items.append((first, last, stride, bool(op.begin_mask & bit), bool(op.end_mask & bit)))
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


@shape_of(Dilate)
def _dilate(op: Dilate, site: Site) -> Shape:
    dims = site.dims(op.input)
    factors = site.ints(op.dilations, len(dims))
    return tuple(None if d is None or f is None else (d - 1) * f + 1 for d, f in zip(dims, factors, strict=True))
