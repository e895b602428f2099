"""Evaluators of ops that move, repeat, pad and pick elements, of shapes, and of TOSA's control flow and variables.

Options and semantics are TOSA's and TFLite's: the kernels of these names in kernels/.
"""

from __future__ import annotations

import numpy as np

from tflq.analysis.evaluate.registry import Run, evaluator, of_arrays, running
from tflq.dialects.tfl import indexing as tfl_gathering
from tflq.dialects.tfl import movement as tfl
from tflq.dialects.tfl.shape import BroadcastArgs, Fill, Range, Rank, Shape
from tflq.dialects.tosa import movement as tosa
from tflq.dialects.tosa.movement import CondIf, Gather, Scatter, Table, Variable, VariableRead, VariableWrite, WhileLoop

evaluator(tosa.Identity)(of_arrays(np.asarray))


@evaluator(tosa.Reshape)
def _tosa_reshape(op: tosa.Reshape, x: np.ndarray) -> np.ndarray:
    return x.reshape([-1 if d is None else d for d in op.result.type.dims])


@evaluator(tosa.Transpose)
def _tosa_transpose(op: tosa.Transpose, x: np.ndarray) -> np.ndarray:
    return x.transpose(op.perms)


@evaluator(tosa.Slice)
def _tosa_slice(op: tosa.Slice, x: np.ndarray) -> np.ndarray:
    bounds = zip(op.start, op.size, strict=True)
    return x[tuple(slice(start, None if size is None else start + size) for start, size in bounds)]


@evaluator(tosa.Concat)
def _tosa_concat(op: tosa.Concat, *xs: np.ndarray) -> np.ndarray:
    return np.concatenate(xs, axis=op.axis)


@evaluator(tosa.Pad)
def _tosa_pad(op: tosa.Pad, x: np.ndarray) -> np.ndarray:
    amounts = np.reshape(op.padding, (-1, 2))
    if not amounts.size:
        return x
    return np.pad(x, amounts, constant_values=np.asarray(op.pad_const).astype(x.dtype))


@evaluator(tosa.Tile)
def _tosa_tile(op: tosa.Tile, x: np.ndarray) -> np.ndarray:
    return np.tile(x, op.multiples)


@evaluator(tosa.Reverse)
def _tosa_reverse(op: tosa.Reverse, x: np.ndarray) -> np.ndarray:
    return np.flip(x, op.axis)


@evaluator(tfl.Reshape)
def _reshape(op: tfl.Reshape, x: np.ndarray, shape: np.ndarray | None = None) -> np.ndarray:
    return x.reshape(op.option if shape is None or shape.dtype != np.int32 or shape.ndim != 1 else shape)


@evaluator(tfl.Squeeze)
def _squeeze(op: tfl.Squeeze, x: np.ndarray) -> np.ndarray:
    dims = () if op.squeeze_dims is None else tuple(int(d) for d in op.squeeze_dims)
    return x.squeeze(dims or None)


@evaluator(tfl.ExpandDims)
def _expand_dims(op: tfl.ExpandDims, x: np.ndarray, axis: np.ndarray) -> np.ndarray:
    return np.expand_dims(x, int(axis.reshape(())))


@evaluator(tfl.Transpose)
def _transpose(op: tfl.Transpose, x: np.ndarray, perms: np.ndarray) -> np.ndarray:
    return x.transpose(perms.reshape(-1))


@evaluator(tfl.Pad, tfl.PadV2)
def _pad(op: tfl.Pad | tfl.PadV2, x: np.ndarray, paddings: np.ndarray, fill: np.ndarray | None = None) -> np.ndarray:
    return np.pad(x, paddings, constant_values=0 if fill is None else fill.reshape(()))


@evaluator(tfl.MirrorPad)
def _mirror_pad(op: tfl.MirrorPad, x: np.ndarray, paddings: np.ndarray) -> np.ndarray:
    return np.pad(x, paddings, "reflect" if op.mode == "REFLECT" else "symmetric")


@evaluator(tfl.Concatenation)
def _concatenation(op: tfl.Concatenation, *xs: np.ndarray) -> np.ndarray:
    return np.concatenate(xs, op.axis)


@evaluator(tfl.Split)
def _split(op: tfl.Split, axis: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    return np.split(x, len(op.results), int(axis.reshape(())))


@evaluator(tfl.SplitV)
def _split_v(op: tfl.SplitV, x: np.ndarray, sizes: np.ndarray, axis: np.ndarray) -> list[np.ndarray]:
    along = int(axis.reshape(()))
    rest = x.shape[along] - int(sizes[sizes >= 0].sum())
    return np.split(x, np.cumsum(np.where(sizes < 0, rest, sizes))[:-1], along)


@evaluator(tfl.Slice)
def _slice(op: tfl.Slice, x: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
    pairs = zip(begin.reshape(-1).tolist(), size.reshape(-1).tolist(), strict=True)
    return x[tuple(slice(b, None if s < 0 else b + s) for b, s in pairs)]


@evaluator(tfl.StridedSlice)
def _strided_slice(
    op: tfl.StridedSlice, x: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray
) -> np.ndarray:
    """An ellipsis stands for one dim at least; what then exceeds the rank is ignored (BuildStridedSliceParams)."""
    added = (op.new_axis_mask & ~op.ellipsis_mask & ((1 << begin.size) - 1)).bit_count()
    index: list[slice | int | None] = []
    columns = (numbers.reshape(-1).tolist() for numbers in (begin, end, strides))
    for i, (first, last, stride) in enumerate(zip(*columns, strict=True)):
        bit = 1 << i
        if op.ellipsis_mask & bit:
            index.extend([slice(None)] * max(1, x.ndim + added - begin.size + 1))
        elif op.new_axis_mask & bit:
            index.append(None)
        elif op.shrink_axis_mask & bit:
            index.append(0 if op.begin_mask & bit else first)
        else:
            stop = first + last if op.offset else last
            index.append(slice(None if op.begin_mask & bit else first, None if op.end_mask & bit else stop, stride))
    return x[tuple(index[: x.ndim + added])]


@evaluator(tfl.Pack)
def _pack(op: tfl.Pack, *xs: np.ndarray) -> np.ndarray:
    return np.stack(xs, op.axis)


@evaluator(tfl.Unpack)
def _unpack(op: tfl.Unpack, x: np.ndarray) -> list[np.ndarray]:
    return list(np.moveaxis(x, op.axis, 0))


@evaluator(tfl.Tile)
def _tile(op: tfl.Tile, x: np.ndarray, multiples: np.ndarray) -> np.ndarray:
    return np.tile(x, multiples.reshape(-1).tolist())


@evaluator(tfl.BroadcastTo)
def _broadcast_to(op: tfl.BroadcastTo, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x, shape.reshape(-1).tolist())


@evaluator(tfl.ReverseV2)
def _reverse(op: tfl.ReverseV2, x: np.ndarray, axes: np.ndarray) -> np.ndarray:
    return np.flip(x, tuple(axes.reshape(-1).tolist()))


@evaluator(tfl.ReverseSequence)
def _reverse_sequence(op: tfl.ReverseSequence, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The first elements of each batch along the sequence, in reverse."""
    moved = np.moveaxis(x, (op.batch_dim, op.seq_dim), (0, 1))
    places, ends = np.arange(moved.shape[1])[None], lengths.reshape(-1, 1)
    order = np.where(places < ends, ends - 1 - places, places)
    turned = moved[np.arange(len(moved))[:, None], order]
    return np.moveaxis(turned, (0, 1), (op.batch_dim, op.seq_dim))


@evaluator(tfl.SpaceToDepth)
def _space_to_depth(op: tfl.SpaceToDepth, x: np.ndarray) -> np.ndarray:
    n, h, w, c = x.shape
    s = op.block_size
    return x.reshape(n, h // s, s, w // s, s, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h // s, w // s, s * s * c)


@evaluator(tfl.DepthToSpace)
def _depth_to_space(op: tfl.DepthToSpace, x: np.ndarray) -> np.ndarray:
    n, h, w, c = x.shape
    s = op.block_size
    return x.reshape(n, h, w, s, s, c // (s * s)).transpose(0, 1, 3, 2, 4, 5).reshape(n, h * s, w * s, c // (s * s))


@evaluator(tfl.SpaceToBatchND)
def _space_to_batch(op: tfl.SpaceToBatchND, x: np.ndarray, block: np.ndarray, paddings: np.ndarray) -> np.ndarray:
    spatial = block.size
    x = np.pad(x, [(0, 0), *paddings.reshape(-1, 2).tolist(), *[(0, 0)] * (x.ndim - 1 - spatial)])
    blocks = [(d // s, s) for d, s in zip(x.shape[1 : 1 + spatial], block.reshape(-1).tolist(), strict=True)]
    split = x.reshape(x.shape[0], *(v for pair in blocks for v in pair), *x.shape[1 + spatial :])
    inner, outer = [2 + 2 * i for i in range(spatial)], [1 + 2 * i for i in range(spatial)]
    moved = split.transpose(*inner, 0, *outer, *range(1 + 2 * spatial, split.ndim))
    return moved.reshape(-1, *(d for d, _ in blocks), *x.shape[1 + spatial :])


@evaluator(tfl.BatchToSpaceND)
def _batch_to_space(op: tfl.BatchToSpaceND, x: np.ndarray, block: np.ndarray, crops: np.ndarray) -> np.ndarray:
    spatial, sizes = block.size, block.reshape(-1).tolist()
    batch = x.shape[0] // int(np.prod(sizes))
    split = x.reshape(*sizes, batch, *x.shape[1:])
    order = [v for i in range(spatial) for v in (spatial + 1 + i, i)]
    moved = split.transpose(spatial, *order, *range(2 * spatial + 1, split.ndim))
    whole = moved.reshape(batch, *(d * s for d, s in zip(x.shape[1:], sizes, strict=False)), *x.shape[1 + spatial :])
    ends = (slice(int(a), n - int(b)) for (a, b), n in zip(crops.reshape(-1, 2), whole.shape[1:], strict=False))
    return whole[(slice(None), *ends)]


# Picking elements by index.
#
# TOSA's GATHER and SCATTER are of rows, per batch: values [N, K, C], indices [N, W], rows [N, W, C]. TFLite's:
# kernels/gather.cc, gather_nd.cc.


@evaluator(Table)
def _table(op: Table, x: np.ndarray, table: np.ndarray) -> np.ndarray:
    index = x.astype(np.int32) - op.input.type.storage.minimum
    if op.input.type.storage.bits == 8:
        return table[index]
    base, wide = index >> 7, table.astype(np.int32)
    return (wide[base] << 7) + (wide[base + 1] - wide[base]) * (index & 0x7F)


@evaluator(Gather)
def _gather(op: Gather, values: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return values[np.arange(len(values))[:, None], indices]


@evaluator(Scatter)
def _scatter(op: Scatter, values: np.ndarray, indices: np.ndarray, rows: np.ndarray) -> np.ndarray:
    out = values.copy()
    out[np.arange(len(out))[:, None], indices] = rows
    return out


@evaluator(tfl_gathering.Gather)
def _gather_axis(op: tfl_gathering.Gather, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """x[batch, before axis, indices[batch, ...], after axis]."""
    axis, batch = op.axis % x.ndim, op.batch_dims
    if batch < 0:
        batch += indices.ndim
    if not batch:
        return x.take(indices, axis)
    rows = x.reshape(-1, *x.shape[batch:])
    picks = indices.reshape(len(rows), *indices.shape[batch:])
    result = np.stack([row.take(pick, axis - batch) for row, pick in zip(rows, picks, strict=True)])
    return result.reshape(*x.shape[:batch], *result.shape[1:])


@evaluator(tfl_gathering.GatherND)
def _gather_nd(op: tfl_gathering.GatherND, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return x[tuple(np.moveaxis(indices, -1, 0))]


# Shapes, ranges, and tensors of one value.

evaluator(Shape)(of_arrays(np.shape))
evaluator(Rank)(of_arrays(np.ndim))


@evaluator(Fill)
def _fill(op: Fill, dims: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.full(dims.reshape(-1).tolist(), value.reshape(()))


@evaluator(Range)
def _range(op: Range, start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
    return np.arange(start.item(), limit.item(), delta.item()).astype(start.dtype)


@evaluator(BroadcastArgs)
def _broadcast_args(op: BroadcastArgs, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(np.broadcast_shapes(tuple(a.reshape(-1).tolist()), tuple(b.reshape(-1).tolist())))


# TOSA's control flow: COND_IF and WHILE_LOOP run functions of the module on all of their inputs.


@running(CondIf)
def _if(op: CondIf, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return run.call(op.then_graph if arrays[0].all() else op.else_graph, arrays[1:])


@running(WhileLoop)
def _while(op: WhileLoop, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    while run.call(op.cond_graph, arrays)[0].all():
        arrays = run.call(op.body_graph, arrays)
    return arrays


# TOSA's variables. Each has its initial value until it is written; the functions of a run share them.


@running(Variable)
def _variable(op: Variable, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    run.variables.setdefault(op.variable, arrays[0])
    return []


@running(VariableRead)
def _read(op: VariableRead, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    return [run.variables[op.variable]]


@running(VariableWrite)
def _write(op: VariableWrite, arrays: list[np.ndarray], run: Run) -> list[np.ndarray]:
    run.variables[op.variable] = arrays[0]
    return []
