"""Elements in another order, place or number: one builtin each, around which types it lacks are cast."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tflq.dialects.tfl import movement as tfl
from tflq.dialects.tosa.movement import Concat, Identity, Pad, Reshape, Reverse, Slice, Tile, Transpose
from tflq.ir.core import Value
from tflq.ir.types import ScalarType, i1, i8, i16, i32
from tflq.select.lowering import Kernels, lowering
from tflq.select.twins import Twin, centred, integers_of, moved

__all__: list[str] = []


@lowering(Identity)
def identity(op: Identity, k: Kernels) -> Value:
    return k.copy(k.value(op.input))


@lowering(Reshape)
def reshape(op: Reshape, k: Kernels) -> Value:
    """The first dim is left to be inferred, where no other is: it is the one that a resized batch changes."""
    shape = op.result.type.shape or ()

    def reshaped(x: Value, _: int) -> Value:
        return k.reshape(x, shape) if not shape or 0 in shape or None in shape[1:] else k.refold(x, shape)

    return moved(k, k.value(op.input), reshaped)


@lowering(Transpose)
def transpose(op: Transpose, k: Kernels) -> Value:
    """TRANSPOSE reads what memory held in the place of an empty permutation."""
    x, perms = k.value(op.input), op.perms
    return moved(k, x, lambda v, _: k.transpose(v, perms)) if perms else k.copy(x)


@lowering(Slice)
def slice_(op: Slice, k: Kernels) -> Value:
    """A dim taken whole ends where it ends, so that the batch can be resized; SLICE keeps the result shape stated."""
    x, begin = k.value(op.input), op.start
    sizes = list(zip(begin, op.size, x.type.shape or (), strict=True))
    whole = sum(1 << i for i, (start, size, dim) in enumerate(sizes) if size is None or (start == 0 and size == dim))
    end = tuple(start + (size or 0) for start, size, _ in sizes)

    def sliced(v: Value, _: int) -> Value:
        return k.strided_slice(v, tuple(begin), end, (1,) * len(end), op.result.type.shape or (), end_mask=whole)

    return moved(k, x, sliced)


@lowering(Concat)
def concat(op: Concat, k: Kernels) -> Value:
    xs, shape = [k.value(v) for v in op.inputs if v is not None], op.result.type.shape
    twins = [k.twins[x] for x in xs if x in k.twins]
    if not twins:
        return k.concatenation(xs, op.axis, shape)
    offset = twins[0].offset
    whole = k.concatenation([centred(k, x, offset) for x in xs], op.axis, shape)
    return integers_of(k, Twin(whole, offset), xs[0].type.storage)


def _carried(k: Kernels, x: Value, emit: Callable[[Value], Value], carriers: Mapping[ScalarType, ScalarType]) -> Value:
    """`emit` of x, in another type if the kernel lacks x's: `carriers` has the one to take."""
    storage = x.type.storage
    return k.cast(emit(k.cast(x, carriers[storage])), storage) if storage in carriers else emit(x)


@lowering(Pad)
def pad(op: Pad, k: Kernels) -> Value:
    amounts = np.reshape(np.asarray(op.padding, np.int32), (-1, 2))
    x = k.value(op.input1)
    if not amounts.any():
        return k.copy(x)

    def padded(v: Value, offset: int = 0) -> Value:
        return k.padv2(v, amounts, op.pad_const - offset, op.output.type.shape)

    return moved(k, x, padded) if x in k.twins else _carried(k, x, padded, {i1: i8})


@lowering(Tile)
def tile(op: Tile, k: Kernels) -> Value:
    multiples = k.constant(np.asarray(op.multiples, np.int32))

    def tiled(v: Value) -> Value:
        return k.emit(tfl.Tile, [v, multiples], op.output.type.with_element(v.type.storage))

    return _carried(k, k.value(op.input1), tiled, {i1: i8, i16: i32})


@lowering(Reverse)
def reverse(op: Reverse, k: Kernels) -> Value:
    x = k.value(op.input1)
    return k.emit(tfl.ReverseV2, [x, k.constant([op.axis])], x.type)
