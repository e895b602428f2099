"""Elements chosen by index. Sources: kernels/gather.cc, gather_nd.cc; TOSA 1.0 specification, GATHER, SCATTER."""

from __future__ import annotations

from math import prod

import numpy as np

from tflq.dialects.onnx import movement as onnx
from tflq.dialects.tfl import gathering as tfl
from tflq.dialects.tfl.indexing import DynamicUpdateSlice
from tflq.dialects.tosa.movement import Gather, Scatter
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.ir.types import i32, i64
from tflq.onnx.lowering.context import Onnx, lowering, static
from tflq.onnx.lowering.held import Held


def _index(t: Onnx, operand: Value) -> Value:
    """Indices in a type that ONNX takes."""
    return t.integers(operand, i64 if operand.type.storage == i64 else i32)


@lowering(tfl.Gather)
def gather(op: tfl.Gather, t: Onnx) -> Held:
    """GATHER; with dims of batches GATHERND of rows, each with the index of its batch."""
    rank = len(op.input.type.shape or ())
    axis, batch = op.axis % rank, op.batch_dims
    batch += len(op.indices.type.shape or ()) if batch < 0 else 0
    if not batch:
        return t.moved(op.input, lambda x: t.gather(x, _index(t, op.indices), axis), op.result)
    if axis != batch:
        raise Refused("GATHER of an axis behind others than those of batches")
    rows = t.integers(op.indices, i64)
    shape = static(op.indices.type.shape)

    def emit(x: Value) -> Value:
        return t.emit(onnx.GatherND, [x, t.reshape(rows, (*shape, 1))], batch_dims=batch)

    return t.moved(op.input, emit, op.result)


@lowering(tfl.GatherND)
def gather_nd(op: tfl.GatherND, t: Onnx) -> Held:
    rows = t.integers(op.indices, i64)
    return t.moved(op.input, lambda x: t.emit(onnx.GatherND, [x, rows]), op.result)


@lowering(Gather)
def gather_rows(op: Gather, t: Onnx) -> Held:
    """values [N, K, C], indices [N, W] → [N, W, C]."""
    batch, count = op.indices.type.shape or (None, None)
    if batch == 1:

        def pick(x: Value) -> Value:
            return t.gather(x, t.reshape(t.integers(op.indices), (count,)), 1)

        return t.moved(op.values, pick, op.result)
    rows = t.reshape(t.integers(op.indices, i64), (*(op.indices.type.shape or ()), 1))
    return t.moved(op.values, lambda x: t.emit(onnx.GatherND, [x, rows], batch_dims=1), op.result)


@lowering(Scatter)
def scatter_rows(op: Scatter, t: Onnx) -> Held:
    """SCATTERND of rows by batch and index."""
    batch, count = static(op.indices.type.shape)
    numbers = t.constant(np.repeat(np.arange(batch, dtype=np.int64), count).reshape(batch, count, 1), i64)
    rows = t.concat([numbers, t.reshape(t.integers(op.indices, i64), (batch, count, 1))], 2)
    (values, updates), form = t.common([op.values_in, op.input])
    return t.made(t.emit(onnx.ScatterND, [values, rows, updates]), op.result, offset=form.offset)


@lowering(DynamicUpdateSlice)
def dynamic_update_slice(op: DynamicUpdateSlice, t: Onnx) -> Held:
    """SCATTERND at the start and all places of the update, as far as they are inside."""
    shape, block = static(op.input.type.shape), static(op.update.type.shape)
    last = t.constant(np.subtract(shape, block), i64)
    start = t.minimum(t.maximum(t.integers(op.starts, i64), t.constant(0, i64)), last)
    places = np.stack(np.meshgrid(*map(np.arange, block), indexing="ij"), -1).reshape(prod(block), len(block))
    rows = t.add(t.reshape(start, (1, len(block))), t.constant(places.astype(np.int64), i64))
    (values, updates), form = t.common([op.input, op.update])
    flat = t.reshape(updates, (prod(block),))
    return t.made(t.emit(onnx.ScatterND, [values, rows, flat]), op.result, offset=form.offset)
