"""Operators that move elements: each is copies of blocks with strides, merged as far as dims lie behind each other.

A slice that is one piece of its operand is no copy but a view. What becomes one piece of a concatenation is computed
there.
"""

from __future__ import annotations

from tflq.analysis.blocks import Block, begin, blocks, merged
from tflq.dialects.tosa import movement as move
from tflq.formats.c.fusion import Fusion
from tflq.formats.c.loops import Body
from tflq.formats.c.names import count, literal
from tflq.formats.c.unit import closed, loops
from tflq.ir.ops import Op


def find_views(fusion: Fusion) -> None:
    """Enters slices that are one piece of what an operator has computed, and operands that are of a concatenation."""
    for op in fusion.function.ops:
        if isinstance(op, move.Concat) and count(op.result):
            for source, _, place in blocks(op):
                value = fusion.root(source)
                if place.flags.c_contiguous and fusion.is_placeable(value):
                    fusion.pieces[value] = op.result, begin(place)
        if isinstance(op, move.Slice) and not op.input.is_constant and count(op.result):
            ((_, block, _),) = blocks(op)
            if block.flags.c_contiguous:
                fusion.views[op.result] = fusion.root(op.input), begin(block)


def moved(op: Op, body: Body) -> list[str]:
    """The statements of an operator that moves elements."""
    lines: list[str] = []
    if isinstance(op, move.Pad) and any(op.padding):
        number = op.pad_const if op.result.type.storage.is_float else int(op.pad_const)
        lines = closed([*loops(i=count(op.result)), f"y[i] = {literal(number)};"])
    for block in blocks(op):
        if body.fusion.pieces.get(body.fusion.root(block[0])) != (op.results[0], begin(block[2])):
            lines += _copied(block, body)
    return lines


def _copied(block: Block, body: Body) -> list[str]:
    """Loops over the dims of a block, of which those that lie behind each other are one."""
    value, source, place = block
    if not source.size:
        return []
    dims = merged(source, place)
    name, type, _ = body.operand(value)
    whole = dims[-1] if dims and dims[-1][1:] == (1, 1) else None
    outer = dims[:-1] if whole else dims
    terms = [[f"{n} * i{at}" for at, row in enumerate(outer) if (n := row[side])] for side in (1, 2)]
    here, there = (" + ".join([*side, str(begin(view))]) for side, view in zip(terms, block[1:], strict=True))
    move_one = f"y[{there}] = {name}[{here}];"
    if whole:
        move_one = f"memcpy(y + {there}, {name} + {here}, {whole[0]} * sizeof({type}));"
    return closed([*loops(**{f"i{at}": dim for at, (dim, _, _) in enumerate(outer)}), move_one])
