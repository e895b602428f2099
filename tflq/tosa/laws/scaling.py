"""Laws of RESCALE and RESIZE (TOSA 1.0, sections 2.11.2 and 2.10.1)."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tosa.casts import Rescale
from tflq.dialects.tosa.resize import Resize
from tflq.tosa.laws.registry import Context, Violations, bounds, dims, law, of_rank, result_is, show, zero_point

__all__: list[str] = []


@law(Rescale)
def rescale(op: Rescale, _: Context) -> Violations:
    shape = dims(op.input)
    yield from result_is(op, shape)
    yield from zero_point(op, "input_zp", op.input)
    yield from zero_point(op, "output_zp", op.result)
    multiplier, shift = np.atleast_1d(op.multiplier), np.atleast_1d(op.shift)
    wide = op.scale32
    if wide and op.input.type.storage.name == "i64":
        yield "scale32 with an input of 48 bits"
    if not wide and op.rounding_mode == "DOUBLE_ROUND":
        yield "DOUBLE_ROUND without scale32"
    yield from bounds("multiplier", [int(multiplier.min()), int(multiplier.max())], 0, (1 << (31 if wide else 15)) - 1)
    yield from bounds("shift", [int(shift.min()), int(shift.max())], 2, 62)
    if op.per_channel and not shape:
        yield "per_channel of a scalar"
        return
    channels = shape[-1] if op.per_channel else 1
    for name, array in (("multipliers", multiplier), ("shifts", shift)):
        if channels is not None and array.shape != (channels,):
            yield f"{array.size} {name}, where there are {channels} channels"


_LARGEST_IMAGE = 16384
_LARGEST_NUMERATOR = 1 << 11


@law(Resize)
def resize(op: Resize, c: Context) -> Violations:
    shape, found = dims(op.input), dims(op.result)
    if faults := list(of_rank(op, 4)):
        yield from faults
        return
    numerators, denominators = op.scale[::2], op.scale[1::2]
    yield from bounds("a scale", op.scale, 1)
    yield from bounds("a scale's numerator", numerators, None, _LARGEST_NUMERATOR)
    out: list[int | None] = [shape[0], None, None, shape[3]]
    for i, axis in enumerate("yx"):
        n, d = numerators[i], denominators[i]
        offset, border = op.offset[i], op.border[i]
        if n < 1 or d < 1:
            return
        if d >= 16 * n:
            yield f"the scale {n}/{d} of {axis} is not greater than 1/16"
        if n // d > c.limits.scale:
            yield f"the scale {n}/{d} of {axis} is greater than the level's {c.limits.scale}"
        yield from bounds(f"an offset of {axis}", [offset], -n, 16 * n - 1)
        yield from bounds(f"a border of {axis}", [border], -16 * n, n - 1)
        size = shape[1 + i]
        if size is None:
            continue
        whole, rest = divmod((size - 1) * n - offset + border, d)
        if rest:
            yield f"((size - 1) * {n} - {offset} + {border}) of {axis}, size {size}, is not divisible by {d}"
            return
        out[1 + i] = whole + 1
    yield from result_is(op, tuple(out))
    sizes = [d for d in (*shape[1:3], *found[1:3]) if d is not None]
    yield from bounds("a height or width", sizes, None, _LARGEST_IMAGE - 1)
    taken, made = op.input.type.storage, op.result.type.storage
    if taken.is_integer and (taken == made) != (op.mode == "NEAREST_NEIGHBOR"):
        yield f"{op.mode} from {taken} to {made}, {show(shape)}"
