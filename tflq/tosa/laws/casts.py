"""Law of RESCALE (TOSA 1.0, section 2.11.2)."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.casts import Rescale
from tflq.tosa.laws.registry import Context, Violations, bounds, dims, law, result_is, zero_point

__all__: list[str] = []


@law(Rescale)
def rescale(op: Rescale, _: Context) -> Violations:
    shape = dims(op.input)
    yield from result_is(op)
    yield from zero_point(op, "input_zp", op.input)
    yield from zero_point(op, "output_zp", op.result)
    multiplier, shift = np.atleast_1d(op.multiplier), np.atleast_1d(op.shift)
    wide = op.scale32
    if wide and op.input.type.storage.name == "i64":
        yield "scale32 with an input of 48 bits"
    if not wide and op.rounding_mode == "DOUBLE_ROUND":
        yield "DOUBLE_ROUND without scale32"
    yield from bounds("multiplier", multiplier.tolist(), 0, (1 << (31 if wide else 15)) - 1)
    yield from bounds("shift", shift.tolist(), 2, 62)
    if op.per_channel and not shape:
        yield "per_channel of a scalar"
        return
    channels = shape[-1] if op.per_channel else 1
    for name, array in (("multipliers", multiplier), ("shifts", shift)):
        if channels is not None and array.shape != (channels,):
            yield f"{array.size} {name}, where there are {channels} channels"
