"""Laws of data movement (TOSA 1.0, section 2.9): shapes, paddings, permutations."""

from __future__ import annotations

from math import prod

from tflq.dialects.tosa.movement import Concat, Pad, Reshape, Reverse, Slice, Tile, Transpose
from tflq.tosa.laws.generic import axis_of, without
from tflq.tosa.laws.registry import Context, Violations, bounds, dims, law, result_is, same, show

__all__: list[str] = []


@law(Concat)
def concat(op: Concat, c: Context) -> Violations:
    shapes, axis = [dims(v) for v in op.operands if v is not None], op.axis
    yield from bounds("a number of operands", [len(shapes)], 1, c.limits.list)
    if not shapes or (faults := list(axis_of(op.axis, len(shapes[0])))):
        yield from faults if shapes else ()
        return
    rest = [without(shape, axis) for shape in shapes]
    if any(len(r) != len(rest[0]) or not all(map(same, r, rest[0])) for r in rest):
        yield f"operands {' and '.join(map(show, shapes))} differ beside axis {axis}"
        return
    along = [shape[axis] for shape in shapes]
    total = None if None in along else sum(d or 0 for d in along)
    yield from result_is(op, (*rest[0][:axis], total, *rest[0][axis:]))


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
    ends = zip(shape, padding[::2], padding[1::2], strict=True)
    yield from result_is(op, tuple(None if d is None else d + before + after for d, before, after in ends))


@law(Reshape)
def reshape(op: Reshape, _: Context) -> Violations:
    shape, made = dims(op.input), dims(op.result)
    open_dims = made.count(None)
    if open_dims > 1:
        yield f"the result {show(made)} has {open_dims} dims that are not known; one can be inferred"
    elif None not in shape:
        count, known = prod(d or 0 for d in shape), prod(d for d in made if d is not None)
        if (count % max(known, 1) if open_dims else count != known) or not known:
            yield f"{show(shape)} does not have as many elements as {show(made)}"


@law(Reverse)
def reverse(op: Reverse, _: Context) -> Violations:
    yield from axis_of(op.axis, len(dims(op.input1)))
    yield from result_is(op, dims(op.input1))


@law(Slice)
def slice(op: Slice, _: Context) -> Violations:
    shape, start, size = dims(op.input), op.start, op.size
    if not len(shape) == len(start) == len(size) or not shape:
        yield f"starts {show(start)} and sizes {show(size)} of a tensor of rank {len(shape)}"
        return
    yield from bounds("a start", start, 0)
    yield from bounds("a size", [n for n in size if n is not None], 1)
    for d, first, n in zip(shape, start, size, strict=True):
        if d is not None and first + (n or 1) > d:
            yield f"from {first} on there are not {n or 1} of {d}"
    rest = zip(shape, start, size, strict=True)
    yield from result_is(op, tuple((None if d is None else d - s) if n is None else n for d, s, n in rest))


@law(Tile)
def tile(op: Tile, _: Context) -> Violations:
    shape, multiples = dims(op.input1), op.multiples
    if len(multiples) != len(shape) or not shape:
        yield f"{len(multiples)} multiples of a tensor of rank {len(shape)}"
        return
    yield from bounds("a multiple", multiples, 1)
    yield from result_is(op, tuple(None if d is None else d * m for d, m in zip(shape, multiples, strict=True)))


@law(Transpose)
def transpose(op: Transpose, _: Context) -> Violations:
    shape, perms = dims(op.input), op.perms
    if sorted(perms) != list(range(len(shape))) or not shape:
        yield f"perms {show(perms)} of a tensor of rank {len(shape)}"
    else:
        yield from result_is(op, tuple(shape[p] for p in perms))
