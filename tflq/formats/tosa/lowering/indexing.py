"""Elements chosen or placed by index: diagonals, GATHER and its kin, SCATTER_ND, DYNAMIC_UPDATE_SLICE, tables.

TOSA's GATHER takes values [N, K, C] and int32 indices [N, W] and gives [N, W, C]. The kernels fail where an index is
out of bounds, so there is nothing to reproduce there.

SCATTER_ND adds updates to zeros, in order (internal/reference/reference_ops.h, ScatterNd; sums wrap). TOSA's SCATTER
must not write an element twice. With known indices each row of the result is gathered from the updates, or from a row
of zeros, as often as the most frequent index occurs, and summed; else each row sums the updates that hit it.
DYNAMIC_UPDATE_SLICE writes one block, in which every element has its own place (the start is clamped).

TABLE is of int8 to int8, and of int16 in steps of 128, interpolated as (base << 7) + (next - base) * (x & 127), where
next - base must fit int16; the other tables are GATHERs. An 8-bit TABLE holds the entry of the least value first, for
uint8 less 128 as for uint8.

Kernels: matrix_diag.cc, matrix_set_diag.cc, gather.cc, internal/reference/gather.h, gather_nd.cc, embedding_lookup.cc,
one_hot.cc, scatter_nd.cc, dynamic_update_slice.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tflq.analysis.hybrid import table_as_read
from tflq.base import sized
from tflq.base.errors import Refused
from tflq.dialects.inference import product
from tflq.dialects.quant import Table2D, Table16Bit
from tflq.dialects.tfl.indexing import (
    DynamicUpdateSlice,
    EmbeddingLookup,
    GatherND,
    MatrixDiag,
    MatrixSetDiag,
    OneHot,
    ScatterND,
)
from tflq.dialects.tfl.indexing import Gather as TflGather
from tflq.dialects.tosa.elementwise import LogicalOr
from tflq.dialects.tosa.movement import Gather, Scatter, Table
from tflq.formats.tosa.lowering.context import (
    Tosa,
    constant_of,
    dims_of,
    in_int32,
    joined,
    known_array,
    lowering,
    narrow,
    numbers_of,
    part,
    reshaped,
)
from tflq.formats.tosa.lowering.floats import need_float, real
from tflq.formats.tosa.lowering.rescale import emit_rescale
from tflq.ir.ops import Value, constant
from tflq.ir.types import ScalarType, i1, i8, i16, i32
from tflq.numerics.convolution import scattered_in_turn


@lowering(MatrixDiag)
def matrix_diag(op: MatrixDiag, t: Tosa) -> Value:
    """The last dim on a diagonal, stored zeros elsewhere: SELECT by a constant mask."""
    x = narrow(op.input, t)
    shape = dims_of(x)
    if not shape or shape[-1] is None:
        raise Refused("its operand's last dim is not known")
    zero = t.constant(np.asarray(-t.offset(op.input)), x.type.storage)
    return t.select(t.constant(sized.eye(shape[-1], dtype=bool), i1), reshaped(t, x, (*shape, 1)), zero)


@lowering(MatrixSetDiag)
def matrix_set_diag(op: MatrixSetDiag, t: Tosa) -> Value:
    """The operand with another diagonal."""
    x, diagonal = narrow(op.input, t), narrow(op.diagonal, t)
    (*_, rows, columns), (*outer, _) = dims_of(x), dims_of(diagonal)
    if rows is None or columns is None:
        raise Refused("its operand's last two dims are not known")
    place = (*outer, rows, 1) if rows <= columns else (*outer, 1, columns)
    return t.select(t.constant(sized.eye(rows, columns, dtype=bool), i1), reshaped(t, diagonal, place), x)


# GATHER, GATHER_ND, EMBEDDING_LOOKUP and ONE_HOT.


def as_index(t: Tosa, operand: Value) -> Value:
    """An operand of indices as int32."""
    array = known_array(operand)
    if array is not None:
        info = np.iinfo(np.int32)
        if array.size and (array.min() < info.min or array.max() > info.max):
            raise Refused(f"an index of '{operand.name}' does not fit int32")
        return t.constant(array, i32)
    x = t.value(operand)
    storage = x.type.storage
    if storage.bits > 32:
        raise Refused(f"indices '{operand.name}' are computed in 64 bits, and TOSA's are of 32")
    x = t.cast(x, i32)
    offset = t.offset(operand)
    return t.add(x, t.constant(np.full((1,) * len(dims_of(x)), offset))) if offset else x


def gather_values(t: Tosa, values: Value, indices: Value) -> Value:
    """GATHER; of booleans, as int8."""
    if values.type.storage == i1:
        return t.cast(t.gather(t.cast(values, i8), indices), i1)
    return t.gather(values, indices)


@lowering(Gather)
def gather_by_operands(op: Gather, t: Tosa) -> Value:
    return gather_values(t, narrow(op.values, t), narrow(op.indices, t))


@lowering(TflGather)
def gather(op: TflGather, t: Tosa) -> Value:
    """x[batch, before axis, indices[batch, ...], after axis]."""
    x, where = op.input, op.indices
    rank = len(dims_of(x))
    axis, batch = op.axis % rank, op.batch_dims
    batch += len(dims_of(where)) if batch < 0 else 0
    indices = as_index(t, where)
    if indices.is_constant:
        _check(indices.array, dims_of(x)[axis], where.name)
        if (run := _consecutive(indices.array, batch)) is not None:
            shape = dims_of(x)
            return reshaped(
                t, part(t, narrow(x, t), axis, *run), (*shape[:axis], *dims_of(where)[batch:], *shape[axis + 1 :])
            )
    return gathered(t, narrow(x, t), indices, axis, batch)


def _check(indices: np.ndarray, size: int | None, name: str) -> None:
    """Refused if a constant index is out of bounds."""
    if indices.size and (indices.min() < 0 or (size is not None and indices.max() >= size)):
        raise Refused(f"an index of '{name}' is out of bounds")


def _consecutive(indices: np.ndarray, batch: int) -> tuple[int, int] | None:
    """(first, count) if the indices count up by one, in every batch alike."""
    if not indices.size:
        return None
    rows = indices.reshape(math.prod(indices.shape[:batch]), -1)
    if (rows != rows[0, 0] + np.arange(rows.shape[1])).any():
        return None
    return int(rows[0, 0]), rows.shape[1]


def gathered(t: Tosa, x: Value, indices: Value, axis: int, batch: int) -> Value:
    """GATHER along an axis: the batch is N, the axis K, and all other dims are C."""
    shape, where = dims_of(x), dims_of(indices)
    order = [*range(batch), axis, *(i for i in range(batch, len(shape)) if i != axis)]
    rest = [shape[i] for i in order[batch + 1 :]]
    if any(shape[i] != 1 for i in range(batch, axis)):
        x = t.transpose(x, order)
    n, w = product(shape[:batch]), product(where[batch:])
    result = gather_values(t, reshaped(t, x, (n, shape[axis], product(rest))), reshaped(t, indices, (n, w)))
    result = reshaped(t, result, (*shape[:batch], *where[batch:], *rest))
    extra = len(where) - batch
    before = axis - batch
    if any(d != 1 for d in rest[:before]):
        places = range(batch + extra, batch + extra + before)
        result = t.transpose(
            result,
            (
                *range(batch),
                *places,
                *range(batch, batch + extra),
                *range(batch + extra + before, len(dims_of(result))),
            ),
        )
    return reshaped(t, result, (*shape[:axis], *where[batch:], *shape[axis + 1 :]))


@lowering(GatherND)
def gather_nd(op: GatherND, t: Tosa) -> Value:
    """x[indices[..., 0], indices[..., 1], ...]: one index into the leading dims, taken as one."""
    x, where = op.input, op.indices
    shape, places = dims_of(x), dims_of(where)
    depth = places[-1]
    if depth is None or None in shape[:depth]:
        raise Refused("a dim that is indexed is not known, and TOSA 1.0 has no run-time shapes")
    leading = [d or 0 for d in shape[:depth]]
    indices = as_index(t, where)
    if indices.is_constant:
        for i, size in enumerate(leading):
            _check(indices.array[..., i], size, where.name)
    flat = reshaped(t, flat_index(t, indices, leading), (1, product(places[:-1])))
    values = reshaped(t, narrow(x, t), (1, math.prod(leading), product(shape[depth:])))
    return reshaped(t, gather_values(t, values, flat), (*places[:-1], *shape[depth:]))


def flat_index(t: Tosa, indices: Value, leading: Sequence[int]) -> Value:
    """The position in row-major order of index tuples in the last dim, which becomes 1."""
    strides = _strides(leading)
    if indices.is_constant:
        return t.constant((indices.array.astype(np.int64) * strides).sum(-1, keepdims=True))
    shape = dims_of(indices)
    if len(leading) == 0:
        return t.constant(sized.zeros([d or 0 for d in (*shape[:-1], 1)]))
    scaled = t.mul(indices, t.constant(np.reshape(strides, (1,) * (len(shape) - 1) + (-1,))))
    return t.reduce("sum", scaled, len(shape) - 1)


def _strides(dims: Sequence[int]) -> list[int]:
    return [math.prod(dims[i + 1 :]) for i in range(len(dims))]


@lowering(EmbeddingLookup)
def embedding_lookup(op: EmbeddingLookup, t: Tosa) -> Value:
    """The rows of a table; of a quantized one, as floats."""
    ids, table = op.ids, op.values
    indices = as_index(t, ids)
    if indices.is_constant:
        _check(indices.array, dims_of(table)[0], ids.name)
    hybrid = table.type.quantized and table.is_constant
    rows = constant(table_as_read(table)) if hybrid else real(t, table) if table.type.quantized else narrow(table, t)
    return gathered(t, rows, indices, 0, 0)


@lowering(OneHot)
def one_hot(op: OneHot, t: Tosa) -> Value:
    """on where the new axis counts to the index, else off."""
    where = op.indices
    indices = as_index(t, where)
    depth = numbers_of(op.depth, "depth")[0]
    on, off = narrow(op.on, t), narrow(op.off, t)
    shape = dims_of(indices)
    axis = len(shape) if op.axis == -1 else op.axis
    ones = (1,) * (len(shape) + 1)
    count = t.constant(sized.arange(depth).reshape([depth if i == axis else 1 for i in range(len(ones))]))
    hit = t.equal(reshaped(t, indices, (*shape[:axis], 1, *shape[axis:])), count)
    return t.select(hit, reshaped(t, on, ones), reshaped(t, off, ones))


# SCATTER_ND and DYNAMIC_UPDATE_SLICE.


@lowering(ScatterND)
def scatter_nd(op: ScatterND, t: Tosa) -> Value:
    """Row r: the sum of the updates whose index is r."""
    if t.offset(op.updates):
        raise Refused("SCATTER_ND of uint8 has no form in TOSA yet")
    shape = numbers_of(op.shape, "shape")
    if known_array(op.indices) is None:
        return _summed_where_hit(op, t, shape)
    indices = constant_of(op.indices, "indices")
    depth = indices.shape[-1]
    leading, inner = shape[:depth], math.prod(shape[depth:])
    if (indices < 0).any() or (indices >= leading).any():
        raise Refused("an index of SCATTER_ND is out of bounds")
    if not indices.size:
        raise Refused("SCATTER_ND without updates has no form in TOSA")
    targets = (indices.reshape(-1, depth).astype(np.int64) * _strides(leading)).sum(-1)
    updates = reshaped(t, narrow(op.updates, t), (1, targets.size, inner))
    updates = t.pad(updates, [(0, 0), (0, 1), (0, 0)])
    storage = updates.type.storage
    total: Value | None = None
    sized.need_few(math.prod(leading))
    rounds = scattered_in_turn(targets, math.prod(leading))
    if len(rounds) > 1:
        in_int32(op, t)
    for sources in rounds:
        rows = gather_values(t, updates, t.constant(sources[None]))
        total = rows if total is None else _sum(t, total, rows, storage)
    assert total is not None
    return reshaped(t, total, tuple(shape))


def _summed_where_hit(op: ScatterND, t: Tosa, shape: list[int]) -> Value:
    """With indices that the model computes: every row adds the updates whose index is its own, and zeros for the
    others."""
    in_int32(op, t)
    x, places = narrow(op.updates, t), dims_of(op.indices)
    depth, count = places[-1] or 0, product(places[:-1])
    if x.type.storage.is_float or x.type.storage == i1 or count is None:
        raise Refused("indices of SCATTER_ND are computed when the model runs, and its updates are not integers")
    rows, inner = math.prod(shape[:depth]), math.prod(shape[depth:])
    flat = reshaped(t, flat_index(t, as_index(t, op.indices), shape[:depth]), (1, count, 1))
    hit = t.equal(flat, t.constant(sized.arange(rows).reshape(-1, 1, 1)))
    updates = t.cast(reshaped(t, x, (1, count, inner)), i32)
    total = t.reduce("sum", t.select(hit, updates, t.constant(np.zeros((1, 1, 1)))), 1)
    return t.cast(reshaped(t, total, tuple(shape)), x.type.storage)


def _sum(t: Tosa, a: Value, b: Value, storage: ScalarType) -> Value:
    """a + b in a type; narrow integers wrap."""
    if storage.is_float:
        need_float(t, "SCATTER_ND")
        return t.add(a, b)
    if storage == i1:
        return t.emit(LogicalOr, [a, b])
    return t.cast(t.add(t.cast(a, i32), t.cast(b, i32)), storage)


@lowering(DynamicUpdateSlice)
def dynamic_update_slice(op: DynamicUpdateSlice, t: Tosa) -> Value:
    """The operand with a block in it replaced."""
    x, update = narrow(op.input, t), narrow(op.update, t)
    shape, block = dims_of(x), dims_of(update)
    start = known_array(op.starts)
    if None in shape or None in block:
        raise Refused("DYNAMIC_UPDATE_SLICE with a dim that is not known has no form in TOSA")
    most = [(d or 0) - (b or 0) for d, b in zip(shape, block, strict=True)]
    if start is not None:
        return _replaced(t, x, update, [int(s) for s in np.clip(start.reshape(-1), 0, most)], 0)
    start_value = as_index(t, op.starts)
    rank = len(shape)
    zero = t.constant(np.zeros(rank))
    clamped = t.minimum(t.maximum(start_value, zero), t.constant(most))
    base = flat_index(t, t.reshape(clamped, (1, rank)), [d or 0 for d in shape])
    sized.need_few(math.prod(b or 0 for b in block))
    inside = np.ravel_multi_index(tuple(np.indices([b or 0 for b in block])), [d or 0 for d in shape])
    places = t.add(base, t.constant(inside.reshape(1, -1)))
    storage = i8 if x.type.storage == i1 else x.type.storage
    values = t.reshape(t.cast(x, storage), (1, product(shape), 1))
    written = t.emit(Scatter, [values, places, t.reshape(t.cast(update, storage), (1, product(block), 1))])
    return t.cast(t.reshape(written, shape), x.type.storage)


def _replaced(t: Tosa, x: Value, update: Value, start: list[int], axis: int) -> Value:
    """Along one dim: what is before, the block (with the dims after replaced in turn), and what is after."""
    shape, block = dims_of(x), dims_of(update)
    if shape == block:
        return update
    size, whole = block[axis] or 0, shape[axis] or 0
    end = start[axis] + size
    inner = _replaced(t, part(t, x, axis, start[axis], size), update, start, axis + 1)
    before = [part(t, x, axis, 0, start[axis])] if start[axis] else []
    after = [part(t, x, axis, end, whole - end)] if end < whole else []
    return joined(t, [*before, inner, *after], axis)


# Tables.


@lowering(Table)
def table(op: Table, t: Tosa) -> Value:
    """TABLE; of int8 to another type, the entry is gathered."""
    x, entries = t.value(op.input), t.value(op.table)
    if x.type.storage == i16:
        slopes = np.diff(entries.array.astype(np.int32))
        if np.abs(slopes).max() > i16.maximum:
            bases = entries.array[:-1].astype(np.int32) << 7
            whole = bases[:, None] + slopes[:, None] * np.arange(128)
            return _looked_up(x, constant(whole.astype(np.int32).reshape(-1)), t)
        t.need("int16", "TABLE of int16")
        return t.emit(Table, [x, entries], i32)
    if entries.type.storage == i8:
        return t.emit(Table, [x, entries])
    return _looked_up(x, entries, t)


@lowering(Table16Bit)
def table_16bit(op: Table16Bit, t: Tosa) -> Value:
    """An entry for each int16."""
    return _looked_up(t.value(op.input), t.value(op.table), t)


def _looked_up(x: Value, entries: Value, t: Tosa) -> Value:
    """The entry at x less the least value of its type: by GATHER, or byte by byte where the target lacks that."""
    storage = entries.type.storage
    if x.type.storage == i8 and storage.is_integer and not t.target.takes("gather", (storage, i32), (storage,)):
        return t.cast(_by_bytes(x, entries, t), storage)
    index = t.add(t.cast(x, i32), t.constant(np.asarray(-x.type.storage.minimum)))
    return t.lookup(entries, index)


def _by_bytes(x: Value, entries: Value, t: Tosa) -> Value:
    """The entry of up to 32 bits at an int8, as int32: the sum of its bytes, a TABLE each. All but the highest byte
    are from 0 on, so that no partial sum from the highest byte on leaves int32. RESCALE takes values below
    2^(shift - 1), here 2^9, so that 2^16 is the most it multiplies by."""
    numbers = entries.array.astype(np.int64)
    bound = max(int(numbers.max()), -int(numbers.min()) - 1)
    total: Value | None = None
    for place in reversed(range(bound.bit_length() // 8 + 1)):
        byte = (numbers >> 8 * place) & 255 if total is not None else numbers >> 8 * place
        zero, up = 0 if total is None else -128, 8 * min(place, 2)
        entry = t.emit(Table, [x, t.constant(byte + zero, i8)])
        scale = np.asarray([1 << 10 + up], np.int64), np.asarray([10], np.int64)
        byte_at = emit_rescale(t, entry, *scale, i32, input_zp=zero)
        if place > 2:
            byte_at = t.logical_left_shift(byte_at, t.constant(8))
        total = byte_at if total is None else t.add(total, byte_at)
    assert total is not None
    return total


@lowering(Table2D)
def table_2d(op: Table2D, t: Tosa) -> Value:
    """The entry at 256 (x - least) + (y - least)."""
    x, y = (t.cast(t.value(v), i32) for v in (op.input1, op.input2))
    offset = 256 * -i8.minimum - i8.minimum
    row = t.add(t.mul(x, t.constant(np.asarray(256))), t.constant(np.asarray(offset)))
    return t.lookup(t.value(op.table), t.add(row, y))
