"""Laws of data movement (TOSA 1.0, section 2.9): bounds, axes, permutations."""

from __future__ import annotations

from tflq.dialects.inference import text
from tflq.dialects.tosa.movement import Concat, Pad, Reshape, Reverse, Slice, Tile, Transpose
from tflq.tosa.laws.generic import axis_of
from tflq.tosa.laws.registry import Context, Violations, bounds, dims, law, result_is

__all__: list[str] = []


@law(Concat)
def concat(op: Concat, c: Context) -> Violations:
    shapes = [dims(v) for v in op.operands if v is not None]
    yield from bounds("a number of operands", [len(shapes)], 1, c.limits.list)
    if shapes:
        yield from list(axis_of(op.axis, len(shapes[0]))) or result_is(op)


@law(Pad)
def pad(op: Pad, _: Context) -> Violations:
    shape, padding = dims(op.input1), op.padding
    storage = op.input1.type.storage
    if len(padding) != 2 * len(shape) or not shape:
        yield f"{len(padding)} paddings of a tensor of rank {len(shape)}"
        return
    yield from bounds("a padding", padding, 0)
    if storage.is_integer:
        yield from bounds("pad_const", [op.pad_const], storage.minimum, storage.maximum)
    yield from result_is(op)


@law(Reshape)
def reshape(op: Reshape, _: Context) -> Violations:
    open_dims = dims(op.result).count(None)
    if open_dims > 1:
        yield f"the result {text(dims(op.result))} has {open_dims} dims that are not known; one can be inferred"
    else:
        yield from result_is(op)


@law(Reverse)
def reverse(op: Reverse, _: Context) -> Violations:
    yield from list(axis_of(op.axis, len(dims(op.input1)))) or result_is(op)


@law(Slice)
def slice(op: Slice, _: Context) -> Violations:
    shape, start, size = dims(op.input), op.start, op.size
    if not len(shape) == len(start) == len(size) or not shape:
        yield f"starts {text(start)} and sizes {text(size)} of a tensor of rank {len(shape)}"
        return
    yield from bounds("a start", start, 0)
    yield from bounds("a size", [n for n in size if n is not None], 1)
    for d, first, n in zip(shape, start, size, strict=True):
        if d is not None and first + (n or 1) > d:
            yield f"from {first} on there are not {n or 1} of {d}"
    yield from result_is(op)


@law(Tile)
def tile(op: Tile, _: Context) -> Violations:
    shape, multiples = dims(op.input1), op.multiples
    if len(multiples) != len(shape) or not shape:
        yield f"{len(multiples)} multiples of a tensor of rank {len(shape)}"
        return
    yield from bounds("a multiple", multiples, 1)
    yield from result_is(op)


@law(Transpose)
def transpose(op: Transpose, _: Context) -> Violations:
    shape, perms = dims(op.input), op.perms
    if sorted(perms) != list(range(len(shape))) or not shape:
        yield f"perms {text(perms)} of a tensor of rank {len(shape)}"
    else:
        yield from result_is(op)
