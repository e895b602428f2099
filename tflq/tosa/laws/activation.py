"""Law of CLAMP (TOSA 1.0, section 2.3.1)."""

from __future__ import annotations

from math import isnan

from tflq.dialects.tosa.activation import Clamp
from tflq.tosa.laws.registry import Context, Violations, bounds, law, result_is

__all__: list[str] = []


@law(Clamp)
def clamp(op: Clamp, _: Context) -> Violations:
    yield from result_is(op)
    low, high, storage = op.min_val, op.max_val, op.input.type.storage
    if isnan(low) or isnan(high):
        yield "a bound is NaN"
    elif low > high:
        yield f"min_val {low} is greater than max_val {high}"
    elif storage.is_integer:
        yield from bounds("bounds", [low, high], storage.minimum, storage.maximum)
