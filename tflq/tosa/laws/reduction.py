"""Laws of reductions and ARGMAX (TOSA 1.0, sections 2.2.1 and 2.7)."""

from __future__ import annotations

from tflq.dialects.tosa.reduction import ArgMax, Reduction
from tflq.tosa.laws.generic import axis_of
from tflq.tosa.laws.registry import Context, Violations, dims, law, result_is

__all__: list[str] = []


@law(ArgMax, Reduction)
def reduce(op: ArgMax | Reduction, _: Context) -> Violations:
    yield from list(axis_of(op.axis, len(dims(op.input)))) or result_is(op)
