"""EQUAL and its kin."""

from __future__ import annotations

from support.harness import argument

from matrix.draw import Case, Draw, generator, single
from matrix.elementwise import broadcast_shapes, operand_of
from tflq.ir.types import i1, i8, i16, i32, ui8

__all__: list[str] = []

_SHIFTED = {8: 2.0**16, 16: 2.0**8, 32: 1e30}
"""Scales from which on the kernels shift by amounts that C++ leaves undefined (`tflq.numerics.elementwise`)."""


@generator("comparison")
def comparison(draw: Draw) -> Case:
    """Of near and far scales, some so small that neighbours are equal, some above 1."""
    name = draw.one("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    storage = draw.storage(i8, i8, ui8, ui8, i16, i16, i32)
    first, second, out = broadcast_shapes(draw)
    a = draw.quantized(storage, draw.scale(-10, 2) if draw.chance(0.8) else draw.scale(-30, -10))
    b = a if draw.chance(0.3) else draw.quantized(storage, a.scale if draw.chance(0.3) else draw.near(a.scale))
    a, b = (e if e.scale < _SHIFTED[e.storage.bits] else e.replace(scale=0.75) for e in (a, b))
    operands = [argument(first, a), operand_of(draw, second, b, draw.chance(0.25))]
    return single(draw, name, operands, [argument(out, i1)], {}, 2, batched=first == second == out)
