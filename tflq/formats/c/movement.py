"""Operators that move elements: each is copies of blocks with strides, merged as far as dims lie behind each other.

A slice that is one piece of its operand is no copy but a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from tflq.base.errors import Refused
from tflq.dialects.tosa import movement as move
from tflq.formats.c.fusion import Fusion
from tflq.formats.c.loops import Body
from tflq.formats.c.names import count, dims_of, literal
from tflq.ir.core import Op, Value

MOVEMENT: Final = (move.Slice, move.Concat, move.Pad, move.Reverse, move.Tile, move.Transpose)


class _Block(NamedTuple):
    """Elements of `dims` of a tensor: where they begin and their strides, there and in the result."""

    value: Value
    dims: Sequence[int]
    begin: int
    strides: Sequence[int]
    place: int
    steps: Sequence[int]


def find_views(fusion: Fusion) -> None:
    """Enters slices that are one piece of what an operator has computed."""
    for op in fusion.function.ops:
        if isinstance(op, move.Slice) and not op.input.is_constant:
            dims, size = dims_of(op.input), dims_of(op.result)
            uneven = [at for at, (d, s) in enumerate(zip(dims, size, strict=True)) if d != s]
            first = uneven[-1] if uneven else 0
            if all(s == 1 for s in size[:first]) and count(op.result):
                begin = sum(a * b for a, b in zip(op.start, _strides(dims), strict=True))
                fusion.views[op.result] = fusion.root(op.input), begin


def moved(op: Op, body: Body) -> list[str]:
    """The statements of an operator that moves elements."""
    lines: list[str] = []
    if isinstance(op, move.Pad) and any(op.padding):
        number = op.pad_const if op.result.type.storage.is_float else int(op.pad_const)
        lines = [f"for (int32_t i = 0; i < {count(op.result)}; i++) {{", f"y[i] = {literal(number)};", "}"]
    for block in _blocks(op):
        lines += _copied(block, body)
    return lines


def _strides(dims: Sequence[int]) -> list[int]:
    return [int(np.prod(dims[at + 1 :], dtype=np.int64)) for at in range(len(dims))]


def _blocks(op: Op) -> list[_Block]:
    if isinstance(op, move.Concat):
        return _joined(op)
    source, result = op.operands[0], op.results[0]
    assert source is not None
    dims, out = dims_of(source), dims_of(result)
    strides, steps = _strides(dims), _strides(out)
    if isinstance(op, move.Slice):
        begin = sum(a * b for a, b in zip(op.start, strides, strict=True))
        return [_Block(source, out, begin, strides, 0, steps)]
    if isinstance(op, move.Pad):
        return [_padded(op, source, dims, strides, steps)]
    if isinstance(op, move.Reverse):
        back = [-s if at == op.axis % len(dims) else s for at, s in enumerate(strides)]
        begin = (dims[op.axis] - 1) * strides[op.axis]
        return [_Block(source, dims, begin, back, 0, steps)]
    if isinstance(op, move.Tile):
        sizes = [n for d, m in zip(dims, op.multiples, strict=True) for n in (m, d)]
        reads = [n for s in strides for n in (0, s)]
        writes = [n for d, s in zip(dims, steps, strict=True) for n in (d * s, s)]
        return [_Block(source, sizes, 0, reads, 0, writes)]
    if isinstance(op, move.Transpose):
        return [_Block(source, out, 0, [strides[p] for p in op.perms], 0, steps)]
    raise Refused(f"{op.short_name.upper()} is not written in C")


def _padded(op: move.Pad, source: Value, dims: Sequence[int], strides: Sequence[int], steps: Sequence[int]) -> _Block:
    """The operand within the result; less than 0 of padding crops it."""
    before, after = op.padding[::2], op.padding[1::2]
    sizes = [d + min(b, 0) + min(a, 0) for d, b, a in zip(dims, before, after, strict=True)]
    begin = sum(max(-b, 0) * s for b, s in zip(before, strides, strict=True))
    place = sum(max(b, 0) * s for b, s in zip(before, steps, strict=True))
    return _Block(source, sizes, begin, strides, place, steps)


def _joined(op: move.Concat) -> list[_Block]:
    steps, at, blocks = _strides(dims_of(op.result)), 0, []
    for value in op.present_operands:
        dims = dims_of(value)
        blocks.append(_Block(value, dims, 0, _strides(dims), at * steps[op.axis], steps))
        at += dims[op.axis]
    return blocks


def _copied(block: _Block, body: Body) -> list[str]:
    """Loops over the dims of a block, of which those that lie behind each other are one."""
    rows = [row for row in zip(block.dims, block.strides, block.steps, strict=True) if row[0] != 1]
    if any(dim == 0 for dim, _, _ in rows):
        return []
    merged: list[tuple[int, int, int]] = []
    for dim, stride, step in rows:
        if merged and merged[-1][1] == dim * stride and merged[-1][2] == dim * step:
            merged[-1] = merged[-1][0] * dim, stride, step
        else:
            merged.append((dim, stride, step))
    name, type, _ = body.operand(block.value)
    whole = merged[-1] if merged and merged[-1][1:] == (1, 1) else None
    loops = merged[:-1] if whole else merged
    terms = [[f"{n} * i{at}" for at, row in enumerate(loops) if (n := row[side])] for side in (1, 2)]
    source, place = (" + ".join([*side, str(at)]) for side, at in zip(terms, (block.begin, block.place), strict=True))
    move_one = f"y[{place}] = {name}[{source}];"
    if whole:
        move_one = f"memcpy(y + {place}, {name} + {source}, {whole[0]} * sizeof({type}));"
    heads = [f"for (int32_t i{at} = 0; i{at} < {dim}; i{at}++) {{" for at, (dim, _, _) in enumerate(loops)]
    return [*heads, move_one, *("}" for _ in heads)]
