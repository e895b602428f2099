"""PAD, PADV2, MIRROR_PAD and DILATE. Kernels: pad.cc, mirror_pad.cc, dilate.cc."""

from __future__ import annotations

import numpy as np

from tflq.dialects.tfl.movement import Dilate, MirrorPad, PadV2
from tflq.dialects.tfl.movement import Pad as TflPad
from tflq.dialects.tosa.movement import Pad, Reverse
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.tosa.lowering.known import constant_of, dims_of, product
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.shaping import joined, part
from tflq.tosa.lowering.wide import narrow

__all__: list[str] = []


@lowering(Pad)
def pad_by_attributes(op: Pad, t: Tosa) -> Value:
    pairs = np.reshape(op.padding, (-1, 2)).tolist()
    return t.pad(narrow(op.input1, t), [(a, b) for a, b in pairs], op.pad_const - t.offset(op.input1))


@lowering(TflPad)
def pad(op: TflPad, t: Tosa) -> Value:
    """With zeros."""
    x = op.input
    return t.pad(narrow(x, t), _pairs(op), t.zero_point(x))


@lowering(PadV2)
def padv2(op: PadV2, t: Tosa) -> Value:
    """With a value; one that is computed is joined to each side, as often as it takes."""
    x, fill = narrow(op.input, t), narrow(op.value, t)
    if fill.is_constant:
        return t.pad(x, _pairs(op), fill.array.reshape(()).item())
    fill = t.reshape(fill, (1,) * len(dims_of(x)))
    for axis, sizes in enumerate(_pairs(op)):
        if any(sizes):
            shape = dims_of(x)
            if None in shape:
                raise Refused("a computed pad value beside a dim that is not known has no form in TOSA")
            before, after = (
                t.spread(fill, [n if i == axis else d or 0 for i, d in enumerate(shape)]) if n else None for n in sizes
            )
            x = joined(t, [v for v in (before, x, after) if v is not None], axis)
    return x


@lowering(MirrorPad)
def mirror_pad(op: MirrorPad, t: Tosa) -> Value:
    """Each end of each dim, reversed; REFLECT leaves out the outermost element."""
    x = narrow(op.input, t)
    edge = 1 if op.mode == "REFLECT" else 0
    for axis, (before, after) in enumerate(_pairs(op)):
        if not before and not after:
            continue
        size = dims_of(x)[axis]
        if size is None:
            raise Refused(f"dim {axis}, which is padded, is not known")
        left = [t.emit(Reverse, [part(t, x, axis, edge, before)], axis=axis)] if before else []
        right = [t.emit(Reverse, [part(t, x, axis, size - edge - after, after)], axis=axis)] if after else []
        x = joined(t, [*left, x, *right], axis)
    return x


@lowering(Dilate)
def dilate(op: Dilate, t: Tosa) -> Value:
    """Along each dim, a value between neighbours: the rows of a reshaped tensor end in it."""
    x, fill = narrow(op.input, t), narrow(op.value, t)
    if not fill.is_constant:
        raise Refused("a value between the elements that is computed has no form in TOSA")
    for axis, step in enumerate(constant_of(op.dilations, "dilations").reshape(-1).tolist()):
        shape = dims_of(x)
        size = shape[axis]
        if step == 1:
            continue
        if size is None or shape.count(None) > 1:
            raise Refused("DILATE of more dims than one that are not known, or of such a dim, has no form in TOSA")
        before, after = product(shape[:axis]), product(shape[axis + 1 :])
        apart = t.pad(
            t.reshape(x, (before, size, 1, after)), [(0, 0), (0, 0), (0, step - 1), (0, 0)], fill.array.item()
        )
        whole = t.reshape(apart, (before, size * step, after))
        size = size * step - step + 1
        x = t.reshape(t.slice(whole, (0, 0, 0), (before, size, after)), (*shape[:axis], size, *shape[axis + 1 :]))
    return x


def _pairs(op: TflPad | PadV2 | MirrorPad) -> list[tuple[int, int]]:
    """(before, after) of each dim."""
    pairs = constant_of(op.paddings, "paddings").reshape(-1, 2).tolist()
    return [(int(before), int(after)) for before, after in pairs]
