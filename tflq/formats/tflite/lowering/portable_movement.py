"""Elements moved, on a target that restricts plain builtins: of the twin, where a tensor has one.

    RESHAPE, EXPAND_DIMS     RESHAPE by a constant operand, one dim of which may be left to be inferred
    PACK, UNPACK             RESHAPE and CONCATENATION; SPLIT and RESHAPE
    SPLIT_V                  STRIDED_SLICE for each part
    TILE, BROADCAST_TO       CONCATENATION of the tensor with itself, dim by dim
    MIRROR_PAD, REVERSE_V2   GATHER along a dim, by where each element of the result is
    SPACE_TO_BATCH_ND        padding; for each block RESHAPE, TRANSPOSE and RESHAPE, of four dims at most
    BATCH_TO_SPACE_ND        the blocks the other way round; STRIDED_SLICE
    RESIZE                   GATHER of rows, then of columns; or weighted

What is left is None where the target has no builtin for the elements' type, or a size is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, Literal

import numpy as np

from tflq.analysis.known import Known, known_elements
from tflq.dialects.tfl import movement as tfl
from tflq.dialects.tfl.indexing import Gather
from tflq.dialects.tosa.movement import Resize
from tflq.formats.tflite.lowering.lowering import (
    BYTES,
    JOINED,
    KernelBuilder,
    Tflite,
    Twin,
    centred,
    integers_of,
    moved,
    twin_of,
)
from tflq.formats.tflite.lowering.movement import joined
from tflq.formats.tflite.lowering.resize import interpolated, resized_dims
from tflq.ir.ops import Op, Value
from tflq.ir.types import ScalarType, Shape, f32, i1, i8, i16, i32
from tflq.numerics.float_basics import EXACT
from tflq.numerics.resize import float_nearest_index, nearest_index

Change = Callable[[Value], Value]


def form(op: Op, k: Tflite) -> Callable[[Any, Tflite], Value | list[Value] | None] | None:
    """The function that moves an op's elements; None if the target has the op itself on a tensor without a twin."""
    move = _FORMS.get(type(op))
    return None if move is None or (k.value(op.operand(0)) not in k.twins and k.lists(op)) else move


def moved_elements(op: tfl.Moved | Gather, k: Tflite) -> Value | None:
    """An op that only moves elements, on the twin of its first operand."""
    first, *others = op.operands
    assert first is not None
    twin = k.twins.get(k.value(first))
    if twin is None or any(v is not None and not v.is_constant for v in others):
        return None
    result, attributes = Value(op.result.type.with_element(f32)), dict(op.attributes)
    if isinstance(op, tfl.Reshape) and op.dims is not None:
        attributes["new_shape"] = op.dims.array  # tf2onnx reads it
    k.ops.append(Op(op.name, [twin.value, *others], [result], attributes, op.location))
    return integers_of(k, Twin(result, twin.offset), op.result.type.storage)


def _answers(_: Tflite) -> dict[Value, Known | None]:
    return {}


def _known(k: Tflite, value: Value) -> Known | None:
    """The elements of an operand of sizes or indices that are the same for every batch."""
    return known_elements(value, k.once(_answers), any_batch=True)


def _numbers(k: Tflite, value: Value) -> list[int] | None:
    """All elements of such an operand; None if one is not known."""
    known = _known(k, value)
    return [int(v) for v in known.array.reshape(-1)] if known is not None and known.complete else None


def _changed(k: Tflite, x: Value, change: Change, types: Sequence[ScalarType]) -> Value | None:
    """A tensor changed by builtins that the target has on some types: in float32, if it has none on x's."""
    storage = x.type.storage
    if x in k.twins or storage is f32 or storage in types:
        return moved(k, x, lambda v, _: change(v))
    if storage not in (i1, i8, i16):
        return None
    return k.cast(change(k.cast(x, f32)), storage)


_ANY: Final = (i1, i8, i16, i32)
"""Integers that CONCATENATION, RESHAPE and STRIDED_SLICE take."""


# Shapes.


def reshape(op: tfl.Reshape, k: Tflite) -> Value | None:
    """By the operand, which is as it is if it is constant; else by what is known of it, or the option."""
    if op.dims is not None and op.dims.is_constant:
        return moved_elements(op, k)
    dims = op.result.type.shape
    if op.dims is not None:
        known = _known(k, op.dims)
        dims = None if known is None else tuple(None if d is None or d < 0 else d for d in known.elements())
    if dims is None or dims.count(None) > 1:
        return None
    return _changed(k, k.value(op.input), lambda v: k.in_shape(v, dims), _ANY)


def expand_dims(op: tfl.ExpandDims, k: Tflite) -> Value | None:
    shape = op.result.type.shape
    if shape is None or shape.count(None) > 1:
        return None
    return _changed(k, k.value(op.input), lambda v: k.in_shape(v, shape), _ANY)


# Tensors joined and split.


def concatenation(op: tfl.Concatenation, k: Tflite) -> Value | None:
    """Of twins, if any operand has one."""
    if op.fused_activation_function != "NONE":
        return None
    xs = [k.value(v) for v in op.present_operands]
    return joined(k, xs, op.axis) if len(xs) > JOINED or any(x in k.twins for x in xs) else None


def pack(op: tfl.Pack, k: Tflite) -> Value | None:
    """Operands with a dim of 1 more, joined."""
    xs = [k.value(v) for v in op.present_operands]
    rank = len(xs[0].type.dims)
    shapes = [_with_one(x, op.axis % (rank + 1)) for x in xs]
    if not all(map(_foldable, shapes)):
        return None
    wide = [_reshaped(k, x, shape) for x, shape in zip(xs, shapes, strict=True)]
    return wide[0] if len(wide) == 1 else joined(k, wide, op.axis % (rank + 1))


def _with_one(x: Value, axis: int) -> Shape:
    shape = x.type.dims
    return (*shape[:axis], 1, *shape[axis:])


def _reshaped(k: Tflite, x: Value, shape: Shape) -> Value:
    return moved(k, x, lambda v, _: k.reshape(v, shape or ()))


def _foldable(shape: Shape) -> bool:
    """Whether RESHAPE can state a shape."""
    return shape is not None and shape.count(None) <= 1


def unpack(op: tfl.Unpack, k: Tflite) -> list[Value] | None:
    """Parts, each without the dim."""
    x, shapes = k.value(op.input), [v.type.shape for v in op.outputs]
    if not all(map(_foldable, shapes)):
        return None
    parts = _parts(k, x, len(shapes), op.axis % len(x.type.shape or (0,)))
    return [_reshaped(k, part, shape) for part, shape in zip(parts, shapes, strict=True)]


def split(op: tfl.Split, k: Tflite) -> list[Value] | None:
    """Of the twin."""
    x = k.value(op.input)
    if x not in k.twins or not op.axis.is_constant:
        return None
    return _parts(k, x, len(op.outputs), int(op.axis.array.reshape(())) % len(x.type.shape or (0,)))


def _parts(k: Tflite, x: Value, count: int, axis: int) -> list[Value]:
    """Equal parts of a tensor, of its twin if it has one."""
    twin = k.twins.get(x)
    if twin is None:
        return k.split(x, count, axis)
    return [integers_of(k, Twin(v, twin.offset), x.type.storage) for v in k.split(twin.value, count, axis)]


# Parts, and several of the same.


def split_v(op: tfl.SplitV, k: Tflite) -> list[Value] | None:
    """Parts of stated sizes; one of these may be what is left."""
    x, sizes, axes = k.value(op.input), _numbers(k, op.sizes), _numbers(k, op.axis)
    if sizes is None or axes is None or x.type.shape is None or 0 in sizes:
        return None
    axis = axes[0] % len(x.type.dims)
    if -1 in sizes:
        size = x.type.dims[axis]
        if size is None:
            return None
        sizes[sizes.index(-1)] = size - sum(sizes) - 1
    parts: list[Value] = []
    for end, size in zip(np.cumsum(sizes).tolist(), sizes, strict=True):
        part = _changed(k, x, lambda v, e=end, n=size: _cut(k, v, {axis: (e - n, e)}), _ANY)  # type: ignore[misc]
        if part is None:
            return None
        parts.append(part)
    return parts


def _cut(k: Tflite, x: Value, bounds: dict[int, tuple[int, int]]) -> Value:
    """Some dims from a first element to before another; all others whole."""
    rank = len(x.type.dims)
    first, last = zip(*(bounds.get(axis, (0, 0)) for axis in range(rank)), strict=True)
    whole = sum(1 << axis for axis in range(rank) if axis not in bounds)
    return k.strided_slice(x, first, last, (1,) * rank, end_mask=whole)


def tile(op: tfl.Tile, k: Tflite) -> Value | None:
    counts = _numbers(k, op.multiples)
    if counts is None or 0 in counts:
        return None
    return _changed(k, k.value(op.input), lambda v: repeated(k, v, counts), _ANY)


def broadcast_to(op: tfl.BroadcastTo, k: Tflite) -> Value | None:
    """Of known dims; a first one that is not may not be repeated."""
    x, shape = k.value(op.input), op.result.type.shape
    if shape is None or x.type.shape is None or 0 in shape or _numbers(k, op.shape) is None:
        return None
    dims = (*(1,) * (len(shape) - len(x.type.dims)), *x.type.dims)
    counts = [1 if d == size else size for d, size in zip(dims, shape, strict=True)]
    known = [count for count in counts if count is not None]
    if len(known) != len(counts) or dims.count(None) > 1:
        return None
    return _changed(k, x, lambda v: repeated(k, v if v.type.dims == dims else k.in_shape(v, dims), known), _ANY)


def repeated(k: KernelBuilder, x: Value, counts: Sequence[int]) -> Value:
    """A tensor so many times along each dim."""
    for axis, count in enumerate(counts):
        x = _times(k, x, count, axis)
    return x


def _times(k: KernelBuilder, x: Value, count: int, axis: int) -> Value:
    """A tensor so many times, by CONCATENATION of ten at most."""
    if count == 1:
        return x
    if count <= JOINED:
        return k.concatenation([x] * count, axis)
    tens, rest = divmod(count, JOINED)
    many = _times(k, _times(k, x, JOINED, axis), tens, axis)
    return k.concatenation([many, *[x] * rest], axis) if rest else many


# Elements by where they were.


def mirror_pad(op: tfl.MirrorPad, k: Tflite) -> Value | None:
    x, edges = k.value(op.input), _numbers(k, op.paddings)
    if edges is None or x.type.shape is None:
        return None
    mode: Literal["reflect", "symmetric"] = "reflect" if op.mode == "REFLECT" else "symmetric"
    indices: dict[int, np.ndarray] = {}
    for axis, (size, pair) in enumerate(zip(x.type.dims, np.reshape(edges, (-1, 2)), strict=True)):
        if pair.any():
            if size is None:
                return None
            indices[axis] = np.pad(np.arange(size, dtype=np.int32), (int(pair[0]), int(pair[1])), mode=mode)
    return _changed(k, x, lambda v: by_index(k, v, indices), (i8,))


def reverse(op: tfl.ReverseV2, k: Tflite) -> Value | None:
    x, axes = k.value(op.input), _numbers(k, op.axes)
    if axes is None or x.type.shape is None:
        return None
    indices: dict[int, np.ndarray] = {}
    for axis in axes:
        size = x.type.dims[axis]
        if size is None:
            return None
        indices[axis % len(x.type.dims)] = np.arange(size, dtype=np.int32)[::-1]
    return _changed(k, x, lambda v: by_index(k, v, indices), (i8,))


def by_index(k: KernelBuilder, x: Value, indices: dict[int, np.ndarray]) -> Value:
    for axis, index in indices.items():
        x = k.gather(x, k.constant(index), axis)
    return x


# Blocks of spatial dims as batches. Batch (by W + bx) N + n of the result has row by and column bx of each block.


def space_to_batch(op: tfl.SpaceToBatchND, k: Tflite) -> Value | None:
    x, block, edges = k.value(op.input), _numbers(k, op.block), _numbers(k, op.paddings)
    if block is None or edges is None or not _sized(x, block):
        return None
    paddings = np.zeros((len(x.type.dims), 2), np.int32)
    paddings[1 : 1 + len(block)] = np.reshape(edges, (-1, 2))
    twin = k.twins.get(x)

    def change(v: Value) -> Value:
        if paddings.any():
            around = 0 if twin is None else -twin.offset
            v = k.padv2(v, paddings, around) if v.type.storage is f32 else k.emit(tfl.Pad, [v, k.constant(paddings)])
        return blocks_as_batches(k, v, block)

    return _changed(k, x, change, (i8, i16))


def blocks_as_batches(k: KernelBuilder, x: Value, block: Sequence[int]) -> Value:
    sizes = [d or 0 for d in x.type.dims[1:]]
    for axis in reversed(range(len(block))):
        count, before, after = block[axis], sizes[:axis], sizes[axis + 1 :]
        sizes[axis] //= count
        parts = k.reshape(x, (None, sizes[axis], count, prod(after)))
        x = k.reshape(k.transpose(parts, (2, 0, 1, 3)), (None, *before, sizes[axis], *after))
    return x


def batch_to_space(op: tfl.BatchToSpaceND, k: Tflite) -> Value | None:
    x, block, edges = k.value(op.input), _numbers(k, op.block), _numbers(k, op.crops)
    if block is None or edges is None or not _sized(x, block):
        return None
    crops = np.reshape(edges, (-1, 2)).tolist()

    def change(v: Value) -> Value:
        whole = batches_as_blocks(k, v, block)
        sizes = whole.type.dims[1:]
        bounds = {1 + i: (a, (sizes[i] or 0) - b) for i, (a, b) in enumerate(crops) if a or b}
        return _cut(k, whole, bounds) if bounds else whole

    return _changed(k, x, change, (i8, i16))


def batches_as_blocks(k: KernelBuilder, x: Value, block: Sequence[int]) -> Value:
    sizes = [d or 0 for d in x.type.dims[1:]]
    for axis, count in enumerate(block):
        before, after = sizes[:axis], sizes[axis + 1 :]
        parts = k.reshape(x, (count, None, sizes[axis], prod(after)))
        sizes[axis] *= count
        x = k.reshape(k.transpose(parts, (1, 2, 0, 3)), (None, *before, sizes[axis], *after))
    return x


def _sized(x: Value, block: Sequence[int]) -> bool:
    """Whether all dims of a tensor but the batch are known, and there are as many spatial ones as in a block."""
    shape = x.type.shape
    return shape is not None and len(shape) > len(block) and None not in shape[1:] and 0 not in shape


# Images.


def resize(op: Resize, k: Tflite) -> Value | None:
    x = k.value(op.input)
    shape, sizes = op.input.type.dims, op.output.type.dims
    if x.type.storage not in BYTES or None in (*shape[1:3], *sizes[1:3]):
        return None
    return _nearest(op, k, x) if op.mode == "NEAREST_NEIGHBOR" else _bilinear(op, k, x)


def _nearest(op: Resize, k: Tflite, x: Value) -> Value | None:
    """Rows, then columns, by GATHER, unless the builtin takes these elements without options: others are not alike."""
    twin, dims = k.twins.get(x), resized_dims(op)
    indices = [nearest_index(d.steps, d.size, d.out) for d in dims]
    plain = (float_nearest_index(d.size, d.out, False, False) for d in dims)
    if twin is None or all(map(np.array_equal, indices, plain)):
        return None
    value = twin.value
    for dim, index in zip(dims, indices, strict=True):
        value = k.gather(value, k.constant(index), dim.axis)
    return integers_of(k, Twin(value, twin.offset), op.output.type.storage)


def _bilinear(op: Resize, k: Tflite, x: Value) -> Value:
    """Rows in float32, then columns; these in int32 where sums may reach 2^24."""
    rows, columns = resized_dims(op)
    largest = max(-x.type.storage.minimum, x.type.storage.maximum)
    to = f32 if largest * rows.steps.n * columns.steps.n < EXACT else i32
    value = interpolated(k, centred(k, x, 0), rows)
    return k.cast(interpolated(k, value, columns, to), op.output.type.storage)


def pad(op: tfl.PadV2, k: Tflite) -> Value | None:
    x = k.value(op.input)
    if x.type.storage not in BYTES or not (op.paddings.is_constant and op.value.is_constant):
        return None
    twin = twin_of(k, x) or Twin(k.cast(x, f32), 0)
    around = int(op.value.array.reshape(())) - twin.offset
    return integers_of(k, Twin(k.padv2(twin.value, op.paddings.array, around), twin.offset), x.type.storage)


_FORMS: Final[dict[type[Op], Callable[[Any, Tflite], Value | list[Value] | None]]] = {
    tfl.BatchToSpaceND: batch_to_space,
    tfl.BroadcastTo: broadcast_to,
    tfl.ExpandDims: expand_dims,
    tfl.MirrorPad: mirror_pad,
    tfl.ReverseV2: reverse,
    tfl.SpaceToBatchND: space_to_batch,
    tfl.SplitV: split_v,
    tfl.Tile: tile,
}
