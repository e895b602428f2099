"""The casts of `quant`, as the evaluator has them: a qcast that says no rounding rounds the quotient half to even.

Integers that `quant.scast` gives and takes are signless: those of an unsigned storage type are the same bits.
"""

from __future__ import annotations

from tflq.dialects.quant.casts import Dcast, Qcast, Scast
from tflq.dialects.tfl.bits import Bitcast
from tflq.errors import Refused
from tflq.legalize.rule import Answer, RuleBuilder, rule

__all__ = ["dcast", "qcast", "scast"]


@rule(Dcast)
def dcast(op: Dcast, b: RuleBuilder) -> Answer:
    """(stored - zero_point) * scale"""
    return b.dcast(b.typed(op.input))


@rule(Qcast)
def qcast(op: Qcast, b: RuleBuilder) -> Answer:
    """clamp(round(x / scale) + zero_point)"""
    if op.sum_rounding is not None:
        what = "quant.qcast that rounds the sum with the zero point has no form of its own"
        raise Refused(what, "write it out first: tflq opt -p lower-quant-ops")
    made = b.qcast(b.value(op.input), op.result.type, op.rounding or "half_even")
    return b.scast(made, made.type.stripped())


@rule(Scast)
def scast(op: Scast, b: RuleBuilder) -> Answer:
    """The stored integers."""
    x, storage = b.value(op.input), op.result.type.storage
    if x.type.storage == storage:
        return x
    return b.emit(Bitcast, [x], x.type.with_element(storage))
