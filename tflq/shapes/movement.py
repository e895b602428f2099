"""Shapes of operators that move whole tensors: reshape, transpose, pad, concatenate, split, stack, repeat, blocks.

Sources: the kernels of these names in kernels/; reshape: `ResolveOutputShape` in kernels/reshape.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.dialects.tfl.movement import (
    BatchToSpaceND,
    BroadcastTo,
    Concatenation,
    DepthToSpace,
    ExpandDims,
    MirrorPad,
    Pack,
    Pad,
    PadV2,
    Reshape,
    SpaceToBatchND,
    SpaceToDepth,
    Split,
    SplitV,
    Squeeze,
    Tile,
    Transpose,
    Unpack,
)
from tflq.ir.types import Shape
from tflq.shapes.site import Dims, Misfit, NotInferred, Site, agree, product, shape, text

__all__ = ["filled"]


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


@shape(Reshape)
def _reshape(site: Site) -> Shape:
    """By the operand if it is a vector of int32, else by the option, where [0] stands for a scalar."""
    if len(site.op.operands) == 2 and site.has(1) and site.value(1).type.storage.name == "i32":
        stated = site.shapes[1]
        if stated is None or len(stated) == 1:
            return filled(site.dims(), site.ints(1))
    stated_shape = site.attributes["new_shape"]
    option = [] if stated_shape is None else [int(d) for d in stated_shape]
    return filled(site.dims(), [] if option == [0] else option)


@shape(Squeeze)
def _squeeze(site: Site) -> Shape:
    """The dims named, or every dim of 1."""
    dims, named = site.dims(), site.attributes["squeeze_dims"]
    if named is None or not len(named):
        if None in dims:
            raise NotInferred(f"which dims of {text(dims)} are 1 is not known")
        return tuple(d for d in dims if d != 1)
    gone = {site.axis(int(a), len(dims)) for a in named}
    for axis in gone:
        agree(dims[axis], 1, f"dim {axis} that is squeezed")
    return tuple(d for i, d in enumerate(dims) if i not in gone)


@shape(ExpandDims)
def _expand_dims(site: Site) -> Shape:
    dims = site.dims()
    (axis,) = site.whole(1, 1)
    at = site.axis(axis, len(dims) + 1)
    return (*dims[:at], 1, *dims[at:])


@shape(Transpose)
def _transpose(site: Site) -> Shape:
    dims = site.dims()
    perm = site.ints(1, len(dims))
    if None in perm:
        return (None,) * len(dims)
    return tuple(dims[site.axis(p, len(dims))] for p in perm if p is not None)


@shape(Pad, PadV2, MirrorPad)
def _pad(site: Site) -> Shape:
    dims = site.dims()
    sides = site.ints(1, 2 * len(dims))
    return tuple(_sum(d, *sides[2 * i : 2 * i + 2]) for i, d in enumerate(dims))


def _sum(*terms: int | None) -> int | None:
    known = [t for t in terms if t is not None]
    return sum(known) if len(known) == len(terms) else None


@shape(Concatenation)
def _concatenation(site: Site) -> Shape:
    return joined(site, site.attributes["axis"])


def joined(site: Site, axis: int) -> Dims:
    """All operands one after the other along an axis."""
    first = site.dims()
    along = site.axis(axis, len(first))
    out = list(first)
    for index in range(1, len(site.op.operands)):
        dims = site.dims(index, len(first))
        for i, dim in enumerate(dims):
            out[i] = _sum(out[i], dim) if i == along else agree(out[i], dim, f"dim {i} of its operands")
    return tuple(out)


@shape(Split)
def _split(site: Site) -> list[Shape]:
    dims, count = site.dims(1), len(site.op.results)
    (axis,) = site.ints(0, 1)
    if axis is None:
        return [(None,) * len(dims)] * count
    along = site.axis(axis, len(dims))
    size = dims[along]
    if size is not None and size % count:
        raise Misfit(f"{size} does not divide into {count} parts")
    return [(*dims[:along], None if size is None else size // count, *dims[along + 1 :])] * count


@shape(SplitV)
def _split_v(site: Site) -> list[Shape]:
    """At most one size is -1: what is left."""
    dims = site.dims()
    sizes = site.ints(1, len(site.op.results))
    (axis,) = site.ints(2, 1)
    if axis is None:
        return [(None,) * len(dims)] * len(sizes)
    along = site.axis(axis, len(dims))
    rest = _sum(dims[along], *(None if s is None else -max(s, 0) for s in sizes))
    if rest is not None and (rest < 0 or (rest and -1 not in sizes)):
        raise Misfit(f"sizes {sizes} do not add up to {dims[along]}")
    return [(*dims[:along], rest if s == -1 else s, *dims[along + 1 :]) for s in sizes]


@shape(Pack)
def _pack(site: Site) -> Shape:
    first = site.dims()
    for index in range(1, len(site.op.operands)):
        other = site.dims(index, len(first))
        first = tuple(agree(a, b, "dims of its operands") for a, b in zip(first, other, strict=True))
    at = site.axis(site.attributes["axis"], len(first) + 1)
    return (*first[:at], len(site.op.operands), *first[at:])


@shape(Unpack)
def _unpack(site: Site) -> list[Shape]:
    dims = site.dims()
    at = site.axis(site.attributes["axis"], len(dims))
    agree(dims[at], len(site.op.results), "the dim that is unpacked and the results")
    return [(*dims[:at], *dims[at + 1 :])] * len(site.op.results)


@shape(Tile)
def _tile(site: Site) -> Shape:
    dims = site.dims()
    return tuple(product(pair) for pair in zip(dims, site.ints(1, len(dims)), strict=True))


@shape(BroadcastTo)
def _broadcast_to(site: Site) -> Shape:
    dims, wanted = site.dims(), site.ints(1)
    if len(dims) > len(wanted):
        raise Misfit(f"{text(dims)} has more dims than the shape {text(tuple(wanted))}")
    for dim, want in zip(reversed(dims), reversed(wanted), strict=False):
        if dim != 1:
            agree(dim, want, f"{text(dims)} does not broadcast to {text(tuple(wanted))}")
    return tuple(wanted)


@shape(SpaceToDepth)
def _space_to_depth(site: Site) -> Shape:
    (n, h, w, c), block = site.dims(0, 4), site.attributes["block_size"]
    return (n, _over(h, block), _over(w, block), product((c, block * block)))


@shape(DepthToSpace)
def _depth_to_space(site: Site) -> Shape:
    (n, h, w, c), block = site.dims(0, 4), site.attributes["block_size"]
    return (n, product((h, block)), product((w, block)), _over(c, block * block))


def _over(dim: int | None, block: int | None) -> int | None:
    if dim is None or block is None:
        return None
    if not block or dim % block:
        raise Misfit(f"{dim} is no multiple of the block's {block}")
    return dim // block


@shape(SpaceToBatchND)
def _space_to_batch(site: Site) -> Shape:
    n, *sizes, c = site.dims(least=2)
    blocks, sides = site.ints(1, len(sizes)), site.ints(2, 2 * len(sizes))
    padded = [_sum(d, *sides[2 * i : 2 * i + 2]) for i, d in enumerate(sizes)]
    return (product((n, *blocks)), *(_over(d, b) for d, b in zip(padded, blocks, strict=True)), c)


@shape(BatchToSpaceND)
def _batch_to_space(site: Site) -> Shape:
    n, *sizes, c = site.dims(least=2)
    blocks, sides = site.ints(1, len(sizes)), site.ints(2, 2 * len(sizes))
    whole = [product(pair) for pair in zip(sizes, blocks, strict=True)]
    crops = [None if s is None else -s for s in sides]
    cut = [_sum(d, *crops[2 * i : 2 * i + 2]) for i, d in enumerate(whole)]
    return (_over(n, product(blocks)), *cut, c)
