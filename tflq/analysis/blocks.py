"""Operators that move elements, as copies of blocks: where elements come from and go to is what numpy says of views of
arrays with a byte for each element, which nothing fills.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from tflq.dialects.tosa import movement as move
from tflq.ir.ops import Op, Value

MOVEMENT: Final = (move.Slice, move.Concat, move.Pad, move.Reverse, move.Tile, move.Transpose)
Block: TypeAlias = tuple[Value, np.ndarray, np.ndarray]
"""An operand, a view of it, and one of the result in the same dims."""


def blocks(op: Op) -> Iterator[Block]:
    """The copies that an operator is. TypeError for one that is none."""
    arrays = [np.empty(value.type.sizes, np.int8) for value in op.present_operands]
    source, x, y = op.present_operands[0], arrays[0], np.empty(op.results[0].type.sizes, np.int8)
    if isinstance(op, move.Concat):
        ends = np.cumsum([array.shape[op.axis] for array in arrays])
        yield from zip(op.present_operands, arrays, np.split(y, ends[:-1], op.axis), strict=True)
    elif isinstance(op, move.Slice):
        yield source, x[tuple(slice(a, a + size) for a, size in zip(op.start, y.shape, strict=True))], y
    elif isinstance(op, move.Pad):
        pairs = list(zip(op.padding[::2], op.padding[1::2], strict=True))
        yield (
            source,
            _without(x, [(max(-a, 0), max(-b, 0)) for a, b in pairs]),
            _without(y, np.maximum(pairs, 0).tolist()),
        )
    elif isinstance(op, move.Reverse):
        yield source, np.flip(x, op.axis), y
    elif isinstance(op, move.Tile):
        sizes = [n for pair in zip(op.multiples, x.shape, strict=True) for n in pair]
        once = x.reshape([n for dim in x.shape for n in (1, dim)])
        yield source, np.broadcast_to(once, sizes), y.reshape(sizes)
    elif isinstance(op, move.Transpose):
        yield source, x.transpose(op.perms), y
    else:
        raise TypeError(f"{op.name} moves no elements")


def _without(array: np.ndarray, ends: Sequence[Sequence[int]]) -> np.ndarray:
    """A view without so many elements at both ends of each dim."""
    return array[tuple(slice(int(a), dim - int(b)) for (a, b), dim in zip(ends, array.shape, strict=True))]


def begin(view: np.ndarray) -> int:
    """The number of the element that a view begins with."""
    base = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    return int(view.ctypes.data - base.ctypes.data)


def merged(source: np.ndarray, place: np.ndarray) -> list[tuple[int, int, int]]:
    """The dims that two views have in common: the size, and the elements from one index to the next in both. Those that
    lie behind each other in both are one."""
    dims: list[tuple[int, int, int]] = []
    for dim, stride, step in zip(source.shape, source.strides, place.strides, strict=True):
        if dims and dims[-1][1:] == (dim * stride, dim * step):
            dims[-1] = dims[-1][0] * dim, stride, step
        elif dim != 1:
            dims.append((dim, stride, step))
    return dims
