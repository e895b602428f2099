"""Data movement: joining and splitting, padding, reshapes, transposes, tiles, reversals, slices, blocks.

The integers are moved as they are; a uint8 value is moved as the int8 it has become.

TOSA's SLICE has no strides. A stride of k along a dim: the window of n k elements around those that are wanted (padded
where it reaches past the end), as n rows of k, and one column of them. A negative stride is that of the reversed dim.
An element at an index that the model computes is gathered.

Kernels: concatenation.cc, pack.cc, unpack.cc, split.cc, split_v.cc, pad.cc, mirror_pad.cc, dilate.cc, reverse.cc,
reverse_sequence.cc, slice.cc, strided_slice.cc (BuildStridedSliceParams), internal/strided_slice_logic.h, and those
called like the operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.analysis.known import known_elements
from tflq.base import sized
from tflq.base.errors import Refused
from tflq.dialects.inference import product
from tflq.dialects.tfl.movement import (
    BatchToSpaceND,
    BroadcastTo,
    Concatenation,
    DepthToSpace,
    Dilate,
    ExpandDims,
    MirrorPad,
    Pack,
    PadV2,
    ReverseSequence,
    ReverseV2,
    SpaceToBatchND,
    SpaceToDepth,
    Split,
    SplitV,
    Squeeze,
    StridedSlice,
    Unpack,
)
from tflq.dialects.tfl.movement import Pad as TflPad
from tflq.dialects.tfl.movement import Reshape as TflReshape
from tflq.dialects.tfl.movement import Slice as TflSlice
from tflq.dialects.tfl.movement import Tile as TflTile
from tflq.dialects.tfl.movement import Transpose as TflTranspose
from tflq.dialects.tosa.movement import Concat, Pad, Reshape, Reverse, Slice, Tile, Transpose
from tflq.formats.tosa.lowering.context import (
    Tosa,
    constant_of,
    dims_of,
    joined,
    known_array,
    known_axis,
    lowering,
    narrow,
    numbers_of,
    part,
    reshaped,
)
from tflq.formats.tosa.lowering.convolution import grouped, is_grouped
from tflq.formats.tosa.lowering.indexing import as_index, gather_values, gathered
from tflq.ir.ops import Value
from tflq.ir.types import Shape


@lowering(Concat, Concatenation)
def concatenation(op: Concat | Concatenation, t: Tosa) -> Value:
    if is_grouped(op):
        return grouped(op, t)
    parts = [narrow(v, t) for v in op.present_operands]
    return joined(t, parts, op.axis % len(dims_of(parts[0])))


@lowering(Pack)
def pack(op: Pack, t: Tosa) -> Value:
    """Each operand with one dim more, joined."""
    parts = [narrow(v, t) for v in op.present_operands]
    shape = dims_of(parts[0])
    axis = op.axis % (len(shape) + 1)
    return joined(t, [reshaped(t, p, (*(s := dims_of(p))[:axis], 1, *s[axis:])) for p in parts], axis)


@lowering(Unpack)
def unpack(op: Unpack, t: Tosa) -> list[Value]:
    """Each index of an axis, without that dim."""
    x = narrow(op.input, t)
    shape = dims_of(x)
    axis = op.axis % len(shape)
    rest = (*shape[:axis], *shape[axis + 1 :])
    return [reshaped(t, part(t, x, axis, i, 1), rest) for i in range(len(op.results))]


@lowering(Split)
def split(op: Split, t: Tosa) -> list[Value]:
    """Splits x into as many equal parts as there are results."""
    x = narrow(op.input, t)
    axis = known_axis(op.axis, len(dims_of(x)))
    size = _size(x, axis) // len(op.results)
    return [part(t, x, axis, i * size, size) for i in range(len(op.results))]


@lowering(SplitV)
def split_v(op: SplitV, t: Tosa) -> list[Value]:
    """Parts of stated sizes; -1 is what the others leave."""
    x = narrow(op.input, t)
    axis = known_axis(op.axis, len(dims_of(x)))
    sizes = constant_of(op.sizes, "sizes").reshape(-1).astype(np.int64)
    rest = _size(x, axis) - int(sizes[sizes >= 0].sum())
    sizes = np.where(sizes < 0, rest, sizes)
    starts = np.cumsum(sizes) - sizes
    return [part(t, x, axis, int(start), int(size)) for start, size in zip(starts, sizes, strict=True)]


def _size(x: Value, axis: int) -> int:
    size = dims_of(x)[axis]
    if size is None:
        raise Refused(f"dim {axis}, which is split, is not known")
    return size


# PAD, PADV2, MIRROR_PAD and DILATE.


@lowering(Pad)
def pad_by_attributes(op: Pad, t: Tosa) -> Value:
    pairs = list(zip(op.padding[::2], op.padding[1::2], strict=True))
    return t.pad(narrow(op.input1, t), pairs, op.pad_const - t.offset(op.input1))


@lowering(TflPad)
def pad(op: TflPad, t: Tosa) -> Value:
    """With zeros."""
    return t.pad(narrow(op.input, t), _pairs(op.paddings), t.zero_point(op.input))


@lowering(PadV2)
def padv2(op: PadV2, t: Tosa) -> Value:
    """With a value; a computed one is joined to each side, as often as needed."""
    x, fill = narrow(op.input, t), narrow(op.value, t)
    if fill.is_constant:
        return t.pad(x, _pairs(op.paddings), fill.array.reshape(()).item())
    fill = t.reshape(fill, (1,) * len(dims_of(x)))
    for axis, sizes in enumerate(_pairs(op.paddings)):
        if any(sizes):
            shape = dims_of(x)
            if None in shape:
                raise Refused("a computed pad value next to a dim that is not known has no form in TOSA")
            before, after = (
                t.spread(fill, [n if i == axis else d or 0 for i, d in enumerate(shape)]) if n else None for n in sizes
            )
            x = joined(t, [v for v in (before, x, after) if v is not None], axis)
    return x


@lowering(MirrorPad)
def mirror_pad(op: MirrorPad, t: Tosa) -> Value:
    """Each end of each dim, reversed; REFLECT leaves out the outermost element."""
    x = narrow(op.input, t)
    edge = 1 if op.mode == "REFLECT" else 0
    for axis, (before, after) in enumerate(_pairs(op.paddings)):
        if not before and not after:
            continue
        size = dims_of(x)[axis]
        if size is None:
            raise Refused(f"dim {axis}, which is padded, is not known")
        left = [t.emit(Reverse, [part(t, x, axis, edge, before)], axis=axis)] if before else []
        right = [t.emit(Reverse, [part(t, x, axis, size - edge - after, after)], axis=axis)] if after else []
        x = joined(t, [*left, x, *right], axis)
    return x


@lowering(Dilate)
def dilate(op: Dilate, t: Tosa) -> Value:
    """Along each dim, a value between neighbours: the rows of a reshaped tensor end in it."""
    x, fill = narrow(op.input, t), narrow(op.value, t)
    if not fill.is_constant:
        raise Refused("a value between the elements that is computed has no form in TOSA")
    for axis, step in enumerate(numbers_of(op.dilations, "dilations")):
        shape = dims_of(x)
        size = shape[axis]
        if step == 1:
            continue
        if size is None or shape.count(None) > 1:
            raise Refused("DILATE of more dims than one that are not known, or of such a dim, has no form in TOSA")
        before, after = product(shape[:axis]), product(shape[axis + 1 :])
        columns = t.reshape(x, (before, size, 1, after))
        apart = t.pad(columns, [(0, 0), (0, 0), (0, step - 1), (0, 0)], fill.array.reshape(-1)[0].item())
        whole = t.reshape(apart, (before, size * step, after))
        size = size * step - step + 1
        x = t.reshape(part(t, whole, 1, 0, size), (*shape[:axis], size, *shape[axis + 1 :]))
    return x


def _pairs(operand: Value, what: str = "paddings") -> list[tuple[int, int]]:
    """(before, after) of each dim."""
    numbers = numbers_of(operand, what)
    return list(zip(numbers[::2], numbers[1::2], strict=True))


# Reshapes, transposes, tiles.


@lowering(Reshape, Squeeze, ExpandDims)
def reshape_to_result(op: Reshape | Squeeze | ExpandDims, t: Tosa) -> Value:
    """The elements in the shape of the result."""
    return reshaped(t, narrow(op.input, t), op.result.type.shape)


@lowering(TflReshape)
def reshape(op: TflReshape, t: Tosa) -> Value:
    """The elements in the shape that the operand, the option or the result states; one dim may be left open."""
    x = narrow(op.input, t)
    return reshaped(t, x, _target_shape(op, x.type.shape))


def _target_shape(op: TflReshape, source: Shape) -> Shape:
    """The result's dims, as far as anything says them."""
    result = op.result.type.shape
    if op.dims is None:
        return result
    known = known_elements(op.dims)
    counted = source is None or None in source
    if known is None or (not counted and int(known.flags.sum()) > 1):
        what = f"its shape '{op.dims.name}' is computed when the model runs"
        raise Refused(f"{what}, and TOSA 1.0 has no run-time shapes")
    dims = [None if d is None or d < 0 else d for d in known.elements()]
    if dims.count(None) > 1 and result is not None and len(result) == len(dims):
        dims = [r if d is None else d for d, r in zip(dims, result, strict=True)]
    if source is not None and None not in source and dims.count(None) == 1:
        rest = int(np.prod([d for d in dims if d is not None]))
        dims[dims.index(None)] = int(np.prod([d or 0 for d in source])) // rest if rest else 0
    return tuple(dims)


@lowering(Transpose)
def transpose_by_attribute(op: Transpose, t: Tosa) -> Value:
    return _transposed(t, narrow(op.input, t), op.perms)


@lowering(TflTranspose)
def transpose(op: TflTranspose, t: Tosa) -> Value:
    x = narrow(op.input, t)
    rank = len(dims_of(x))
    return _transposed(t, x, [p % rank for p in numbers_of(op.perm, "permutation")])


def _transposed(t: Tosa, x: Value, perms: Sequence[int]) -> Value:
    return x if list(perms) == sorted(perms) else t.transpose(x, perms)


@lowering(Tile)
def tile_by_attribute(op: Tile, t: Tosa) -> Value:
    return t.tile(narrow(op.input1, t), op.multiples)


@lowering(TflTile)
def tile(op: TflTile, t: Tosa) -> Value:
    x = narrow(op.input, t)
    multiples = numbers_of(op.multiples, "multiples")
    if 0 in multiples:
        raise Refused("a result without elements has no form in TOSA")
    return t.tile(x, multiples)


@lowering(BroadcastTo)
def broadcast_to(op: BroadcastTo, t: Tosa) -> Value:
    """TILE of the dims of 1."""
    x = narrow(op.input, t)
    shape = numbers_of(op.shape, "shape")
    x = t.ranked(x, len(shape))
    if None in dims_of(x):
        raise Refused("a dim that is not known cannot be broadcast")
    if 0 in shape:
        raise Refused("a result without elements has no form in TOSA")
    return t.spread(x, shape)


# REVERSE_V2 and REVERSE_SEQUENCE.


@lowering(Reverse)
def reverse_by_attribute(op: Reverse, t: Tosa) -> Value:
    return t.emit(Reverse, [narrow(op.input1, t)], axis=op.axis)


@lowering(ReverseV2)
def reverse(op: ReverseV2, t: Tosa) -> Value:
    """REVERSE along one axis after another."""
    x = narrow(op.input, t)
    rank = len(dims_of(x))
    for axis in numbers_of(op.axes, "axes"):
        x = t.emit(Reverse, [x], axis=axis % rank)
    return x


@lowering(ReverseSequence)
def reverse_sequence(op: ReverseSequence, t: Tosa) -> Value:
    """Of each batch, the first elements along the sequence reversed: gathered at length - 1 - i where i < length."""
    x = narrow(op.input, t)
    shape = dims_of(x)
    seq, batch = op.seq_dim % len(shape), op.batch_dim % len(shape)
    size = shape[seq]
    if size is None or shape[batch] is None:
        raise Refused("the dims of sequence and batch are not both known")
    order = [batch, seq, *(i for i in range(len(shape)) if i not in (batch, seq))]
    rest = [shape[i] for i in order[2:]]
    rows = reshaped(t, t.transpose(x, order), (shape[batch], size, product(rest)))
    turned = reshaped(t, gather_values(t, rows, _turned(t, op.lengths, size)), (shape[batch], size, *rest))
    return t.transpose(turned, [order.index(i) for i in range(len(shape))])


def _turned(t: Tosa, lengths: Value, size: int) -> Value:
    """Where each element of each sequence comes from: int32 [batches, size]."""
    known = as_index(t, lengths)
    places = sized.arange(size)[None]
    if known.is_constant:
        ends = known.array.reshape(-1, 1)
        return t.constant(np.where(places < ends, ends - 1 - places, places))
    end, here = t.reshape(known, (dims_of(known)[0], 1)), t.constant(places)
    return t.select(t.greater(end, here), t.sub(end, t.constant(places + 1)), here)


# SLICE and STRIDED_SLICE.


@lowering(Slice)
def slice_by_attributes(op: Slice, t: Tosa) -> Value:
    return t.slice(narrow(op.input, t), op.start, op.size)


@lowering(TflSlice)
def slice_(op: TflSlice, t: Tosa) -> Value:
    """A size of -1 is the rest."""
    x = narrow(op.input, t)
    begin, lengths = numbers_of(op.begin, "begin"), numbers_of(op.size, "size")
    size = [s if s >= 0 else None if d is None else d - b for d, b, s in zip(dims_of(x), begin, lengths, strict=True)]
    return t.slice(x, begin, size)


@dataclass(frozen=True, slots=True)
class _Dim:
    """The slice of one dim: `count` elements from `start`, `step` apart; None: all from `start` on."""

    start: int
    count: int | None
    step: int = 1


@lowering(StridedSlice)
def strided_slice(op: StridedSlice, t: Tosa) -> Value:
    """Each dim sliced, then those of stride, then dims dropped and added."""
    x = narrow(op.input, t)
    if known_array(op.begin) is None and _picks(op, dims_of(x)):
        return _picked(op, t, x)
    cuts, shape = _interpret(op, dims_of(x))
    for axis, dim in enumerate(cuts):
        if dim.step < 0:
            x = t.emit(Reverse, [x], axis=axis)
    cuts = [_reversed(dim, size) for dim, size in zip(cuts, dims_of(x), strict=True)]
    straight = [(d.start, d.count) if d.step == 1 else (0, size) for d, size in zip(cuts, dims_of(x), strict=True)]
    x = t.slice(x, [start for start, _ in straight], [count for _, count in straight])
    for axis, dim in enumerate(cuts):
        if dim.step != 1 and dim.count is not None:
            x = _strided(t, x, axis, dim.start, dim.count, dim.step)
    sizes = iter(dims_of(x))
    dims = [1 if kind == "new" else (next(sizes), kind)[0] for kind in shape]
    return reshaped(t, x, tuple(d for d, kind in zip(dims, shape, strict=True) if kind != "drop"))


def _picks(op: StridedSlice, shape: tuple[int | None, ...]) -> bool:
    """Whether each dim is taken whole, or is known and dropped for one of its elements."""
    strides = known_array(op.strides)
    if op.ellipsis_mask or op.new_axis_mask or strides is None:
        return False
    dropped, whole = op.shrink_axis_mask, op.begin_mask & op.end_mask
    return all(
        shape[row] is not None if dropped >> row & 1 else whole >> row & 1 and step == 1
        for row, step in enumerate(strides.reshape(-1).tolist())
    )


def _picked(op: StridedSlice, t: Tosa, x: Value) -> Value:
    """One element of each dropped dim, at an index that the model computes; a negative one counts from the end."""
    begin = as_index(t, op.begin)
    for row in reversed(range(dims_of(begin)[0] or 0)):
        if not op.shrink_axis_mask >> row & 1:
            continue
        last = (dims_of(x)[row] or 1) - 1
        zero = t.constant(np.zeros(1))
        index = zero if op.begin_mask >> row & 1 else t.slice(begin, [row], [1])
        index = t.select(t.greater_equal(index, zero), index, t.add(index, t.constant([last + 1])))
        inside = t.minimum(t.maximum(index, zero), t.constant([last]))
        x = gathered(t, x, t.reshape(inside, ()), row, 0)
    return x


def _reversed(dim: _Dim, size: int | None) -> _Dim:
    """The slice of the reversed dim that has the same elements, if the step is negative."""
    if dim.step > 0 or size is None:
        return dim
    return _Dim(size - 1 - dim.start, dim.count, -dim.step)


def _interpret(op: StridedSlice, shape: tuple[int | None, ...]) -> tuple[list[_Dim], list[str]]:
    """The slice of each dim of the operand, and the kind of each dim for the result: "keep", "drop", "new".

    An ellipsis stands for one dim at least; what then exceeds the rank is ignored (BuildStridedSliceParams).
    """
    operands = ((op.begin, "begin"), (op.end, "end"), (op.strides, "strides"))
    begin, end, strides = (numbers_of(value, what) for value, what in operands)
    rows = len(begin)
    added = (op.new_axis_mask & ~op.ellipsis_mask & ((1 << rows) - 1)).bit_count()
    kinds: list[str] = []
    cuts: list[_Dim] = []
    for row in range(rows):
        bit = 1 << row
        if op.ellipsis_mask & bit:
            for _ in range(max(1, len(shape) + added - rows + 1)):
                kinds.append("keep")
                cuts.append(_Dim(0, None))
        elif op.new_axis_mask & bit:
            kinds.append("new")
        elif len(cuts) < len(shape):
            last = begin[row] + end[row] if op.offset else end[row]
            first_open, last_open = bool(op.begin_mask & bit), bool(op.end_mask & bit)
            size = shape[len(cuts)]
            if op.shrink_axis_mask & bit:
                kinds.append("drop")
                cuts.append(_one(0 if first_open else begin[row], size))
            else:
                kinds.append("keep")
                bounds = slice(None if first_open else begin[row], None if last_open else last, strides[row])
                cuts.append(_range(bounds, size))
    missing = len(shape) - len(cuts)
    cuts = [*cuts, *[_Dim(0, None)] * max(missing, 0)][: len(shape)]
    kinds = [*kinds, *["keep"] * max(missing, 0)][: len(shape) + added]
    closed = [
        _Dim(d.start, None if s is None else s - d.start) if d.count is None else d
        for d, s in zip(cuts, shape, strict=True)
    ]
    return closed, kinds


def _one(at: int, size: int | None) -> _Dim:
    """One index; a negative one counts from the end."""
    if at < 0 and size is None:
        raise Refused("an index from the end of a dim that is not known has no form in TOSA")
    return _Dim(at if at >= 0 else at + (size or 0), 1)


def _range(bounds: slice, size: int | None) -> _Dim:
    """A range of a dim, clipped to it."""
    if size is None:
        if bounds.step == 1 and bounds.stop is None and (bounds.start or 0) >= 0:
            return _Dim(bounds.start or 0, None)
        raise Refused("a range of a dim that is not known has no form in TOSA, unless it is the rest of it")
    places = range(*bounds.indices(size))
    if not places:
        raise Refused("a result without elements has no form in TOSA")
    return _Dim(places.start, len(places), places.step)


def _strided(t: Tosa, x: Value, axis: int, start: int, count: int, step: int) -> Value:
    """`count` elements of a dim from `start`, `step` apart."""
    shape = dims_of(x)
    size = shape[axis] or 0
    if count == 1:
        return part(t, x, axis, start, 1)
    before, after = shape[:axis], shape[axis + 1 :]
    outer, inner = product(before), product(after)
    x = reshaped(t, x, (outer, size, inner))
    column = max(0, start + count * step - size)
    if column > min(start, step - 1):
        x, column = t.pad(x, [(0, 0), (0, column), (0, 0)]), 0
    x = part(t, x, 1, start - column, count * step)
    x = part(t, reshaped(t, x, (outer, count, step, inner)), 2, column, 1)
    return reshaped(t, x, (*before, count, *after))


# SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: a reshape that splits dims in blocks, a
# transpose, a reshape.


def _inner(x: Value) -> list[int]:
    """The dims after the batch, which must be known."""
    dims = dims_of(x)[1:]
    if None in dims:
        raise Refused("height, width or channels are not known, and TOSA 1.0 has no run-time shapes")
    return [d or 0 for d in dims]


@lowering(SpaceToDepth)
def space_to_depth(op: SpaceToDepth, t: Tosa) -> Value:
    x, s = narrow(op.input, t), op.block_size
    n, (h, w, c) = dims_of(x)[0], _inner(x)
    x = t.transpose(reshaped(t, x, (n, h // s, s, w // s, s, c)), (0, 1, 3, 2, 4, 5))
    return reshaped(t, x, (n, h // s, w // s, s * s * c))


@lowering(DepthToSpace)
def depth_to_space(op: DepthToSpace, t: Tosa) -> Value:
    x, s = narrow(op.input, t), op.block_size
    n, (h, w, c) = dims_of(x)[0], _inner(x)
    x = t.transpose(reshaped(t, x, (n, h, w, s, s, c // (s * s))), (0, 1, 3, 2, 4, 5))
    return reshaped(t, x, (n, h * s, w * s, c // (s * s)))


@lowering(SpaceToBatchND)
def space_to_batch(op: SpaceToBatchND, t: Tosa) -> Value:
    """Padded with zeros, then blocks to the batch."""
    x = narrow(op.input, t)
    sizes, pairs = numbers_of(op.block, "block shape"), _pairs(op.paddings)
    spatial, rank = len(sizes), len(dims_of(x))
    x = t.pad(x, [(0, 0), *pairs, *[(0, 0)] * (rank - 1 - spatial)], t.zero_point(op.input))
    n, inner = dims_of(x)[0], _inner(x)
    outer = [d // s for d, s in zip(inner, sizes, strict=False)]
    x = reshaped(t, x, (n, *(v for pair in zip(outer, sizes, strict=True) for v in pair), *inner[spatial:]))
    blocks, places = [2 + 2 * i for i in range(spatial)], [1 + 2 * i for i in range(spatial)]
    x = t.transpose(x, (*blocks, 0, *places, *range(1 + 2 * spatial, len(dims_of(x)))))
    return reshaped(t, x, (product((n, *sizes)), *outer, *inner[spatial:]))


@lowering(BatchToSpaceND)
def batch_to_space(op: BatchToSpaceND, t: Tosa) -> Value:
    """Blocks of the batch side by side, then cropped."""
    x = narrow(op.input, t)
    sizes, crops = numbers_of(op.block, "block shape"), _pairs(op.crops, "crops")
    spatial, batch, inner = len(sizes), dims_of(x)[0], _inner(x)
    for s in sizes:
        batch = None if batch is None else batch // s
    x = reshaped(t, x, (*sizes, batch, *inner))
    order = [v for i in range(spatial) for v in (spatial + 1 + i, i)]
    x = t.transpose(x, (spatial, *order, *range(2 * spatial + 1, len(dims_of(x)))))
    whole = [d * s for d, s in zip(inner, sizes, strict=False)]
    x = reshaped(t, x, (batch, *whole, *inner[spatial:]))
    remaining = [d - before - after for d, (before, after) in zip(whole, crops, strict=True)]
    starts = [0, *(before for before, _ in crops), *[0] * (len(inner) - spatial)]
    return t.slice(x, starts, (batch, *remaining, *inner[spatial:]))
