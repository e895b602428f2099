"""SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: a reshape that splits dims in blocks, a
transpose, a reshape. Kernels of these names."""

from __future__ import annotations

from tflq.dialects.tfl.movement import BatchToSpaceND, DepthToSpace, SpaceToBatchND, SpaceToDepth
from tflq.errors import Refused
from tflq.ir.core import Value
from tflq.tosa.lowering.known import constant_of, dims_of
from tflq.tosa.lowering.registry import Tosa, lowering
from tflq.tosa.lowering.shaping import reshaped
from tflq.tosa.lowering.wide import narrow

__all__: list[str] = []


def _inner(x: Value) -> list[int]:
    """The dims after the batch, which must be known."""
    dims = dims_of(x)[1:]
    if None in dims:
        raise Refused("height, width or channels are not known, and TOSA 1.0 has no run-time shapes")
    return [d or 0 for d in dims]


@lowering(SpaceToDepth)
def space_to_depth(op: SpaceToDepth, t: Tosa) -> Value:
    x, s = narrow(op.input, t), op.block_size
    n, (h, w, c) = dims_of(x)[0], _inner(x)
    x = t.transpose(reshaped(t, x, (n, h // s, s, w // s, s, c)), (0, 1, 3, 2, 4, 5))
    return reshaped(t, x, (n, h // s, w // s, s * s * c))


@lowering(DepthToSpace)
def depth_to_space(op: DepthToSpace, t: Tosa) -> Value:
    x, s = narrow(op.input, t), op.block_size
    n, (h, w, c) = dims_of(x)[0], _inner(x)
    x = t.transpose(reshaped(t, x, (n, h, w, s, s, c // (s * s))), (0, 1, 3, 2, 4, 5))
    return reshaped(t, x, (n, h * s, w * s, c // (s * s)))


@lowering(SpaceToBatchND)
def space_to_batch(op: SpaceToBatchND, t: Tosa) -> Value:
    """Padded with zeros, then blocks to the batch."""
    x = narrow(op.input, t)
    sizes = [int(s) for s in constant_of(op.block, "block shape").reshape(-1)]
    pairs = [(int(a), int(b)) for a, b in constant_of(op.paddings, "paddings").reshape(-1, 2)]
    spatial, rank = len(sizes), len(dims_of(x))
    x = t.pad(x, [(0, 0), *pairs, *[(0, 0)] * (rank - 1 - spatial)], t.zero_point(op.input))
    n, inner = dims_of(x)[0], _inner(x)
    outer = [d // s for d, s in zip(inner, sizes, strict=False)]
    x = reshaped(t, x, (n, *(v for pair in zip(outer, sizes, strict=True) for v in pair), *inner[spatial:]))
    blocks, places = [2 + 2 * i for i in range(spatial)], [1 + 2 * i for i in range(spatial)]
    x = t.transpose(x, (*blocks, 0, *places, *range(1 + 2 * spatial, len(dims_of(x)))))
    batch = n
    for s in sizes:
        batch = None if batch is None else batch * s
    return reshaped(t, x, (batch, *outer, *inner[spatial:]))


@lowering(BatchToSpaceND)
def batch_to_space(op: BatchToSpaceND, t: Tosa) -> Value:
    """Blocks of the batch side by side, then cropped."""
    x = narrow(op.input, t)
    sizes = [int(s) for s in constant_of(op.block, "block shape").reshape(-1)]
    crops = [(int(a), int(b)) for a, b in constant_of(op.crops, "crops").reshape(-1, 2)]
    spatial, batch, inner = len(sizes), dims_of(x)[0], _inner(x)
    for s in sizes:
        batch = None if batch is None else batch // s
    x = reshaped(t, x, (*sizes, batch, *inner))
    order = [v for i in range(spatial) for v in (spatial + 1 + i, i)]
    x = t.transpose(x, (spatial, *order, *range(2 * spatial + 1, len(dims_of(x)))))
    whole = [d * s for d, s in zip(inner, sizes, strict=False)]
    x = reshaped(t, x, (batch, *whole, *inner[spatial:]))
    kept = [d - before - after for d, (before, after) in zip(whole, crops, strict=True)]
    starts = [0, *(before for before, _ in crops), *[0] * (len(inner) - spatial)]
    return t.slice(x, starts, (batch, *kept, *inner[spatial:]))
