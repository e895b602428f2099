"""Laws of elementwise operators (TOSA 1.0, sections 2.3 to 2.8): equal ranks, broadcasting; axes."""

from __future__ import annotations

from tflq.dialects.declare import Operator
from tflq.dialects.inference import text
from tflq.dialects.traits.types import Broadcasts, SameShape
from tflq.tosa.laws.registry import Context, Violations, dims, law, result_is

__all__ = ["axis_of", "broadcasting"]


@law(SameShape)
def same_shape(op: Operator, _: Context) -> Violations:
    yield from result_is(op)


@law(Broadcasts)
def broadcasting(op: Operator, _: Context) -> Violations:
    shapes = [dims(v) for v in op.operands if v is not None]
    if len(set(map(len, shapes))) > 1:
        yield f"operands of unequal ranks: {' and '.join(map(text, shapes))}"
    else:
        yield from result_is(op)


def axis_of(axis: int, rank: int) -> Violations:
    """An axis among the dims."""
    if not 0 <= axis < rank:
        yield f"axis {axis} of a tensor of rank {rank}"
