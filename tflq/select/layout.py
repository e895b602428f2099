"""Padding, repetition, order and picking of elements: builtins, around which types they lack are cast.

GATHER and SCATTER are of rows, per batch. A scattered row is picked, too: SCATTER_ND of the rows' numbers says for
each place of the result which row it takes, if any, and one GATHER takes it from the values and rows together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.dialects.tfl.indexing import Gather as TflGather
from tflq.dialects.tfl.indexing import ScatterND
from tflq.dialects.tfl.movement import ReverseV2
from tflq.dialects.tfl.movement import Tile as TflTile
from tflq.dialects.tosa.indexing import Gather, Scatter
from tflq.dialects.tosa.movement import Pad, Reverse, Tile
from tflq.ir.core import Value
from tflq.ir.types import TensorType, i8, i32
from tflq.select.lowering import Kernels, lowering

__all__: list[str] = []


def _carried(k: Kernels, x: Value, emit: Callable[[Value], Value], **lacking: object) -> Value:
    """`emit` of x in a type that the kernel has: `lacking` names those it has not, and what stands for them."""
    through = lacking.get(x.type.storage.name)
    if through is None:
        return emit(x)
    carrier = {"i8": i8, "i32": i32}[str(through)]
    return k.cast(emit(k.cast(x, carrier)), x.type.storage)


@lowering(Pad)
def pad(op: Pad, k: Kernels) -> Value:
    amounts = np.reshape(np.asarray(op.padding, np.int32), (-1, 2))
    x = k.value(op.input1)
    if not amounts.any():
        return k.copy(x)

    def padded(v: Value) -> Value:
        return k.padv2(v, amounts, op.pad_const, op.output.type.shape)

    return _carried(k, x, padded, i1="i8")


@lowering(Tile)
def tile(op: Tile, k: Kernels) -> Value:
    multiples = k.constant(np.asarray(op.multiples, np.int32))

    def tiled(v: Value) -> Value:
        return k.emit(TflTile, [v, multiples], op.output.type.with_element(v.type.storage))

    return _carried(k, k.value(op.input1), tiled, i1="i8", i16="i32")


@lowering(Reverse)
def reverse(op: Reverse, k: Kernels) -> Value:
    x = k.value(op.input1)
    return k.emit(ReverseV2, [x, k.constant([op.axis])], x.type)


@lowering(Gather)
def gather(op: Gather, k: Kernels) -> Value:
    values, indices = k.value(op.values), k.value(op.indices)
    return k.emit(TflGather, [values, indices], op.output.type, axis=1, batch_dims=1)


@lowering(Scatter)
def scatter(op: Scatter, k: Kernels) -> Value:
    values, indices, rows = k.value(op.values_in), k.value(op.indices), k.value(op.input)
    batch, places, channels = (d or 0 for d in op.values_out.type.shape or ())
    count = (indices.type.shape or (0, 0))[1] or 0
    all_places, all_rows = batch * places, batch * count
    flat = k.add(indices, k.constant(np.arange(batch)[:, None] * places)) if batch > 1 else indices
    numbers = k.constant(np.arange(1, all_rows + 1))
    table = [k.reshape(flat, (all_rows, 1)), numbers, k.constant([all_places])]
    taken = k.emit(ScatterND, table, TensorType((all_places,), i32))
    own = k.constant(np.arange(all_places))
    index = k.select_v2(k.greater(taken, k.constant(0)), k.add(taken, k.constant(all_places - 1)), own)
    both = [k.reshape(values, (all_places, channels)), k.reshape(rows, (all_rows, channels))]
    joined = k.concatenation(both, 0, (all_places + all_rows, channels))
    return k.reshape(k.gather(joined, index), (batch, places, channels))
