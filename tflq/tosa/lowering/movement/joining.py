"""CONCATENATION, PACK and UNPACK, SPLIT and SPLIT_V.

CONCAT takes 64 tensors at most at level 8k (MAX_TENSOR_LIST_SIZE), so more are joined in groups. It takes int16 only
with the extension of that name; without it the values are joined as int32. Kernels: concatenation.cc, pack.cc,
unpack.cc, split.cc, split_v.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.movement import Concatenation, Pack, Split, SplitV, Unpack
from tflq.dialects.tosa.movement import Concat
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.tosa.lowering.convolution.grouped import grouped, is_grouped
from tflq.tosa.lowering.floats.arithmetic import float_activation
from tflq.tosa.lowering.known import constant_of, dims_of, known_axis
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.shaping import joined, part, reshaped
from tflq.tosa.lowering.wide import narrow

__all__: list[str] = []


@lowering(Concat, Concatenation)
def concatenation(op: Concat | Concatenation, t: Tosa) -> Value:
    if is_grouped(op):
        return grouped(op, t)
    parts = [narrow(v, t) for v in op.operands if v is not None]
    result = joined(t, parts, op.axis % len(dims_of(parts[0])))
    activation = op.fused_activation_function if isinstance(op, Concatenation) else "NONE"
    if activation != "NONE" and not result.type.storage.is_float:
        raise Refused(f"CONCATENATION of integers has no activation {activation}")
    return float_activation(t, result, activation)


@lowering(Pack)
def pack(op: Pack, t: Tosa) -> Value:
    """Each operand with one dim more, joined."""
    parts = [narrow(v, t) for v in op.operands if v is not None]
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
    """As many equal parts as there are results."""
    x = narrow(op.input, t)
    axis = known_axis(op.axis, len(dims_of(x)))
    size = _size(x, axis) // len(op.results)
    return [part(t, x, axis, i * size, size) for i in range(len(op.results))]


@lowering(SplitV)
def split_v(op: SplitV, t: Tosa) -> list[Value]:
    """Parts of the sizes stated; -1 is what the others leave."""
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
