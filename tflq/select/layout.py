"""Padding, repetition, order and picking of elements: builtins, around which types they lack are cast.

GATHER and SCATTER are of rows, per batch. A scattered row is picked, too: SCATTER_ND of the rows' numbers says for
each place of the result which row it takes, if any, and one GATHER takes it from the values and rows together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.ir.core import Op, Value
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


@lowering("tosa.pad")
def pad(op: Op, k: Kernels) -> Value:
    amounts = np.reshape(np.asarray(op.attributes["padding"], np.int32), (-1, 2))
    x = k.value(op.operand(0))
    if not amounts.any():
        return k.copy(x)

    def padded(v: Value) -> Value:
        return k.padv2(v, amounts, op.attributes["pad_const"], op.result.type.shape)

    return _carried(k, x, padded, i1="i8")


@lowering("tosa.tile")
def tile(op: Op, k: Kernels) -> Value:
    multiples = k.constant(np.asarray(op.attributes["multiples"], np.int32))

    def tiled(v: Value) -> Value:
        return k.emit("tfl.tile", [v, multiples], op.result.type.with_element(v.type.storage))

    return _carried(k, k.value(op.operand(0)), tiled, i1="i8", i16="i32")


@lowering("tosa.reverse")
def reverse(op: Op, k: Kernels) -> Value:
    x = k.value(op.operand(0))
    return k.emit("tfl.reverse_v2", [x, k.constant([op.attributes["axis"]])], x.type)


@lowering("tosa.gather")
def gather(op: Op, k: Kernels) -> Value:
    values, indices = k.value(op.operand(0)), k.value(op.operand(1))
    return k.emit("tfl.gather", [values, indices], op.result.type, axis=1, batch_dims=1)


@lowering("tosa.scatter")
def scatter(op: Op, k: Kernels) -> Value:
    values, indices, rows = (k.value(op.operand(i)) for i in range(3))
    batch, places, channels = (d or 0 for d in op.result.type.shape or ())
    count = (indices.type.shape or (0, 0))[1] or 0
    all_places, all_rows = batch * places, batch * count
    flat = k.add(indices, k.constant(np.arange(batch)[:, None] * places)) if batch > 1 else indices
    numbers = k.constant(np.arange(1, all_rows + 1))
    table = [k.reshape(flat, (all_rows, 1)), numbers, k.constant([all_places])]
    taken = k.emit("tfl.scatter_nd", table, TensorType((all_places,), i32))
    own = k.constant(np.arange(all_places))
    index = k.select_v2(k.greater(taken, k.constant(0)), k.add(taken, k.constant(all_places - 1)), own)
    both = [k.reshape(values, (all_places, channels)), k.reshape(rows, (all_rows, channels))]
    joined = k.concatenation(both, 0, (all_places + all_rows, channels))
    return k.reshape(k.gather(joined, index), (batch, places, channels))
