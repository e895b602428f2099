"""Laws of elementwise operators and RESCALE (TOSA 1.0, sections 2.3 to 2.8 and 2.11.2)."""

from __future__ import annotations

from math import isnan

import numpy as np

from tflq.dialects.declare import Operator
from tflq.dialects.inference import text
from tflq.dialects.tosa.elementwise import Clamp, Mul, Negate
from tflq.dialects.tosa.movement import Rescale
from tflq.dialects.traits import Broadcasts
from tflq.tosa.laws.registry import Context, Violations, bounds, dims, law, zero_point


@law(Clamp)
def clamp(op: Clamp, _: Context) -> Violations:
    low, high, storage = op.min_val, op.max_val, op.input.type.storage
    if isnan(low) or isnan(high):
        yield "a bound is NaN"
    elif low > high:
        yield f"min_val {low} is greater than max_val {high}"
    elif storage.is_integer:
        yield from bounds("bounds", [low, high], storage.minimum, storage.maximum)


@law(Rescale)
def rescale(op: Rescale, _: Context) -> Violations:
    shape = dims(op.input)
    yield from zero_point(op, "input_zp", op.input)
    yield from zero_point(op, "output_zp", op.result)
    multiplier, shift, wide = op.multiplier, op.shift, op.scale32
    if wide and op.input.type.storage.name == "i64":
        yield "scale32 with an input of 48 bits"
    if not wide and op.rounding_mode == "DOUBLE_ROUND":
        yield "DOUBLE_ROUND without scale32"
    yield from bounds("multiplier", _ends(multiplier), 0, (1 << (31 if wide else 15)) - 1)
    yield from bounds("shift", _ends(shift), 2, 62)
    per_channel = op.per_channel
    if per_channel and not shape:
        yield "per_channel of a scalar"
        return
    channels = shape[-1] if per_channel else 1
    for name, array in (("multipliers", multiplier), ("shifts", shift)):
        if channels is not None and array.shape != (channels,):
            yield f"{array.size} {name}, where there are {channels} channels"


def _ends(numbers: np.ndarray) -> list[int]:
    """All of few numbers, the least and the greatest of many."""
    return numbers.tolist() if numbers.size <= 64 else [int(numbers.min()), int(numbers.max())]


@law(Broadcasts)
def broadcasting(op: Operator, _: Context) -> Violations:
    shapes = [dims(v) for v in op.reads]
    if len(set(map(len, shapes))) > 1:
        yield f"operands of unequal ranks: {' and '.join(map(text, shapes))}"


@law(Mul)
def mul(op: Mul, c: Context) -> Violations:
    yield from broadcasting(op, c)
    yield from bounds("shift", [op.shift], 0, 63 if op.input1.type.storage.name == "i32" else 0)


@law(Negate)
def negate(op: Negate, _: Context) -> Violations:
    yield from zero_point(op, "input1_zp", op.input1)
    yield from zero_point(op, "output_zp", op.result)
