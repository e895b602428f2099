"""Evaluators of the tfl ops that move, pad and reinterpret elements, on plain tensors.

Options and semantics are TFLite's. Sources: the kernels of these names in kernels/.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.bits import Bitcast
from tflq.dialects.tfl.casts import Cast
from tflq.dialects.tfl.comparison import Select, SelectV2
from tflq.dialects.tfl.indexing import Gather, GatherND
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
    ReverseSequence,
    ReverseV2,
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
from tflq.dialects.tfl.shape import Fill, Range, Rank, Shape
from tflq.evaluate.registry import evaluator

__all__: list[str] = []


@evaluator(Reshape)
def _reshape(op: Reshape, x: np.ndarray, shape: np.ndarray | None = None) -> np.ndarray:
    return x.reshape(op.new_shape if shape is None else shape)


@evaluator(Squeeze)
def _squeeze(op: Squeeze, x: np.ndarray) -> np.ndarray:
    dims = tuple(int(d) for d in op.squeeze_dims)
    return x.squeeze(dims or None)


@evaluator(ExpandDims)
def _expand_dims(op: ExpandDims, x: np.ndarray, axis: np.ndarray) -> np.ndarray:
    return np.expand_dims(x, int(axis.reshape(())))


@evaluator(Transpose)
def _transpose(op: Transpose, x: np.ndarray, perms: np.ndarray) -> np.ndarray:
    return x.transpose(perms)


@evaluator(Pad, PadV2)
def _pad(op: Pad | PadV2, x: np.ndarray, paddings: np.ndarray, fill: np.ndarray | None = None) -> np.ndarray:
    return np.pad(x, paddings, constant_values=0 if fill is None else fill.reshape(()))


@evaluator(MirrorPad)
def _mirror_pad(op: MirrorPad, x: np.ndarray, paddings: np.ndarray) -> np.ndarray:
    return np.pad(x, paddings, "reflect" if op.mode == "REFLECT" else "symmetric")


@evaluator(Concatenation)
def _concatenation(op: Concatenation, *xs: np.ndarray) -> np.ndarray:
    return np.concatenate(xs, op.axis)


@evaluator(Split)
def _split(op: Split, axis: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    return np.split(x, len(op.results), int(axis.reshape(())))


@evaluator(SplitV)
def _split_v(op: SplitV, x: np.ndarray, sizes: np.ndarray, axis: np.ndarray) -> list[np.ndarray]:
    along = int(axis.reshape(()))
    rest = x.shape[along] - int(sizes[sizes >= 0].sum())
    return np.split(x, np.cumsum(np.where(sizes < 0, rest, sizes))[:-1], along)


@evaluator(Slice)
def _slice(op: Slice, x: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
    return x[tuple(slice(int(b), None if s < 0 else int(b + s)) for b, s in zip(begin, size, strict=True))]


@evaluator(StridedSlice)
def _strided_slice(
    op: StridedSlice, x: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray
) -> np.ndarray:
    """An ellipsis stands for one dim at least; what then exceeds the rank is disregarded (BuildStridedSliceParams)."""
    a = op.attributes
    added = (a["new_axis_mask"] & ~a["ellipsis_mask"] & ((1 << begin.size) - 1)).bit_count()
    index: list[slice | int | None] = []
    for i, (first, last, stride) in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)):
        bit = 1 << i
        if a["ellipsis_mask"] & bit:
            index.extend([slice(None)] * max(1, x.ndim + added - begin.size + 1))
        elif a["new_axis_mask"] & bit:
            index.append(None)
        elif a["shrink_axis_mask"] & bit:
            index.append(0 if a["begin_mask"] & bit else first)
        else:
            stop = first + last if a.get("offset") else last
            index.append(slice(None if a["begin_mask"] & bit else first, None if a["end_mask"] & bit else stop, stride))
    return x[tuple(index[: x.ndim + added])]


@evaluator(Pack)
def _pack(op: Pack, *xs: np.ndarray) -> np.ndarray:
    return np.stack(xs, op.axis)


@evaluator(Unpack)
def _unpack(op: Unpack, x: np.ndarray) -> list[np.ndarray]:
    return list(np.moveaxis(x, op.axis, 0))


@evaluator(Gather)
def _gather(op: Gather, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """x[batch, before axis, indices[batch, ...], after axis]."""
    axis, batch = op.axis % x.ndim, op.batch_dims
    if batch < 0:
        batch += indices.ndim
    if not batch:
        return x.take(indices, axis)
    rows = x.reshape(-1, *x.shape[batch:])
    picks = indices.reshape(len(rows), *indices.shape[batch:])
    taken = np.stack([row.take(pick, axis - batch) for row, pick in zip(rows, picks, strict=True)])
    return taken.reshape(*x.shape[:batch], *taken.shape[1:])


@evaluator(GatherND)
def _gather_nd(op: GatherND, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return x[tuple(np.moveaxis(indices, -1, 0))]


@evaluator(Tile)
def _tile(op: Tile, x: np.ndarray, multiples: np.ndarray) -> np.ndarray:
    return np.tile(x, multiples.tolist())


@evaluator(BroadcastTo)
def _broadcast_to(op: BroadcastTo, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x, shape.tolist())


@evaluator(ReverseV2)
def _reverse(op: ReverseV2, x: np.ndarray, axes: np.ndarray) -> np.ndarray:
    return np.flip(x, tuple(axes.reshape(-1).tolist()))


@evaluator(ReverseSequence)
def _reverse_sequence(op: ReverseSequence, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Of each batch, the first elements along the sequence in reverse."""
    moved = np.moveaxis(x, (op.batch_dim, op.seq_dim), (0, 1))
    places, ends = np.arange(moved.shape[1])[None], lengths.reshape(-1, 1)
    order = np.where(places < ends, ends - 1 - places, places)
    turned = moved[np.arange(len(moved))[:, None], order]
    return np.moveaxis(turned, (0, 1), (op.batch_dim, op.seq_dim))


@evaluator(Shape)
def _shape(op: Shape, x: np.ndarray) -> np.ndarray:
    return np.asarray(x.shape)


@evaluator(Rank)
def _rank(op: Rank, x: np.ndarray) -> np.ndarray:
    return np.asarray(x.ndim)


@evaluator(Fill)
def _fill(op: Fill, dims: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.full(dims.tolist(), value.reshape(()))


@evaluator(Range)
def _range(op: Range, start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
    return np.arange(start.item(), limit.item(), delta.item()).astype(start.dtype)


@evaluator(SelectV2)
def _select(op: SelectV2, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(condition, a, b)


@evaluator(Select)
def _select_rows(op: Select, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A condition of rank 1 chooses whole rows."""
    return np.where(condition.reshape((*condition.shape, *(1,) * (a.ndim - condition.ndim))), a, b)


@evaluator(Cast)
def _cast(op: Cast, x: np.ndarray) -> np.ndarray:
    """Floats saturate in int32, and what is not a number is the largest."""
    dtype = op.result.type.storage.dtype
    if x.dtype.kind != "f" or dtype != np.int32:
        return x.astype(dtype)
    held = x < 2.0**31
    return np.where(held, np.maximum(np.where(held, x, 0), -(2.0**31)).astype(np.int64), (1 << 31) - 1).astype(dtype)


@evaluator(Bitcast)
def _bitcast(op: Bitcast, x: np.ndarray) -> np.ndarray:
    """Between widths the last dim appears or goes, low part first."""
    dtype = op.result.type.storage.dtype
    x = np.ascontiguousarray(x).reshape(x.shape)
    if dtype.itemsize < x.dtype.itemsize:
        return x[..., None].view(dtype)
    return x.view(dtype)[..., 0] if dtype.itemsize > x.dtype.itemsize else x.view(dtype)


@evaluator(SpaceToDepth)
def _space_to_depth(op: SpaceToDepth, x: np.ndarray) -> np.ndarray:
    n, h, w, c = x.shape
    s = op.block_size
    return x.reshape(n, h // s, s, w // s, s, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h // s, w // s, s * s * c)


@evaluator(DepthToSpace)
def _depth_to_space(op: DepthToSpace, x: np.ndarray) -> np.ndarray:
    n, h, w, c = x.shape
    s = op.block_size
    return x.reshape(n, h, w, s, s, c // (s * s)).transpose(0, 1, 3, 2, 4, 5).reshape(n, h * s, w * s, c // (s * s))


@evaluator(SpaceToBatchND)
def _space_to_batch(op: SpaceToBatchND, x: np.ndarray, block: np.ndarray, paddings: np.ndarray) -> np.ndarray:
    spatial = len(block)
    x = np.pad(x, [(0, 0), *paddings.tolist(), *[(0, 0)] * (x.ndim - 1 - spatial)])
    blocks = [(d // s, s) for d, s in zip(x.shape[1 : 1 + spatial], block.tolist(), strict=True)]
    split = x.reshape(x.shape[0], *(v for pair in blocks for v in pair), *x.shape[1 + spatial :])
    inner, outer = [2 + 2 * i for i in range(spatial)], [1 + 2 * i for i in range(spatial)]
    moved = split.transpose(*inner, 0, *outer, *range(1 + 2 * spatial, split.ndim))
    return moved.reshape(-1, *(d for d, _ in blocks), *x.shape[1 + spatial :])


@evaluator(BatchToSpaceND)
def _batch_to_space(op: BatchToSpaceND, x: np.ndarray, block: np.ndarray, crops: np.ndarray) -> np.ndarray:
    spatial, sizes = len(block), block.tolist()
    batch = x.shape[0] // int(np.prod(sizes))
    split = x.reshape(*sizes, batch, *x.shape[1:])
    order = [v for i in range(spatial) for v in (spatial + 1 + i, i)]
    moved = split.transpose(spatial, *order, *range(2 * spatial + 1, split.ndim))
    whole = moved.reshape(batch, *(d * s for d, s in zip(x.shape[1:], sizes, strict=False)), *x.shape[1 + spatial :])
    ends = (slice(int(a), n - int(b)) for (a, b), n in zip(crops, whole.shape[1:], strict=False))
    return whole[(slice(None), *ends)]
