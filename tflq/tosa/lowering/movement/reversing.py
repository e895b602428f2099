"""REVERSE_V2 and REVERSE_SEQUENCE. Kernels: reverse.cc, reverse_sequence.cc."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.movement import ReverseSequence, ReverseV2
from tflq.dialects.tosa.movement import Reverse
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.tosa.lowering.indexing.gathering import as_index, taken
from tflq.tosa.lowering.known import constant_of, dims_of, product
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.shaping import reshaped
from tflq.tosa.lowering.wide import narrow

__all__: list[str] = []


@lowering(Reverse)
def reverse_by_attribute(op: Reverse, t: Tosa) -> Value:
    return t.emit(Reverse, [narrow(op.input1, t)], axis=op.axis)


@lowering(ReverseV2)
def reverse(op: ReverseV2, t: Tosa) -> Value:
    """REVERSE along one axis after another."""
    x = narrow(op.input, t)
    rank = len(dims_of(x))
    for axis in constant_of(op.axes, "axes").reshape(-1):
        x = t.emit(Reverse, [x], axis=int(axis) % rank)
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
    found = taken(
        t, reshaped(t, t.transpose(x, order), (shape[batch], size, product(rest))), _turned(t, op.lengths, size)
    )
    found = reshaped(t, found, (shape[batch], size, *rest))
    return t.transpose(found, [order.index(i) for i in range(len(shape))])


def _turned(t: Tosa, lengths: Value, size: int) -> Value:
    """Where each element of each sequence comes from: int32 [batches, size]."""
    known = as_index(t, lengths)
    places = np.arange(size)[None]
    if known.is_constant:
        ends = known.array.reshape(-1, 1)
        return t.constant(np.where(places < ends, ends - 1 - places, places))
    end, here = t.reshape(known, (dims_of(known)[0], 1)), t.constant(places)
    return t.select(t.greater(end, here), t.sub(end, t.constant(places + 1)), here)
