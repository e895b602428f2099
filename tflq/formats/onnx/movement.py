"""Elements in another order, place or number: each is moved in the form in which it is held.

Where ONNX has no operator, and all shapes are known, the op's evaluator says which element goes where, and GATHER does
it. Sources: the kernels of these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tflq.analysis.evaluate.registry import evaluate_op
from tflq.base import sized
from tflq.base.errors import Refused
from tflq.dialects.tfl import movement as tfl
from tflq.dialects.tosa import movement as tosa
from tflq.formats.onnx import dialect as onnx
from tflq.formats.onnx.context import Onnx, OnnxTensor, Result, TensorForm, lowering, static
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, i1, i32, i64, ui64


@lowering(tosa.Reshape, tfl.Reshape, tfl.Squeeze, tfl.ExpandDims)
def reshape(op: tosa.Reshape | tfl.Reshape | tfl.Squeeze | tfl.ExpandDims, t: Onnx) -> OnnxTensor:
    shape = op.result.type.shape
    if shape is None:
        raise Refused("the rank that it makes is not known")
    return t.moved(op.input, lambda x: t.reshape(x, shape), op.result)


@lowering(tosa.Transpose, tfl.Transpose)
def transpose(op: tosa.Transpose | tfl.Transpose, t: Onnx) -> OnnxTensor:
    rank = len(op.result.type.dims)
    perms = op.perms if isinstance(op, tosa.Transpose) else numbers(op.perm)
    return t.moved(op.input, lambda x: t.transpose(x, [p % rank for p in perms]), op.result)


@lowering(tosa.Concat, tfl.Concatenation)
def concatenate(op: tosa.Concat | tfl.Concatenation, t: Onnx) -> OnnxTensor:
    operands = op.present_operands
    xs, form = t.common(operands)
    return t.bind(t.concat(xs, op.axis), op.result, offset=form.offset)


@lowering(tfl.Pack)
def pack(op: tfl.Pack, t: Onnx) -> OnnxTensor:
    operands = op.present_operands
    xs, form = t.common(operands)
    shape = op.result.type.dims
    axis = op.axis % len(shape)
    rows = [t.reshape(x, (*shape[:axis], 1, *shape[axis + 1 :])) for x in xs]
    return t.bind(t.concat(rows, axis), op.result, offset=form.offset)


@lowering(tfl.Unpack)
def unpack(op: tfl.Unpack, t: Onnx) -> list[Result]:
    axis = op.axis % len(op.input.type.dims)

    def one(index: int, result: Value) -> OnnxTensor:
        shape = result.type.dims
        return t.moved(op.input, lambda x: t.reshape(t.part(x, axis, index, index + 1), shape), result)

    return [one(index, result) for index, result in enumerate(op.results)]


@lowering(tosa.Slice, tfl.Slice)
def slice_(op: tosa.Slice | tfl.Slice, t: Onnx) -> OnnxTensor:
    if isinstance(op, tosa.Slice):
        starts, sizes = list(op.start), list(op.size)
    elif not (op.begin.is_constant and op.size.is_constant):
        return _slice_computed(op, t)
    else:
        starts, sizes = numbers(op.begin), [None if n < 0 else n for n in numbers(op.size)]
    shape = op.input.type.dims
    cut = [i for i, (a, n) in enumerate(zip(starts, sizes, strict=True)) if a or n not in (None, shape[i])]
    ends = [None if (n := sizes[i]) is None else starts[i] + n for i in cut]

    def emit(x: Value) -> Value:
        return t.slice(x, cut, [starts[i] for i in cut], ends) if cut else x

    return t.moved(op.input, emit, op.result)


def _slice_computed(op: tfl.Slice, t: Onnx) -> OnnxTensor:
    """A size of -1 is the rest of a dim."""
    starts, sizes = t.integers(op.begin, i64), t.integers(op.size, i64)
    ends = t.where(t.below_zero(sizes), t.like((1 << 63) - 1, sizes), t.add(starts, sizes))
    rank = len(op.input.type.dims)
    operands = [starts, ends, t.vector(range(rank)), t.vector([1] * rank)]
    kind = op.result.type
    return t.moved(op.input, lambda x: t.emit(onnx.Slice, [x, *operands], kind.with_element(x.type.element)), op.result)


@lowering(tfl.Split, tfl.SplitV)
def split(op: tfl.Split | tfl.SplitV, t: Onnx) -> list[Result]:
    axis = numbers(op.axis)[0] % len(op.input.type.dims)
    sizes = [static(v.type.dims[axis:][:1])[0] for v in op.results]

    def one(end: int, size: int, result: Value) -> OnnxTensor:
        return t.moved(op.input, lambda x: t.part(x, axis, end - size, end), result)

    return [one(*row) for row in zip(np.cumsum(sizes).tolist(), sizes, op.results, strict=True)]


@lowering(tfl.StridedSlice)
def strided_slice(op: tfl.StridedSlice, t: Onnx) -> OnnxTensor:
    """SLICE of the dims that are cut, then RESHAPE. Of a mask for an ellipsis or new dims the evaluator says what is
    meant."""
    if op.ellipsis_mask or op.new_axis_mask:
        return by_index(op, t, op.input)
    if not (op.begin.is_constant and op.end.is_constant):
        return _strides_computed(op, t)
    begin, end, strides = (numbers(v) for v in (op.begin, op.end, op.strides))
    axes, starts, ends, steps = list[int](), list[int](), list[int | None](), list[int]()
    for i, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        bit = 1 << i
        if op.shrink_axis_mask & bit:
            first = 0 if op.begin_mask & bit else first
            row: tuple[int, int | None, int] = first, None if first == -1 else first + 1, 1
        else:
            last = first + last if op.offset else last
            start = (0 if step > 0 else (1 << 31) - 1) if op.begin_mask & bit else first
            row = start, None if op.end_mask & bit else last, step
        if row[1:] == (None, 1) and row[0] == 0:
            continue
        axes, starts, ends, steps = [*axes, i], [*starts, row[0]], [*ends, row[1]], [*steps, row[2]]
    shape = op.result.type.shape
    if shape is None:
        raise Refused("the rank that it makes is not known")

    def emit(x: Value) -> Value:
        x = t.slice(x, axes, starts, ends, steps) if axes else x
        return t.reshape(x, shape) if op.shrink_axis_mask else x

    return t.moved(op.input, emit, op.result)


def _strides_computed(op: tfl.StridedSlice, t: Onnx) -> OnnxTensor:
    """Of a begin or an end that is computed, over the first dims. Of a dim that goes only the begin is read."""
    steps, shape = np.asarray(numbers(op.strides)), op.result.type.shape
    if shape is None:
        raise Refused("the rank that it makes is not known")
    least, greatest = -(1 << 63), (1 << 63) - 1

    def masked(mask: int, chosen: npt.ArrayLike | Value, other: Value) -> Value:
        bits = mask >> np.arange(steps.size) & 1 == 1
        chosen = chosen if isinstance(chosen, Value) else t.vector(chosen)
        return t.where(t.constant(bits, i1), chosen, other) if bits.any() else other

    shrunk = op.shrink_axis_mask
    starts = t.integers(op.begin, i64)
    ends = t.add(starts, t.integers(op.end, i64)) if op.offset else t.integers(op.end, i64)
    starts = masked(op.begin_mask, np.where((steps > 0) | (shrunk >> np.arange(steps.size) & 1), 0, greatest), starts)
    ends = masked(op.end_mask & ~shrunk, np.where(steps > 0, greatest, least), ends)
    after = t.add(starts, t.like(1, starts))
    last = t.where(t.equal(starts, t.like(-1, starts)), t.vector([greatest] * steps.size), after)
    ends = masked(shrunk, last, ends)
    strides = t.vector(np.where(shrunk >> np.arange(steps.size) & 1, 1, steps))
    rest = iter(shape)
    dims = [1 if shrunk >> i & 1 else next(rest, None) for i in range(len(op.input.type.dims))]

    def emit(x: Value) -> Value:
        kind = TensorType(tuple(dims), x.type.element)
        x = t.emit(onnx.Slice, [x, starts, ends, t.vector(range(steps.size)), strides], kind)
        return t.reshape(x, shape) if shrunk else x

    return t.moved(op.input, emit, op.result)


@lowering(tosa.Pad)
def pad(op: tosa.Pad, t: Onnx) -> OnnxTensor:
    return padded(t, op.input1, np.reshape(op.padding, (-1, 2)), op.pad_const, op.result)


@lowering(tfl.Pad)
def kernel_pad(op: tfl.Pad, t: Onnx) -> OnnxTensor:
    return padded(t, op.input, op.paddings, 0, op.result)


@lowering(tfl.PadV2)
def pad_v2(op: tfl.PadV2, t: Onnx) -> OnnxTensor:
    fill = op.value.array.reshape(()).item() if op.value.is_constant else op.value
    return padded(t, op.input, op.paddings, fill, op.result)


def _pairs(op: tfl.Padding) -> np.ndarray:
    return np.reshape(numbers(op.paddings), (-1, 2))


def padded(t: Onnx, x: Value, pairs: np.ndarray | Value, fill: Any, result: Value) -> OnnxTensor:
    """PAD by numbers or by a tensor, with a number or a tensor of one element. The form's offset is taken off it."""
    tensor = t.tensor(x)
    form = min(
        (f for f in tensor.forms if not f.first), key=lambda f: f.element.bits, default=TensorForm(x.type.storage)
    )
    if form.element == i1:
        form = TensorForm(i32)
    value: float | Value
    if isinstance(fill, Value):
        value = t.reshape(t.tensor(fill).get(t, TensorForm(form.element, form.offset)), ())
    else:
        value = fill if form.element.is_float and x.type.storage.is_float else int(fill) - form.offset
    source = tensor.get(t, form)
    if isinstance(pairs, Value) and not pairs.is_constant:
        rank = len(x.type.dims)
        columns = t.reshape(t.transpose(t.integers(pairs, i64), [1, 0]), (2 * rank,))
        wide = t.pad_by(source, columns, value, shape=result.type.shape or (None,) * rank)
    else:
        rows = np.reshape(numbers(pairs) if isinstance(pairs, Value) else pairs, (-1, 2))
        pads = t.vector(rows.T)
        wide = t.pad_by(source, pads, value) if rows.any() else source
    out = t.bind(wide, result, offset=form.offset)
    if x.type.storage == i1:
        return t.bind(t.cast(next(iter(out.forms.values())), i1), result)
    return out


@lowering(tfl.MirrorPad)
def mirror_pad(op: tfl.MirrorPad, t: Onnx) -> OnnxTensor:
    """GATHER of each axis that is padded."""
    pairs, shape = _pairs(op), op.input.type.dims
    mode: Literal["reflect", "symmetric"] = "reflect" if op.mode == "REFLECT" else "symmetric"

    def emit(x: Value) -> Value:
        for axis, pair in enumerate(pairs.tolist()):
            if any(pair):
                (size,) = static(shape[axis : axis + 1])
                sized.need_few(size + sum(pair))
                x = t.gather(x, t.vector(np.pad(np.arange(size), tuple(pair), mode)), axis)
        return x

    return t.moved(op.input, emit, op.result)


@lowering(tosa.Tile)
def tile(op: tosa.Tile, t: Onnx) -> OnnxTensor:
    return t.moved(op.input1, lambda x: t.tile(x, op.multiples), op.result)


@lowering(tfl.Tile)
def kernel_tile(op: tfl.Tile, t: Onnx) -> OnnxTensor:
    if op.multiples.is_constant:
        return t.moved(op.input, lambda x: t.tile(x, numbers(op.multiples)), op.result)
    repeats, kind = t.integers(op.multiples, i64), op.result.type
    return t.moved(op.input, lambda x: t.emit(onnx.Tile, [x, repeats], kind.with_element(x.type.element)), op.result)


@lowering(tfl.BroadcastTo)
def broadcast_to(op: tfl.BroadcastTo, t: Onnx) -> OnnxTensor:
    shape = static(op.result.type.shape)
    return t.moved(op.input, lambda x: t.expand(x, shape), op.result)


@lowering(tosa.Reverse)
def reverse(op: tosa.Reverse, t: Onnx) -> OnnxTensor:
    return t.moved(op.input1, lambda x: t.slice(x, [op.axis], [-1], [None], [-1]), op.result)


@lowering(tfl.ReverseV2)
def reverse_v2(op: tfl.ReverseV2, t: Onnx) -> OnnxTensor:
    axes = numbers(op.axes)
    count = len(axes)

    def emit(x: Value) -> Value:
        return t.slice(x, axes, [-1] * count, [None] * count, [-1] * count)

    return t.moved(op.input, emit, op.result)


@lowering(tfl.SpaceToDepth, tfl.DepthToSpace)
def depth_blocks(op: tfl.SpaceToDepth | tfl.DepthToSpace, t: Onnx) -> OnnxTensor:
    """RESHAPE, TRANSPOSE, RESHAPE: blocks are dims of their own in between."""
    n, h, w, c = op.input.type.dims
    _, height, width, _ = result = op.result.type.dims
    s = op.block_size
    if None in (h, w, c, height, width):
        raise Refused("the shape of a tensor is not known before a run")
    split = (n, height, s, width, s, c) if isinstance(op, tfl.SpaceToDepth) else (n, h, w, s, s, (c or 0) // (s * s))

    def emit(x: Value) -> Value:
        return t.reshape(t.transpose(t.reshape(x, split), (0, 1, 3, 2, 4, 5)), result)

    return t.moved(op.input, emit, op.result)


@lowering(tfl.SpaceToBatchND)
def space_to_batch(op: tfl.SpaceToBatchND, t: Onnx) -> OnnxTensor:
    block, pairs = numbers(op.block), np.reshape(numbers(op.paddings), (-1, 2))
    shape, spatial = static(op.input.type.shape), len(block)
    before, after = ([0, *pairs[:, i].tolist(), *[0] * (len(shape) - 1 - spatial)] for i in (0, 1))
    around = [d + a + b for d, a, b in zip(shape, before, after, strict=True)]
    blocks = [v for d, s in zip(around[1:], block, strict=False) for v in (d // s, s)]
    rest = around[1 + spatial :]
    inner, outer = [2 + 2 * i for i in range(spatial)], [1 + 2 * i for i in range(spatial)]
    order = (*inner, 0, *outer, *range(1 + 2 * spatial, 1 + 2 * spatial + len(rest)))

    def emit(x: Value) -> Value:
        moved = t.transpose(t.reshape(x, (shape[0], *blocks, *rest)), order)
        return t.reshape(moved, static(op.result.type.shape))

    tensor = padded(t, op.input, np.stack([before, after], 1), 0, op.input)
    form, value = next(iter(tensor.forms.items()))
    return t.bind(emit(value), op.result, offset=form.offset)


@lowering(tfl.BatchToSpaceND)
def batch_to_space(op: tfl.BatchToSpaceND, t: Onnx) -> OnnxTensor:
    block, pairs = numbers(op.block), np.reshape(numbers(op.crops), (-1, 2)).tolist()
    shape, spatial = static(op.input.type.shape), len(block)
    batch, rest = shape[0] // prod(block), shape[1 + spatial :]
    order = [v for i in range(spatial) for v in (spatial + 1 + i, i)]
    whole = [d * s for d, s in zip(shape[1:], block, strict=False)]
    axes = list(range(1, spatial + 1))

    def emit(x: Value) -> Value:
        split = t.reshape(x, (*block, batch, *shape[1:]))
        moved = t.transpose(split, (spatial, *order, *range(2 * spatial + 1, 2 * spatial + 1 + len(rest))))
        full = t.reshape(moved, (batch, *whole, *rest))
        ends = [n - after for n, (_, after) in zip(whole, pairs, strict=True)]
        return t.slice(full, axes, [a for a, _ in pairs], ends) if np.any(pairs) else full

    return t.moved(op.input, emit, op.result)


@lowering(tfl.ReverseSequence)
def reverse_sequence(op: tfl.ReverseSequence, t: Onnx) -> OnnxTensor:
    return by_index(op, t, op.input)


def by_index(op: Op, t: Onnx, x: Value) -> OnnxTensor:
    """The op's evaluator on the places of the elements says which one goes where. Refused for operands that are not
    constant."""
    others = [v for v in op.present_operands if v is not x]
    if not all(v.is_constant for v in others):
        raise Refused(f"{op.name} by computed operands")
    shape = static(x.type.shape)
    places = sized.arange(prod(shape), dtype=np.int64).reshape(shape)
    index = _places(op, x, places)

    def emit(v: Value) -> Value:
        return t.gather(t.reshape(v, (prod(shape),)), t.constant(index, i64))

    return t.moved(x, emit, op.result)


def _places(op: Op, x: Value, places: np.ndarray) -> np.ndarray:
    """The result of the op's evaluator on places, int64. Refused if the op reads beyond its operand."""
    stand_in = Value(x.type.with_element(i64))
    operands: list[Value | None] = [stand_in if v is x else v for v in op.operands]
    result = Value(op.result.type.with_element(i64))
    copy = type(op)(op.name, operands, [result], dict(op.attributes))
    try:
        arrays = evaluate_op(copy, [places if v is stand_in else None if v is None else v.array for v in operands])
    except (IndexError, ValueError) as error:
        raise Refused(f"it reads what its operand does not have: {error}") from None
    assert arrays is not None
    return arrays[0]


def ordered_axes(axes: Sequence[int], rank: int) -> list[int]:
    """Axes counted from 0, in order; none of a scalar."""
    return sorted({axis % rank for axis in axes}) if rank else []


def numbers(operand: Value) -> list[int]:
    """The elements of a constant operand. Refused for one that is computed."""
    if not operand.is_constant:
        raise Refused(f"'{operand.name}' is computed, and must be known before a run")
    if not operand.type.storage.is_integer or operand.type.storage == ui64:
        raise Refused(f"'{operand.name}' is {operand.type.storage}, not signed integers")
    return [int(n) for n in operand.array.reshape(-1)]
