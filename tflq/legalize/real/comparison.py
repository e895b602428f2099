"""EQUAL and its kin of what the stored integers stand for: scales per axis, mixed storage types, and where parameters
must hold that a kernel disregards.

x s1 and y s2, x and y less their zero points, compare as x A and y B do, whose factors are small
(`numerics.fractions`): exactly, in int32.
"""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.comparison import Comparison, Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual
from tflq.legalize.real.generic.grid import centred_by, entry_of, grid_of
from tflq.legalize.reference.comparison import outcome
from tflq.legalize.rule import Answer, NotApplicable, Rewritten, RuleBuilder, rule
from tflq.legalize.scaling import kernel_name
from tflq.numerics.fractions import comparing_factors

__all__: list[str] = []

_NOTE = "no kernel computes it; the real values, compared exactly"
_REACH = 1 << 15


@rule(Equal, NotEqual, Greater, GreaterEqual, Less, LessEqual, order=2)
def compare(op: Comparison, b: RuleBuilder) -> Answer:
    """The operands times the factors."""
    operands = op.lhs, op.rhs
    rank = max(v.type.rank or 0 for v in operands)
    found = [grid_of(v, rank) for v in operands]
    reach = max(g.reach for g in found)
    if reach > _REACH:
        raise NotApplicable(f"{kernel_name(op)} on int16 with zero points leaves 32 bits")
    first, second = np.broadcast_arrays(found[0].scales, found[1].scales)
    ready = []
    for operand, grid, factor in zip(operands, found, comparing_factors(first, second, reach), strict=True):
        x = centred_by(b, operand, grid)
        ready.append(x if (factor == 1).all() else b.mul(x, entry_of(b, factor, x.type.rank or 0)))
    return Rewritten([outcome(op, b, *ready)], note=_NOTE)
