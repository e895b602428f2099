"""Laws of reductions and ARGMAX (TOSA 1.0, sections 2.2.1 and 2.7)."""

from __future__ import annotations

from tflq.dialects.tosa.reduction import ArgMax, Reduction
from tflq.tosa.laws.generic import axis_of, without
from tflq.tosa.laws.registry import Context, Violations, dims, law, result_is

__all__: list[str] = []


@law(ArgMax)
def argmax(op: ArgMax, _: Context) -> Violations:
    shape = dims(op.input)
    if faults := list(axis_of(op.axis, len(shape))):
        yield from faults
    else:
        yield from result_is(op, without(shape, op.axis))


@law(Reduction)
def reduce(op: Reduction, _: Context) -> Violations:
    shape, axis = dims(op.input), op.axis
    if faults := list(axis_of(op.axis, len(shape))):
        yield from faults
    else:
        yield from result_is(op, (*shape[:axis], 1, *shape[axis + 1 :]))
