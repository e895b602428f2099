"""Operators that move elements: each is copies of blocks with strides, merged as far as dims lie behind each other.

Where elements come from and go to is what numpy says of views: arrays of a byte for each element, which nothing fills.
A slice that is one piece of its operand is no copy but a view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.tosa import movement as move
from tflq.formats.c.fusion import Fusion
from tflq.formats.c.loops import Body
from tflq.formats.c.names import count, dims_of, literal
from tflq.formats.c.unit import closed, loops
from tflq.ir.core import Op, Value

MOVEMENT: Final = (move.Slice, move.Concat, move.Pad, move.Reverse, move.Tile, move.Transpose)
_Block: TypeAlias = tuple[Value, np.ndarray, np.ndarray]
"""An operand, a view of it, and one of the result in the same dims."""


def find_views(fusion: Fusion) -> None:
    """Enters slices that are one piece of what an operator has computed."""
    for op in fusion.function.ops:
        if isinstance(op, move.Slice) and not op.input.is_constant and count(op.result):
            ((_, source, _),) = _blocks(op)
            if source.flags.c_contiguous:
                fusion.views[op.result] = fusion.root(op.input), _begin(source)


def moved(op: Op, body: Body) -> list[str]:
    """The statements of an operator that moves elements."""
    lines: list[str] = []
    if isinstance(op, move.Pad) and any(op.padding):
        number = op.pad_const if op.result.type.storage.is_float else int(op.pad_const)
        lines = closed([*loops(i=count(op.result)), f"y[i] = {literal(number)};"])
    for block in _blocks(op):
        lines += _copied(block, body)
    return lines


def _blocks(op: Op) -> Iterator[_Block]:
    """The copies of an operator. Refused for one that makes none."""
    arrays = [np.empty(dims_of(value), np.int8) for value in op.present_operands]
    source, x, y = op.present_operands[0], arrays[0], np.empty(dims_of(op.results[0]), np.int8)
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
        raise Refused(f"{op.short_name.upper()} is not written in C")


def _without(array: np.ndarray, ends: Sequence[Sequence[int]]) -> np.ndarray:
    """A view without so many elements at both ends of each dim."""
    return array[tuple(slice(int(a), dim - int(b)) for (a, b), dim in zip(ends, array.shape, strict=True))]


def _begin(view: np.ndarray) -> int:
    """The number of the element that a view begins with."""
    base = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    return int(view.ctypes.data - base.ctypes.data)


def _copied(block: _Block, body: Body) -> list[str]:
    """Loops over the dims of a block, of which those that lie behind each other are one."""
    value, source, place = block
    rows = [row for row in zip(source.shape, source.strides, place.strides, strict=True) if row[0] != 1]
    if not source.size:
        return []
    merged: list[tuple[int, int, int]] = []
    for dim, stride, step in rows:
        if merged and merged[-1][1] == dim * stride and merged[-1][2] == dim * step:
            merged[-1] = merged[-1][0] * dim, stride, step
        else:
            merged.append((dim, stride, step))
    name, type, _ = body.operand(value)
    whole = merged[-1] if merged and merged[-1][1:] == (1, 1) else None
    outer = merged[:-1] if whole else merged
    terms = [[f"{n} * i{at}" for at, row in enumerate(outer) if (n := row[side])] for side in (1, 2)]
    here, there = (" + ".join([*side, str(_begin(view))]) for side, view in zip(terms, block[1:], strict=True))
    move_one = f"y[{there}] = {name}[{here}];"
    if whole:
        move_one = f"memcpy(y + {there}, {name} + {here}, {whole[0]} * sizeof({type}));"
    return closed([*loops(**{f"i{at}": dim for at, (dim, _, _) in enumerate(outer)}), move_one])
