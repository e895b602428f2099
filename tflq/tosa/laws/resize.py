"""Law of RESIZE (TOSA 1.0, section 2.10.1)."""

from __future__ import annotations

from tflq.dialects.inference import text
from tflq.dialects.tosa.resize import Resize
from tflq.tosa.laws.registry import Context, Violations, bounds, dims, law, of_rank, result_is

__all__: list[str] = []

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
        if ((size - 1) * n - offset + border) % d:
            yield f"((size - 1) * {n} - {offset} + {border}) of {axis}, size {size}, is not divisible by {d}"
            return
    yield from result_is(op)
    sizes = [d for d in (*shape[1:3], *found[1:3]) if d is not None]
    yield from bounds("a height or width", sizes, None, _LARGEST_IMAGE - 1)
    taken, made = op.input.type.storage, op.result.type.storage
    if taken.is_integer and (taken == made) != (op.mode == "NEAREST_NEIGHBOR"):
        yield f"{op.mode} from {taken} to {made}, {text(shape)}"
